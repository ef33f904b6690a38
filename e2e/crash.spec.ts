/** What a person fears most: the machine dies in the middle of a run. Nothing may be lost and nothing done twice. */
import { execFile } from 'node:child_process';
import { mkdtemp, readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from '@playwright/test';
import { program } from './program';
import { removeDataDir, root, startStudioProcess } from './server';

const run = promisify(execFile);

test('kill -9 in the middle of a run, then a start: the run ends, no event is lost, no trajectory is there twice', async () => {
  test.setTimeout(300_000);
  const first = await startStudioProcess();
  const client = await program(first.dataDir);
  const { runId } = await client.runs.start.mutate({
    skill: 'tutorial',
    dataset: 'tutorial',
    tasks: 16,
    groupSize: 8,
    seed: 11,
  });
  const finished = async (c: typeof client): Promise<number> => {
    const { counts } = await c.runs.get.query({ runId });
    return counts.completed + counts.truncated + counts.failed;
  };
  await expect.poll(() => finished(client), { timeout: 120_000, intervals: [50] }).toBeGreaterThan(5);
  const before = await client.runs.get.query({ runId });
  expect(before.status).toBe('running');
  first.process.kill('SIGKILL');
  await new Promise((done) => first.process.once('exit', done));

  const second = await startStudioProcess({ dataDir: first.dataDir });
  const again = await program(second.dataDir);
  await expect
    .poll(async () => (await again.runs.get.query({ runId })).status, { timeout: 180_000, intervals: [200] })
    .toBe('completed');
  const after = await again.runs.get.query({ runId });
  const rows = after.groups.flatMap((group) => group.trajectories);
  expect(rows).toHaveLength(128);
  expect(new Set(rows.map((row) => row.trajectoryId)).size).toBe(128);
  expect(after.counts.completed + after.counts.truncated).toBe(128);
  expect(after.groups.every((group) => group.completed)).toBe(true);
  // What had ended before the kill is what it was.
  for (const group of before.groups)
    for (const row of group.trajectories)
      if (row.status === 'completed' || row.status === 'truncated')
        expect(rows.find((r) => r.trajectoryId === row.trajectoryId)).toMatchObject({
          reward: row.reward,
          stepRewards: row.stepRewards,
          totalTokens: row.totalTokens,
        });

  const folder = await mkdtemp(join(tmpdir(), 'studio-export-'));
  const file = join(folder, 'batch.jsonl');
  const environment = { ...process.env, STUDIO_DATA_DIR: second.dataDir };
  await run(process.execPath, [join(root, 'dist', 'cli.js'), 'export', runId, '--out', file], { env: environment });
  const lines = (await readFile(file, 'utf8'))
    .trimEnd()
    .split('\n')
    .map(
      (line) =>
        JSON.parse(line) as {
          trajectory_id: string;
          sequence_index: number;
          token_ids: number[];
          generation_mask: number[];
          step_index: number[];
          step_rewards: number[];
        },
    );
  expect(new Set(lines.map((line) => `${line.trajectory_id} ${line.sequence_index}`)).size).toBe(lines.length);
  expect(lines).toHaveLength(128);
  for (const line of lines) {
    expect(line.generation_mask).toHaveLength(line.token_ids.length);
    // Every step is there once: sampled tokens count up from step 0 without a gap.
    const steps = [...new Set(line.step_index.filter((_, k) => line.generation_mask[k] === 1))];
    expect(steps).toEqual(line.step_rewards.map((_, t) => t));
  }
  const { stdout } = await run(
    process.execPath,
    [join(root, 'dist', 'cli.js'), 'loss', file, '--assume-on-policy', '--json'],
    { env: environment },
  );
  const loss = JSON.parse(stdout) as { loss: number; masked_tokens: number; ratio_mean: number };
  expect(loss.ratio_mean).toBeCloseTo(1, 6);
  expect(loss.masked_tokens).toBe(
    lines.reduce((sum, line) => sum + line.generation_mask.reduce((a, b) => a + b, 0), 0),
  );
  expect(await second.stop()).toBe(0);
  await removeDataDir(second.dataDir);
});

test('SIGTERM in the middle of a run ends cleanly, and the next start goes on', async () => {
  test.setTimeout(300_000);
  const first = await startStudioProcess();
  const client = await program(first.dataDir);
  const { runId } = await client.runs.start.mutate({
    skill: 'tutorial',
    dataset: 'tutorial',
    tasks: 16,
    groupSize: 8,
    seed: 12,
  });
  await expect
    .poll(async () => (await client.runs.get.query({ runId })).counts.completed, { timeout: 120_000, intervals: [50] })
    .toBeGreaterThan(3);
  expect(await first.stop()).toBe(0);
  const second = await startStudioProcess({ dataDir: first.dataDir });
  const again = await program(second.dataDir);
  await expect
    .poll(async () => (await again.runs.get.query({ runId })).status, { timeout: 180_000, intervals: [200] })
    .toBe('completed');
  const after = await again.runs.get.query({ runId });
  expect(after.counts.completed + after.counts.truncated).toBe(128);
  await second.stop();
  await removeDataDir(second.dataDir);
});

test('a second studio on a data folder in use, and one on a port in use, end with one sentence', async () => {
  test.setTimeout(120_000);
  const first = await startStudioProcess();
  await expect(startStudioProcess({ dataDir: first.dataDir })).rejects.toThrow(/in use/);
  const other = await mkdtemp(join(tmpdir(), 'studio-e2e-'));
  await expect(startStudioProcess({ dataDir: other, env: { PORT: new URL(first.url).port } })).rejects.toThrow(/port/i);
  await first.stop();
  await removeDataDir(first.dataDir);
  await removeDataDir(other);
});
