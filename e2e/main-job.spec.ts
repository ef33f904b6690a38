/** The main job: start a run, watch it fill, open a trajectory, read its tokens. */
import type { Page } from '@playwright/test';
import {
  chosenToken,
  expect,
  figure,
  heatmap,
  inspector,
  open,
  overflow,
  pageHeader,
  test,
  textOf,
  tokenFact,
  tokenMap,
} from './journey';

const colours = (page: Page) => page.getByRole('group', { name: 'Colour tokens by' });

test('a run is started on the home page and its page fills by itself until it is complete', async ({ page }) => {
  await open(page, '/');
  await page.getByLabel('Skill').selectOption('tutorial');
  await page.getByLabel('Dataset').selectOption('tutorial');
  await page.getByLabel('Group size').fill('4');
  await page.getByLabel('Tasks', { exact: true }).fill('4');
  await expect(page.getByText('4 tasks, 16 trajectories')).toBeVisible();
  await page.getByRole('button', { name: 'Start', exact: true }).click();
  await page.waitForURL(/\/runs\/run_[0-9a-z]{26}$/);
  // Gone after any reload.
  await page.evaluate(() => Object.assign(window, { sameDocument: true }));
  await expect(figure(page, 'finished')).toContainText('/ 16');
  const seen = new Set<string>();
  await expect
    .poll(
      async () => {
        const text = await textOf(figure(page, 'finished'));
        seen.add(text);
        return text;
      },
      { timeout: 100_000, intervals: [100] },
    )
    .toMatch(/^16 \/ 16/);
  expect(seen.size, 'the figure grew while it was looked at').toBeGreaterThan(1);
  await expect(pageHeader(page).getByText('completed')).toBeVisible();
  await expect(pageHeader(page).getByRole('button', { name: 'Cancel' })).toHaveCount(0);
  await expect(figure(page, 'mean reward')).toHaveText(/^0\.\d\d ± 0\.\d\d$/);
  await expect(figure(page, 'tokens generated')).toHaveText(/^[1-9][\d,]+$/);
  const table = page.getByRole('region', { name: 'Trajectories' }).getByRole('table');
  await expect(table.getByRole('row')).toHaveCount(17);
  for (const row of (await table.getByRole('row').allInnerTexts()).slice(1)) expect(row).toMatch(/completed|truncated/);
  await page.getByRole('application', { name: /^Reward of every trajectory/ }).press('ArrowDown');
  await expect(page.getByText(/trajectory \d: .*, mean \d\.\d{4} ± \d\.\d{4}/)).toBeAttached();
  expect(await overflow(page)).toBe(0);
  expect(await page.evaluate(() => 'sameDocument' in window)).toBe(true);
});

test('a trajectory is opened from the heatmap by keyboard, and from the table', async ({ page, finished }) => {
  await open(page, `/runs/${finished.runId}`);
  await heatmap(page).focus();
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('ArrowDown');
  const said = page.getByText(/trajectory \d, (completed|truncated), step 0, reward .*, advantage /);
  await expect(said).toBeAttached();
  const [, task, member] = /^(\S+), trajectory (\d)/.exec(await textOf(said)) ?? [];
  await page.keyboard.press('Enter');
  await page.waitForURL(/\/trajectories\/trj_/);
  await expect(page.getByRole('heading', { level: 1 })).toHaveText(`${task} · trajectory ${member} of 4`);

  await page.getByRole('link', { name: finished.name }).click();
  await expect(page.getByRole('heading', { name: finished.name })).toBeVisible();
  const row = page.getByRole('region', { name: 'Trajectories' }).getByRole('row').nth(3);
  const name = await row.getByRole('link').getAttribute('title');
  const number = /#(\d)/.exec(await textOf(row))?.[1];
  await row.getByRole('link').click();
  await expect(page.getByRole('heading', { level: 1 })).toHaveText(`${name} · trajectory ${number} of 4`);
});

