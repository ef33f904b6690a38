/** The main job on a real llama-server (STUDIO_TEST_LLAMA_SERVER): the whole studio without pages, the tutorial's model and tasks. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createTRPCClient, httpLink } from '@trpc/client';
import { describe, expect, it } from 'vitest';
import { systemAmbient } from '../../core/ambient';
import { decodeTokens } from '../../core/tokens/wire';
import { transformer } from '../../core/transformer';
import { parseEnvironment } from '../../env';
import { silentLogger } from '../../observability/logger';
import type { AppRouter } from '../../routers/app-router';
import { readServerFile } from '../../server-file';
import { startStudio } from '../../studio';
import { EmbeddedBackend } from '../embedded/embedded-backend';
import { startServer } from '../testing/real-servers';

const program = process.env.STUDIO_TEST_LLAMA_SERVER ?? '';
const packageRoot = fileURLToPath(new URL('../../..', import.meta.url));
const modelPath = join(packageRoot, 'samples', 'models', 'tutorial.gguf');
const TASKS = 3;
const GROUP = 4;

describe.skipIf(program === '')('the main job on a real llama-server', () => {
  it('stores exact ids with their raw numbers, masks and steps', { timeout: 600_000 }, async () => {
    const dataDir = await mkdtemp(join(tmpdir(), 'studio-llama-server-'));
    const server = await startServer({
      program,
      args: (port) => [
        ...['--host', '127.0.0.1', '--port', String(port), '--model', modelPath, '--alias', 'tutorial'],
        ...['--ctx-size', '8192', '--parallel', '4', '--threads', '2', '--metrics', '--flash-attn', 'off'],
        ...['--cache-type-k', 'f32', '--cache-type-v', 'f32'],
      ],
    });
    const studio = await startStudio({
      environment: parseEnvironment({ STUDIO_DATA_DIR: dataDir, PORT: '0', PATH: process.env.PATH }),
      ambient: systemAmbient(),
      logger: silentLogger,
      packageRoot,
      development: false,
      withPages: false,
      onFatal: (error) => {
        throw error;
      },
    });
    const teacher = await EmbeddedBackend.open({
      name: 'teacher',
      modelPath,
      threads: 1,
      logger: silentLogger,
      maxSequences: 2,
    });
    try {
      const file = await readServerFile(dataDir);
      if (!file) throw new Error('server.json is missing');
      const headers = { authorization: `Bearer ${file.token}` };
      const client = createTRPCClient<AppRouter>({
        links: [httpLink({ url: `${file.url}/api/trpc`, transformer, headers })],
      });
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
      const { runId } = await client.runs.start.mutate({
        skill: 'tutorial',
        dataset: 'tutorial',
        backend: 'remote',
        tasks: TASKS,
        groupSize: GROUP,
        seed: 3,
      });
      await expect
        .poll(async () => (await client.runs.get.query({ runId })).status, { timeout: 550_000, interval: 500 })
        .toBe('completed');
      const rows = (await client.runs.get.query({ runId })).groups.flatMap((group) => group.trajectories);
      expect(rows).toHaveLength(TASKS * GROUP);
      expect(rows.filter((row) => row.status === 'failed').map((row) => row.errorMessage)).toEqual([]);
      let sampledTokens = 0;
      for (const row of rows) {
        const detail = await client.trajectories.get.query({ trajectoryId: row.trajectoryId });
        expect(detail.sequences.every(({ logprobKind, approximate }) => logprobKind === 'raw' && !approximate)).toBe(
          true,
        );
        expect(detail.steps.length).toBeGreaterThan(0);
        const response = await fetch(`${file.url}/api/trajectories/${row.trajectoryId}/tokens?sequence=0`, { headers });
        const tokens = decodeTokens(await response.arrayBuffer());
        // What is stored is what another llama.cpp says of these very ids, turn by turn.
        for (let start = 0; start < tokens.ids.length; ) {
          let end = start;
          while (end < tokens.ids.length && tokens.mask[end] === 1) end++;
          if (end > start) {
            const pair = { promptIds: tokens.ids.slice(0, start), completionIds: tokens.ids.slice(start, end) };
            const [scored] = await teacher.getLogprobs([pair]);
            for (const [k, value] of (scored?.logprobs ?? []).entries())
              expect(Math.abs(value - (tokens.logprobs[start + k] ?? Number.NaN))).toBeLessThan(1e-3);
            sampledTokens += end - start;
          } else expect(tokens.logprobs[start]).toBeNaN();
          start = Math.max(end, start + 1);
        }
      }
      expect(sampledTokens).toBeGreaterThan(TASKS * GROUP);
    } finally {
      await teacher.close();
      await studio.stop();
      await server.stop();
      await rm(dataDir, { recursive: true, force: true });
    }
  });
});
