/** Runs while they run: cancelled, watched over a connection that breaks, started twice at once. */
import type { Page, WebSocketRoute } from '@playwright/test';
import { expect, figure, open, pageHeader, test, textOf, waitForRun } from './journey';

const finishedNumber = async (page: Page): Promise<number> =>
  Number(/^([\d,]+)/.exec(await textOf(figure(page, 'finished')))?.[1]?.replace(',', '') ?? Number.NaN);

test('a cancelled run keeps what had ended and counts nothing else', async ({ page, client }) => {
  const { runId } = await client.runs.start.mutate({ skill: 'tutorial', dataset: 'tutorial', groupSize: 16, seed: 3 });
  await open(page, `/runs/${runId}`);
  await expect.poll(() => finishedNumber(page), { timeout: 60_000 }).toBeGreaterThan(2);
  await pageHeader(page).getByRole('button', { name: 'Cancel' }).click();
  const dialog = page.getByRole('dialog', { name: 'Cancel this run?' });
  await expect(dialog).toContainText(/\d+ trajector(y is|ies are) finished and sta/);
  await dialog.getByRole('button', { name: 'Keep it running' }).click();
  await expect(dialog).toBeHidden();
  await pageHeader(page).getByRole('button', { name: 'Cancel' }).click();
  await dialog.getByRole('button', { name: 'Cancel the run' }).click();
  await expect(pageHeader(page).getByText('cancelled')).toBeVisible({ timeout: 60_000 });
  await expect(pageHeader(page).getByRole('button', { name: 'Cancel' })).toHaveCount(0);
  // It is called so at once; its last trajectories stop a moment later.
  await expect.poll(async () => (await client.runs.get.query({ runId })).counts.running).toBe(0);

  const run = await client.runs.get.query({ runId });
  const rows = run.groups.flatMap((group) => group.trajectories);
  const counted = rows.filter((row) => row.status === 'completed' || row.status === 'truncated');
  const cancelled = rows.filter((row) => row.status === 'cancelled');
  expect(counted.length).toBeGreaterThan(2);
  expect(counted.length + cancelled.length).toBe(512);
  for (const row of cancelled) expect(row.advantages?.some((value) => value !== 0) ?? false).toBe(false);
  const mean = counted.reduce((sum, row) => sum + (row.reward ?? 0), 0) / counted.length;
  expect(run.meanReward).toBeCloseTo(mean, 9);
  await expect(figure(page, 'finished')).toContainText('/ 512');
  await expect(page.getByText(`${cancelled.length} cancelled`)).toBeVisible();
  await expect(figure(page, 'mean reward').locator('..')).toHaveAttribute(
    'title',
    new RegExp(`over ${counted.length} traj`),
  );

  // What had ended is still there to be read.
  const kept = counted[0]?.trajectoryId ?? '';
  await open(page, `/runs/${runId}/trajectories/${kept}`);
  await expect(pageHeader(page)).toContainText(/generated [1-9]\d* of \d+ tokens/);
  await expect(page.getByRole('application', { name: 'Tokens of the trajectory' })).toBeVisible();
  // One that never began says so.
  const never = cancelled.find((row) => row.startedAtMs === null)?.trajectoryId ?? '';
  await open(page, `/runs/${runId}/trajectories/${never}`);
  await expect(pageHeader(page)).toContainText('cancelled');
  await expect(page.getByText('This trajectory has no tokens.')).toBeVisible();
});

test('a connection that breaks in the middle of a run comes back, and the page ends complete', async ({
  page,
  context,
  client,
  watch,
}) => {
  watch.allow(/ERR_INTERNET_DISCONNECTED|WebSocket connection|Failed to fetch|status of 0/);
  const sockets: WebSocketRoute[] = [];
  await page.routeWebSocket(/\/api\/ws/, (socket) => {
    socket.connectToServer();
    sockets.push(socket);
  });
  const { runId } = await client.runs.start.mutate({
    skill: 'tutorial',
    dataset: 'tutorial',
    tasks: 12,
    groupSize: 6,
    seed: 5,
  });
  await open(page, `/runs/${runId}`);
  await page.evaluate(() => Object.assign(window, { sameDocument: true }));
  await expect.poll(() => finishedNumber(page), { timeout: 60_000 }).toBeGreaterThan(2);
  await expect.poll(() => sockets.length).toBeGreaterThan(0);
  const seen = await finishedNumber(page);
  expect(seen).toBeLessThan(72);
  await context.setOffline(true);
  await Promise.all(sockets.splice(0).map((socket) => socket.close({ code: 1001 })));
  // The run goes on without being watched.
  await expect
    .poll(async () => (await client.runs.get.query({ runId })).counts.completed, { timeout: 60_000 })
    .toBeGreaterThan(seen + 5);
  await context.setOffline(false);
  await waitForRun(client, runId, 'completed');
  await expect(figure(page, 'finished')).toHaveText(/^72 \/ 72/, { timeout: 60_000 });
  await expect(pageHeader(page).getByText('completed')).toBeVisible();
  const rows = page.getByRole('region', { name: 'Trajectories' }).getByRole('row');
  await expect(rows).toHaveCount(73);
  await expect(rows.filter({ hasText: /running|queued/ })).toHaveCount(0);
  expect(await page.evaluate(() => 'sameDocument' in window)).toBe(true);
});

test('two tabs that start at the same moment start two runs, and both complete', async ({ page, context, client }) => {
  const tabs = [page, await context.newPage()];
  for (const tab of tabs) {
    await open(tab, '/runs/new');
    await tab.getByLabel('Group size').fill('2');
    await tab.getByLabel('Tasks', { exact: true }).fill('2');
  }
  await Promise.all(tabs.map((tab) => tab.getByRole('button', { name: 'Start', exact: true }).click()));
  await Promise.all(tabs.map((tab) => tab.waitForURL(/\/runs\/run_/)));
  const runIds = tabs.map((tab) => tab.url().split('/').at(-1) ?? '');
  expect(new Set(runIds).size).toBe(2);
  for (const runId of runIds) await waitForRun(client, runId, 'completed');
  for (const tab of tabs) {
    await expect(pageHeader(tab).getByText('completed')).toBeVisible();
    await expect(figure(tab, 'finished')).toHaveText(/^4 \/ 4/);
  }
});