test('tokens are coloured, chosen by click and by keyboard, and the steps keep up', async ({ page, finished }) => {
  await open(page, `/runs/${finished.runId}/trajectories/${finished.trajectoryIds[0]}`);
  await expect(pageHeader(page)).toContainText(/generated \d+ of \d+ tokens/);
  const pictures: string[] = [];
  for (const [name, key] of [
    ['mask', 'mask'],
    ['log p', 'logprob'],
    ['advantage', 'advantage'],
  ] as const) {
    await colours(page).getByText(name, { exact: true }).click();
    await expect(colours(page).getByRole('radio', { name })).toBeChecked();
    await expect(page).toHaveURL(new RegExp(`[?&]color=${key}`));
    await page.mouse.move(0, 0);
    // A picture that has come to rest, and unlike the ones before.
    await expect
      .poll(async () => {
        const picture = (await tokenMap(page).screenshot()).toString('base64');
        if (pictures.includes(picture)) return false;
        pictures.push(picture);
        return true;
      })
      .toBe(true);
  }

  const box = await tokenMap(page).boundingBox();
  await expect(async () => {
    for (let y = 40; y < 200; y += 9) {
      await page.mouse.click((box?.x ?? 0) + 150, (box?.y ?? 0) + y);
      if ((await inspector(page).count()) > 0) break;
    }
    await page.mouse.move(0, 0);
    await expect(inspector(page)).toBeVisible({ timeout: 500 });
  }).toPass();
  const clicked = await textOf(chosenToken(page));

  await tokenMap(page).focus();
  await page.keyboard.press('Control+Home');
  await expect(chosenToken(page)).toHaveText('Token 0');
  await expect(tokenFact(page, 'mask')).toHaveText(/^0 /);
  await expect(tokenFact(page, 'log p')).toHaveText('–');
  await page.keyboard.press(']');
  await expect(chosenToken(page)).toHaveText(/^Token [1-9]\d*$/);
  expect(clicked).toMatch(/^Token \d+$/);
  await expect(inspector(page)).toContainText(/step 0 · (thought|action)/);
  await expect(tokenFact(page, 'id')).toHaveText(/^\d+$/);
  await expect(tokenFact(page, 'bytes')).toHaveText(/^([0-9a-f]{2} ?)+$/);
  await expect(tokenFact(page, 'mask')).toHaveText('1 · sampled');
  await expect(tokenFact(page, 'log p')).toHaveText(/^−?\d+\.\d{6}$/);
  await expect(tokenFact(page, /^advantage A/)).toHaveText(/^[+−]?\d+\.\d{4}$/);
  await expect(
    page.getByText(
      /^Token \d+, .+, step 0, sampled by the policy, log-probability −?[\d.e-]+, advantage [+−]?\d+\.\d{4}$/,
    ),
  ).toBeAttached();

  // Token → step list, and step list → token.
  await expect(page.getByRole('listitem').locator('[aria-current=step]')).toHaveText(/^0/);
  await page.keyboard.press('n');
  await expect(inspector(page)).toContainText('step 1');
  await expect(page.getByRole('listitem').locator('[aria-current=step]')).toHaveText(/^1/);
  await page.getByRole('listitem').filter({ hasText: /^0/ }).getByRole('button').click();
  await expect(inspector(page)).toContainText('step 0');
  await expect(page.getByText(/^Why this step scored/)).toBeVisible();
});

test('siblings are a key away, and a link opens the same view', async ({ page, context, finished }) => {
  await open(page, `/runs/${finished.runId}/trajectories/${finished.trajectoryIds[1]}`);
  const heading = page.getByRole('heading', { level: 1 });
  await expect(heading).toHaveText(/trajectory 2 of 4$/);
  await page.keyboard.press('j');
  await expect(heading).toHaveText(/trajectory 3 of 4$/);
  await page.keyboard.press('k');
  await expect(heading).toHaveText(/trajectory 2 of 4$/);

  await colours(page).getByText('log p', { exact: true }).click();
  await tokenMap(page).focus();
  for (let i = 0; i < 6; i++) await page.keyboard.press(']');
  await expect(page).toHaveURL(/token=\d+/);
  const chosen = await textOf(chosenToken(page));
  await expect(page).toHaveURL(new RegExp(`token=${chosen.replace(/\D/g, '')}\\b`));
  const facts = await textOf(inspector(page).locator('dl'));

  const colleague = await context.newPage();
  await open(colleague, page.url());
  await expect(chosenToken(colleague)).toHaveText(chosen);
  await expect(colours(colleague).getByRole('radio', { name: 'log p' })).toBeChecked();
  expect(await textOf(inspector(colleague).locator('dl'))).toBe(facts);
});

test('text that is off the screen is found', async ({ page, finished }) => {
  await page.setViewportSize({ width: 1100, height: 500 });
  await open(page, `/runs/${finished.runId}?status=completed&sort=generated&order=down`);
  await page.getByRole('region', { name: 'Trajectories' }).getByRole('row').nth(1).getByRole('link').click();
  await expect(tokenMap(page)).toBeVisible();
  const scrolled = () => tokenMap(page).evaluate((element) => element.scrollTop);
  expect(await scrolled()).toBe(0);
  await page.keyboard.press('/');
  await page.getByRole('searchbox', { name: 'Find text in all tokens' }).fill('Answer:');
  await expect(page.getByRole('search').getByRole('status')).toHaveText(/^0 of [1-9]/);
  await page.keyboard.press('Shift+Enter');
  await page.keyboard.press('Enter');
  await expect(inspector(page)).toBeVisible();
  await page.getByRole('button', { name: 'Previous match' }).click();
  await expect.poll(scrolled).toBeGreaterThan(0);
  await expect(inspector(page)).toContainText('answer');
  await page.getByRole('button', { name: 'Close find' }).click();
  await expect(tokenMap(page)).toBeFocused();
});
