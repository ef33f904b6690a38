/** Someone who may only look sees everything and can change nothing: neither on the pages nor past them. */
import { viewerState } from './global-setup';
import { everyPage, expect, open, pageHeader, studioUrl, test } from './journey';

test.use({ storageState: viewerState });

test('every page is there, and every button that changes something is not', async ({ page, finished, client }) => {
  for (const path of everyPage(finished)) {
    await open(page, path);
    await expect(page.locator('main').getByRole('alert'), path).toHaveCount(0);
  }
  await open(page, '/');
  await expect(page.getByText('onlooker · viewer')).toBeVisible();
  await expect(page.getByText('Starting a run needs the role operator.')).toBeVisible();
  await expect(page.getByRole('button', { name: 'Start', exact: true })).toBeDisabled();
  await open(page, '/skills?new=1');
  await expect(page.getByText('Saving a skill needs the role operator.')).toBeVisible();
  await expect(page.getByRole('button', { name: 'Save as a new version' })).toBeDisabled();
  await open(page, '/datasets');
  await page.getByLabel('File').setInputFiles({
    name: 'mine.jsonl',
    mimeType: 'text/plain',
    buffer: Buffer.from('{"task_id":"a","prompt":"p"}'),
  });
  await expect(page.getByText('Importing needs the role operator.')).toBeVisible();
  await expect(page.getByRole('button', { name: 'Import', exact: true })).toBeDisabled();

  const { runId } = await client.runs.start.mutate({ skill: 'tutorial', dataset: 'tutorial', groupSize: 16, seed: 9 });
  await open(page, `/runs/${runId}`);
  await expect(pageHeader(page).getByText(/running|queued/)).toBeVisible();
  await expect(pageHeader(page).getByRole('button', { name: 'Cancel' })).toBeDisabled();
  await client.runs.cancel.mutate({ runId });
  await expect(pageHeader(page).getByText('cancelled')).toBeVisible({ timeout: 60_000 });
});

test('calls past the pages are refused and leave nothing', async ({ page, finished, client }) => {
  const before = {
    runs: (await client.runs.list.query({})).total,
    skills: await client.skills.list.query(),
    datasets: await client.datasets.list.query(),
  };
  for (const [path, json] of [
    ['runs.start', { skill: 'tutorial', dataset: 'tutorial', tasks: 1, groupSize: 1 }],
    ['runs.cancel', { runId: finished.runId }],
    ['skills.save', { yaml: 'skill_name: mine' }],
    ['datasets.import', { name: 'mine', jsonl: '{"task_id":"a","prompt":"p"}' }],
  ] as const) {
    const answer = await page.request.post(`/api/trpc/${path}`, { data: { json }, headers: { origin: studioUrl() } });
    expect(answer.status(), path).toBe(403);
    expect(await answer.text(), path).toMatch(/operator/);
  }
  expect((await page.request.get(`/api/runs/${finished.runId}/export`)).status()).toBe(200);
  expect({
    runs: (await client.runs.list.query({})).total,
    skills: await client.skills.list.query(),
    datasets: await client.datasets.list.query(),
  }).toEqual(before);
});
