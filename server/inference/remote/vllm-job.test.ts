/** The main job on a real vLLM (STUDIO_TEST_VLLM): the whole studio without pages, the tutorial's policy and tasks. */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { runLoss } from '../../commands/loss';
import { silentLogger } from '../../observability/logger';
import { expectNumbersOf, packageRoot, startedStudio } from '../../testing/started-studio';
import { EmbeddedBackend } from '../embedded/embedded-backend';
import { decodeGguf } from '../gguf/read';
import { writeCheckpoint } from '../gguf/to-checkpoint';
import { startVllm } from '../testing/real-servers';
import { widenHeads } from '../testing/wide-heads';

const program = process.env.STUDIO_TEST_VLLM ?? '';
const modelPath = join(packageRoot, 'samples', 'models', 'tutorial.gguf');
const CONTEXT = 512;
const TASKS = 4;
const GROUP = 8;
/** Of 32 trajectories each: three standard deviations of the difference when both play alike. */
const SAME_RATE = 0.35;
/** Limit against hanging. */
const HANG_MS = 900_000;

describe.skipIf(program === '')('the main job on a real vLLM', () => {
  it('plays as well as on the embedded model, with exact ids, raw numbers and a ratio of one', {
    timeout: 2 * HANG_MS,
  }, async () => {
    const folder = await mkdtemp(join(tmpdir(), 'studio-vllm-'));
    const dataDir = join(folder, 'data');
    const checkpoint = join(folder, 'tutorial');
    await writeCheckpoint(checkpoint, decodeGguf(await readFile(modelPath), modelPath));
    await widenHeads(checkpoint);
    const server = await startVllm(program, checkpoint, { contextLength: CONTEXT });
    const { client, url, headers, ended, tokensOf, stop } = await startedStudio(dataDir);
    const options = { name: 'teacher', modelPath, threads: 1, logger: silentLogger, maxSequences: 2 };
    const teacher = await EmbeddedBackend.open(options);
    try {
      const added = await client.backends.add.mutate({ name: 'remote', kind: 'auto', urls: [server.url] });
      expect(added.checks[0]).toMatchObject({ kind: 'vllm', ok: true });
      expect(added.checks[0]?.capabilities).toMatchObject({
        tokenIds: true,
        logprobs: 'raw',
        canScore: true,
        constraints: ['json_schema', 'regex', 'grammar', 'choice'],
        weightSources: ['checkpoint', 'external'],
        canPause: true,
        contextLength: CONTEXT,
      });
      await client.backends.add.mutate({ name: 'here', kind: 'embedded', settings: { modelPath } });

      const run = async (backend: string) => {
        const wanted = { skill: 'tutorial', dataset: 'tutorial', backend, tasks: TASKS, groupSize: GROUP, seed: 3 };
        const { runId } = await client.runs.start.mutate(wanted);
        const rows = await ended(runId, HANG_MS);
        expect(rows).toHaveLength(TASKS * GROUP);
        return { runId, rows };
      };
      const remote = await run('remote');
      const embedded = await run('here');
      const rate = ({ rows }: Awaited<ReturnType<typeof run>>) =>
        rows.filter((row) => (row.reward ?? 0) > 0).length / rows.length;
      expect(rate(remote)).toBeGreaterThan(0);
      expect(Math.abs(rate(remote) - rate(embedded))).toBeLessThan(SAME_RATE);

      let sampledTokens = 0;
      for (const row of remote.rows) {
        const detail = await client.trajectories.get.query({ trajectoryId: row.trajectoryId });
        for (const { logprobKind, approximate } of detail.sequences)
          expect({ logprobKind, approximate }).toEqual({ logprobKind: 'raw', approximate: false });
        sampledTokens += await expectNumbersOf(teacher, await tokensOf(row.trajectoryId));
      }
      expect(sampledTokens).toBeGreaterThan(TASKS * GROUP);

      // The same weights score the run: the ratio between policy and sampler is one, token for token.
      const runId = remote.runId;
      await client.runs.score.mutate({ runId, as: 'policy', backend: 'remote' });
      const scoring = async () => (await client.runs.scoreStatus.query({ runId }))?.status;
      await expect.poll(scoring, { timeout: HANG_MS, interval: 200 }).not.toBe('running');
      const job = await client.runs.scoreStatus.query({ runId });
      expect(job).toMatchObject({ status: 'succeeded', error: null });
      const batch = join(folder, 'batch.jsonl');
      await writeFile(batch, await (await fetch(`${url}/api/runs/${runId}/export`, { headers })).text());
      const loss = await runLoss(batch, { denominator: 'old', klCoef: 0 });
      expect(Math.abs(loss.ratio_mean - 1)).toBeLessThan(1e-4);
      expect(loss).toMatchObject({ clip_fraction: 0, clamped: 0 });
      expect(loss.masked_tokens).toBe(sampledTokens);
    } finally {
      await teacher.close();
      await stop();
      await server.stop();
      await rm(folder, { recursive: true, force: true });
    }
  });
});
