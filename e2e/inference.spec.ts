/** Servers for inference: added by address, watched, given new weights in the middle of a run, away and back again. */
import { copyFile, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Page } from '@playwright/test';
import { startTwinProcess, type TwinProcess } from '../server/inference/testing/twin/twin-process';
import { viewerState } from './global-setup';
import { expect, figure, open, overflow, pageHeader, test, tokenFact, tokenMap, waitForRun } from './journey';
import { root } from './server';

const TUTORIAL = join(root, 'samples', 'models', 'tutorial.gguf');
/** Long enough for a person to update weights in the middle of a run. */
const MS_PER_TOKEN = 20;

test.describe.configure({ mode: 'serial' });

let folder: string;
let twin: TwinProcess;

test.beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'studio-weights-'));
  await copyFile(TUTORIAL, join(folder, 'step-2.gguf'));
  twin = await startTwinProcess({ kind: 'sglang', options: { modelPath: TUTORIAL } });
});
test.afterAll(async () => {
  await twin?.close();
  await rm(folder, { recursive: true, force: true });
});

const servers = (page: Page) => page.getByRole('region', { name: 'Servers' }).getByRole('table');

test('an address is checked question by question and becomes a backend', async ({ page, client }) => {
  await open(page, '/backends');
  await page.getByRole('link', { name: 'Add a backend' }).click();
  await page.getByLabel('Address').fill('gpu-1:8000');
  await expect(page.getByText('gpu-1:8000 is no address')).toBeVisible();
  await page.getByLabel('Address').fill('http://127.0.0.1:9');
  await page.getByRole('button', { name: 'Check the server' }).click();
  await expect(page.locator('[data-check=failed]')).toContainText('127.0.0.1:9');
  await page.getByLabel('Address').fill(twin.url);
  await page.getByRole('button', { name: 'Check the server' }).click();
  const list = page.locator('[data-check=ok]');
  await expect(list).toBeVisible({ timeout: 30_000 });
  for (const item of [
    'kind of server',
    'ids in, ids out',
    'log-probabilities',
    'scoring',
    'constraints',
    'new weights',
  ])
    await expect(list.getByRole('listitem').filter({ hasText: item })).toContainText('works');
  await list.getByText('ids in, ids out').click();
  await expect(list.getByText('/generate').first()).toBeVisible();
  await page.getByLabel('Name').fill('remote');
  await page.getByRole('button', { name: 'Add', exact: true }).click();
  await page.waitForURL(/\/backends\/remote$/);
  await expect(servers(page).getByRole('row').nth(1)).toContainText('serves');
  await expect(pageHeader(page)).toContainText('sglang');
  expect(await overflow(page)).toBe(0);
  const { items } = await client.audit.list.query({ limit: 20 });
  expect(items.some((entry) => entry.resource === 'backend://remote')).toBe(true);
});

