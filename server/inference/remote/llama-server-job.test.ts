/** The main job on a real llama-server (STUDIO_TEST_LLAMA_SERVER): the whole studio without pages, the tutorial's model and tasks. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { silentLogger } from '../../observability/logger';
import { expectNumbersOf, packageRoot, startedStudio } from '../../testing/started-studio';
import { EmbeddedBackend } from '../embedded/embedded-backend';
import { startServer } from '../testing/real-servers';

const program = process.env.STUDIO_TEST_LLAMA_SERVER ?? '';
const modelPath = join(packageRoot, 'samples', 'models', 'tutorial.gguf');
const TASKS = 3;
const GROUP = 4;
/** Limit against hanging. */
const HANG_MS = 600_000;

describe.skipIf(program === '')('the main job on a real llama-server', () => {
  it('stores exact ids with their raw numbers, masks and steps', { timeout: HANG_MS }, async () => {
    const dataDir = await mkdtemp(join(tmpdir(), 'studio-llama-server-'));
    const server = await startServer({
      program,
      args: (port) => [
        ...['--host', '127.0.0.1', '--port', String(port), '--model', modelPath, '--alias', 'tutorial'],
        ...['--ctx-size', '8192', '--parallel', '4', '--threads', '2', '--metrics', '--flash-attn', 'off'],
        ...['--cache-type-k', 'f32', '--cache-type-v', 'f32'],
      ],
    });
    const { client, ended, tokensOf, stop } = await startedStudio(dataDir);
    const options = { name: 'teacher', modelPath, threads: 1, logger: silentLogger, maxSequences: 2 };
    const teacher = await EmbeddedBackend.open(options);
    try {
      const added = await client.backends.add.mutate({ name: 'remote', kind: 'auto', urls: [server.url] });
      expect(added.checks[0]).toMatchObject({ kind: 'llama-server', ok: true });
      expect(added.checks[0]?.capabilities).toMatchObject({
        tokenIds: true,
        logprobs: 'raw',
        canScore: true,
        entropy: true,
        constraints: ['json_schema', 'regex', 'grammar', 'choice'],
        maxInFlight: 4,
      });
      const wanted = { skill: 'tutorial', dataset: 'tutorial', tasks: TASKS, groupSize: GROUP, seed: 3 };
      const { runId } = await client.runs.start.mutate({ ...wanted, backend: 'remote' });
      const rows = await ended(runId, HANG_MS);
      expect(rows).toHaveLength(TASKS * GROUP);
      let sampledTokens = 0;
      for (const { trajectoryId } of rows) {
        const detail = await client.trajectories.get.query({ trajectoryId });
        for (const { logprobKind, approximate } of detail.sequences)
          expect({ logprobKind, approximate }).toEqual({ logprobKind: 'raw', approximate: false });
        expect(detail.steps.length).toBeGreaterThan(0);
        sampledTokens += await expectNumbersOf(teacher, await tokensOf(trajectoryId));
      }
      expect(sampledTokens).toBeGreaterThan(TASKS * GROUP);
    } finally {
      await teacher.close();
      await stop();
      await server.stop();
      await rm(dataDir, { recursive: true, force: true });
    }
  });
});
