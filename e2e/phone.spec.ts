/** The whole studio on a telephone. */
import { everyPage, expect, figure, open, overflow, pageHeader, test, tokenFact, tokenMap } from './journey';

test.use({ viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true, deviceScaleFactor: 2 });

test('no page is wider than the screen, in either language', async ({ page, finished, watch }) => {
  watch.allow(/404 .*\/nowhere/);
  await open(page, '/');
  for (const language of ['English', '中文']) {
    await page.getByRole('button', { name: /^(Menu|菜单)$/ }).tap();
    await page.getByRole('button', { name: language }).tap();
    await expect(page.locator('html')).toHaveAttribute('lang', language === 'English' ? 'en' : 'zh');
    for (const path of [...everyPage(finished), '/nowhere']) {
      if (path === '/nowhere') await page.goto(path);
      else await open(page, path);
      expect(await overflow(page), `${language} ${path}`).toBe(0);
    }
    await open(page, '/');
  }
});

test('the menu opens, leads somewhere and folds again', async ({ page }) => {
  await open(page, '/');
  const places = page.getByRole('navigation', { name: 'Places' });
  await expect(places).toBeHidden();
  await page.getByRole('button', { name: 'Menu' }).tap();
  await expect(places).toBeVisible();
  await places.getByRole('link', { name: 'Skills' }).tap();
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('Skills');
  await expect(places).toBeHidden();
});

test('the main job is done with a thumb', async ({ page }) => {
  await open(page, '/');
  await page.getByLabel('Group size').fill('2');
  await page.getByLabel('Tasks', { exact: true }).fill('2');
  await page.getByRole('button', { name: 'Start', exact: true }).tap();
  await page.waitForURL(/\/runs\/run_/);
  await expect(figure(page, 'finished')).toHaveText(/^4 \/ 4/, { timeout: 100_000 });
  await expect(pageHeader(page).getByText('completed')).toBeVisible();
  expect(await overflow(page)).toBe(0);
  await page.getByRole('region', { name: 'Trajectories' }).getByRole('link').first().tap();
  await page.waitForURL(/\/trajectories\//);
  await expect(tokenMap(page)).toBeVisible();
  const hidden = await page.evaluate(() => document.documentElement.scrollHeight - window.innerHeight);
  expect(hidden, 'only the tokens scroll').toBe(0);
  await expect(pageHeader(page).locator('kbd').first(), 'there are no keys').toBeHidden();
  const all = page.getByRole('button', { name: /^Token [\d,]+: all its numbers/ });
  const box = await tokenMap(page).boundingBox();
  await expect(async () => {
    for (let y = 30; y < 240 && (await all.count()) === 0; y += 9)
      await page.touchscreen.tap((box?.x ?? 0) + 60, (box?.y ?? 0) + y);
    await expect(all).toBeVisible({ timeout: 500 });
  }).toPass();
  await all.tap();
  await expect(tokenFact(page, 'id')).toHaveText(/^\d+$/);
  await page.getByText('Steps', { exact: true }).first().tap();
  await expect(page.getByRole('listitem').first()).toBeVisible();
  expect(await overflow(page)).toBe(0);
});
