/** Text that was written to do harm is shown as text, everywhere. */
import { expect, open, overflow, settled, test, tokenMap, waitForRun } from './journey';

const IMG = '<img src=x onerror=alert(1)>';
const LINK = '[press me](javascript:alert(2)) javascript:alert(3)';
const TURNED = 'Find \u202Eton ekil siht\u202C my number between 4 and 19.';
const LONG = `Find my number between 4 and 19. ${'W'.repeat(10_240)}`;
const EMOJI = 'Find my number between 4 and 19. 👩‍👩‍👧‍👦🏳️‍🌈é\u0301\u0301';
const CONTROL = 'Find \u0007my\u001b[31m number\u0008 between 4 and 19.\r\nWhich?';
const SCRIPT = '</script><script>alert(4)</script>{{constructor.constructor("alert(5)")()}}';

test('a dataset of hostile prompts is imported, run and read without any of it coming alive', async ({
  page,
  client,
}, info) => {
  const dataset = `hostile-${info.workerIndex}-${info.retry}`;
  const jsonl = [IMG, LINK, TURNED, LONG, EMOJI, CONTROL, SCRIPT]
    .map((prompt, at) =>
      JSON.stringify({
        task_id: at === 0 ? '"><img src=x onerror=alert(6)>\u202E' : at === 1 ? 'x'.repeat(500) : `task-${at}`,
        prompt,
        answer: { number: 7 },
        metadata: { secret: 7, low: 4, high: 19, note: IMG },
      }),
    )
    .join('\n');
  await open(page, '/datasets');
  await page
    .getByLabel('File')
    .setInputFiles({ name: `${dataset}.jsonl`, mimeType: 'text/plain', buffer: Buffer.from(jsonl) });
  await page.getByRole('button', { name: 'Import', exact: true }).click();
  await expect(page.getByRole('heading', { level: 1 })).toHaveText(dataset);
  await expect(page.getByText(IMG).first()).toBeVisible();
  await expect(page.getByText(LINK)).toBeVisible();
  await expect(page.getByText(SCRIPT)).toBeVisible();
  await page.getByRole('button', { name: /^Show all 10,\d{3} characters$/ }).click();
  await expect(page.getByText('W'.repeat(10_240))).toBeVisible();

  await page.getByRole('link', { name: 'Start a run' }).click();
  await page.getByText('More: seed, temperature, judge, staleness, name').click();
  await page.getByLabel('Name').fill(`${IMG} \u202Ename`);
  await page.getByLabel('Group size').fill('2');
  await page.getByLabel('Tasks', { exact: true }).fill('');
  await page.getByRole('button', { name: 'Start', exact: true }).click();
  await page.waitForURL(/\/runs\/run_/);
  const runId = page.url().split('/').at(-1) ?? '';
  await waitForRun(client, runId, 'completed');
  await expect(page.getByRole('heading', { level: 1 })).toContainText(IMG);

  const run = await client.runs.get.query({ runId });
  expect(run.groups.map((group) => group.prompt)).toEqual([IMG, LINK, TURNED, LONG, EMOJI, CONTROL, SCRIPT]);
  const trajectories = run.groups.map((group) => group.trajectories[0]?.trajectoryId);
  for (const size of [
    { width: 1280, height: 800 },
    { width: 390, height: 844 },
  ]) {
    await page.setViewportSize(size);
    for (const path of [
      '/',
      '/runs',
      '/datasets',
      `/datasets/${dataset}`,
      '/audit',
      `/runs/${runId}`,
      ...trajectories.map((id) => `/runs/${runId}/trajectories/${id}`),
    ]) {
      await open(page, path);
      expect(await overflow(page), `${path} at ${size.width}`).toBe(0);
      // Nothing that came in as text became an element.
      await expect(page.locator('main img, main [onerror], main script, main a[href^="javascript:"]')).toHaveCount(0);
    }
  }

  // The token view says what it shows: control characters are named, not obeyed.
  await page.setViewportSize({ width: 1280, height: 800 });
  await open(page, `/runs/${runId}/trajectories/${trajectories[0]}`);
  await expect(page.getByRole('heading', { level: 1 })).toContainText('<img src=x onerror=alert(6)>');
  await expect(tokenMap(page)).toBeVisible();
  await expect(page.locator('[data-visible-text]')).toContainText(IMG);
  await open(page, `/runs/${runId}/trajectories/${trajectories[2]}`);
  await expect(page.locator('[data-visible-text]')).toContainText('U+202E');
  await expect(page.locator('[data-visible-text]')).not.toContainText('\u202E');
  await open(page, `/runs/${runId}/trajectories/${trajectories[5]}`);
  await expect(page.locator('[data-visible-text]')).toContainText('\\x1b');

  await page.goto(`/runs/${runId}?find=${encodeURIComponent(IMG)}`);
  await settled(page);
  await expect(page.getByRole('searchbox', { name: 'Find task, reason, tool' })).toHaveValue(IMG);
});

test('hostile addresses lead nowhere else', async ({ page, watch }) => {
  watch.allow(/status of 40\d/);
  for (const path of [
    `/skills/${encodeURIComponent(IMG)}`,
    `/datasets/${encodeURIComponent('../../etc/passwd')}`,
    `/runs/${encodeURIComponent(IMG)}`,
    '/runs?status=%3Cscript%3E&cursor=%00',
    '/sign-in?next=//elsewhere.example',
    '/sign-in?next=javascript:alert(1)',
  ]) {
    await page.goto(path);
    await expect(page.locator('main')).not.toBeEmpty();
    await expect(page.locator('main img, main [onerror]')).toHaveCount(0);
    expect(new URL(page.url()).origin).toBe(new URL(process.env.STUDIO_E2E_URL ?? '').origin);
    expect(await overflow(page)).toBe(0);
  }
});