test('new weights in the middle of a run are seen token by token', async ({ page, client }) => {
  await open(page, '/backends/remote');
  await page.getByRole('button', { name: 'Update weights' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Folder or file').fill(join(folder, 'step-2.gguf'));
  await dialog.getByLabel('version').fill('step-2');
  await dialog.getByLabel('generations under way').selectOption('interrupt');
  await twin.setFaults({ msPerToken: MS_PER_TOKEN });
  const { runId } = await client.runs.start.mutate({
    skill: 'tutorial',
    dataset: 'tutorial',
    backend: 'remote',
    tasks: 6,
    groupSize: 4,
    seed: 5,
  });
  // Some have ended, most are under way.
  await expect
    .poll(async () => (await client.runs.get.query({ runId })).generatedTokens, { timeout: 60_000 })
    .toBeGreaterThan(50);
  await dialog.getByRole('button', { name: 'Update', exact: true }).click();
  await expect(dialog).toHaveCount(0, { timeout: 30_000 });
  await expect(page.locator('[data-update=succeeded]').first()).toContainText('step-2');
  await expect(servers(page).getByRole('row').nth(1)).toContainText('step-2');
  await twin.setFaults({ msPerToken: 0 });
  await waitForRun(client, runId, 'completed');

  const run = await client.runs.get.query({ runId });
  const rows = run.groups.flatMap((group) => group.trajectories);
  expect(rows.filter((row) => row.status !== 'completed' && row.status !== 'truncated')).toEqual([]);
  const details = await Promise.all(rows.map(({ trajectoryId }) => client.trajectories.get.query({ trajectoryId })));
  const mixed = details.find(({ sequences }) =>
    sequences.some(({ weightVersions }) => new Set(weightVersions.map(({ version }) => version)).size > 1),
  );
  if (!mixed) throw new Error('No trajectory was sampled by both weights.');
  const spans = mixed.sequences[0]?.weightVersions ?? [];
  for (const { version } of spans) expect(version, 'every token has one version').not.toContain('→');
  const first = spans[0];
  const last = spans.at(-1);
  await open(page, `/runs/${runId}/trajectories/${mixed.trajectoryId}`);
  await expect(pageHeader(page)).toContainText('weights');
  await page.getByRole('group', { name: 'Colour tokens by' }).getByText('weights', { exact: true }).click();
  await expect(page.getByRole('region', { name: 'Tokens' }).getByText('step-2')).toBeVisible();
  for (const span of [first, last]) {
    await page.goto(`/runs/${runId}/trajectories/${mixed.trajectoryId}?token=${span?.start}`);
    await expect(tokenFact(page, 'weights')).toHaveText(span?.version ?? '');
    await expect(tokenFact(page, 'mask')).toHaveText('1 · sampled');
  }
  await expect(tokenMap(page)).toBeVisible();
});

test('an operator pauses and resumes it, and a run waits meanwhile', async ({ page, client }) => {
  await open(page, '/backends/remote');
  await page.getByRole('button', { name: 'Pause' }).click();
  await expect(pageHeader(page)).toContainText('paused');
  await expect(page.getByRole('button', { name: 'Resume' })).toBeVisible();
  await page.getByRole('button', { name: 'Resume' }).click();
  await expect(page.getByRole('button', { name: 'Pause' })).toBeVisible();
  await expect(servers(page).getByRole('row').nth(1)).toContainText('serves');
  const { items } = await client.audit.list.query({ limit: 20 });
  expect(items.map((entry) => entry.actionType)).toEqual(expect.arrayContaining(['pause_backend', 'resume_backend']));
});

test('a server that goes away makes the run wait with the reason, and it goes on when the server is back', async ({
  page,
  client,
}) => {
  await twin.setFaults({ msPerToken: 5 });
  const { runId } = await client.runs.start.mutate({
    skill: 'tutorial',
    dataset: 'tutorial',
    backend: 'remote',
    tasks: 4,
    groupSize: 4,
    seed: 6,
  });
  await expect
    .poll(async () => (await client.runs.get.query({ runId })).generatedTokens, { timeout: 60_000 })
    .toBeGreaterThan(50);
  await twin.kill();
  await open(page, `/runs/${runId}`);
  await expect(page.getByText(/This run waits: .*remote/)).toBeVisible({ timeout: 60_000 });
  await open(page, '/backends/remote');
  await expect(page.locator('[data-replica=down]')).toBeVisible();
  await twin.restart();
  await twin.setFaults({ msPerToken: 0 });
  await waitForRun(client, runId, 'completed');
  const run = await client.runs.get.query({ runId });
  for (const { trajectories } of run.groups)
    for (const { status } of trajectories) expect(['completed', 'truncated']).toContain(status);
  await open(page, `/runs/${runId}`);
  await expect(figure(page, 'failures')).toContainText('0');
});

test('a run is scored under a reference from its page; entropy and alternatives are shown of a token', async ({
  page,
  finished,
}) => {
  await open(page, `/runs/${finished.runId}`);
  await page.getByRole('button', { name: 'Score' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('backend').selectOption('tutorial');
  await dialog.getByLabel('alternatives a token').selectOption('3');
  await dialog.getByLabel('entropy too').check();
  await dialog.getByRole('button', { name: 'Score' }).click();
  await expect(page.locator('[data-score=succeeded]')).toContainText(/\d+ token sequences scored as reference/, {
    timeout: 60_000,
  });
  await open(page, `/runs/${finished.runId}/trajectories/${finished.trajectoryIds[0]}`);
  await page.getByRole('group', { name: 'Colour tokens by' }).getByText('entropy', { exact: true }).click();
  await tokenMap(page).focus();
  await page.keyboard.press('Control+Home');
  await page.keyboard.press(']');
  await expect(tokenFact(page, 'entropy')).toHaveText(/^\d+\.\d{4}$/);
  await expect(tokenFact(page, 'ref log p')).toHaveText(/^−?\d+\.\d{6} tutorial · tutorial$/);
  const alternatives = page.getByRole('region', { name: 'Alternatives' }).getByRole('listitem');
  await expect(alternatives).toHaveCount(3);
  await expect(alternatives.first()).not.toContainText('#');
});

test('a viewer sees the servers and can do nothing to them', async ({ browser, baseURL, watch, client }) => {
  const context = await browser.newContext({ storageState: viewerState, baseURL });
  watch.over(context);
  const page = await context.newPage();
  await open(page, '/backends/remote');
  await expect(servers(page)).toBeVisible();
  for (const name of ['Update weights', 'Pause', 'Check again', 'Remove'])
    await expect(page.getByRole('button', { name })).toHaveCount(0);
  await open(page, '/backends');
  await expect(page.getByRole('link', { name: 'Add a backend' })).toHaveCount(0);
  await context.close();
  await client.backends.remove.mutate({ name: 'remote' }).catch(() => undefined);
});
