/** The whole studio without pages, in this process, with a client that may do everything. For tests only. */
import { fileURLToPath } from 'node:url';
import { createTRPCClient, httpLink } from '@trpc/client';
import { expect } from 'vitest';
import { systemAmbient } from '../core/ambient';
import { decodeTokens, type WireTokens } from '../core/tokens/wire';
import { transformer } from '../core/transformer';
import { parseEnvironment } from '../env';
import type { InferenceBackend } from '../inference/backend';
import { silentLogger } from '../observability/logger';
import type { AppRouter } from '../routers/app-router';
import { readServerFile } from '../server-file';
import { startStudio } from '../studio';

export const packageRoot = fileURLToPath(new URL('../..', import.meta.url));

type Client = ReturnType<typeof createTRPCClient<AppRouter>>;
type Row = Awaited<ReturnType<Client['runs']['get']['query']>>['groups'][number]['trajectories'][number];

export interface StartedStudio {
  client: Client;
  url: string;
  token: string;
  /** What any request by hand must carry. */
  headers: Record<string, string>;
  /** Waits until the run is completed; its trajectories, of which none may have failed. */
  ended(runId: string, timeoutMs: number): Promise<Row[]>;
  /** Of the first sequence. */
  tokensOf(trajectoryId: string): Promise<WireTokens>;
  stop(): Promise<void>;
}

export async function startedStudio(dataDir: string): Promise<StartedStudio> {
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
  const file = await readServerFile(dataDir);
  if (!file) throw new Error('server.json is missing');
  const { url, token } = file;
  const headers = { authorization: `Bearer ${token}` };
  const client: Client = createTRPCClient<AppRouter>({
    links: [httpLink({ url: `${url}/api/trpc`, transformer, headers })],
  });
  return {
    client,
    url,
    token,
    headers,
    async ended(runId, timeoutMs) {
      const status = async () => (await client.runs.get.query({ runId })).status;
      await expect.poll(status, { timeout: timeoutMs, interval: 100 }).toBe('completed');
      const rows = (await client.runs.get.query({ runId })).groups.flatMap(({ trajectories }) => trajectories);
      expect(rows.flatMap(({ errorMessage }) => errorMessage ?? [])).toEqual([]);
      return rows;
    },
    async tokensOf(trajectoryId) {
      const response = await fetch(`${url}/api/trajectories/${trajectoryId}/tokens?sequence=0`, { headers });
      return decodeTokens(await response.arrayBuffer());
    },
    stop: () => studio.stop(),
  };
}

/**
 * Turn by turn, every sampled token has the number that the teacher gives it within 1e-3, and what lies between the turns
 * has none. Returns how many tokens were sampled.
 */
export async function expectNumbersOf(
  teacher: Pick<InferenceBackend, 'getLogprobs'>,
  { ids, mask, logprobs }: WireTokens,
): Promise<number> {
  let sampled = 0;
  for (let start = 0; start < ids.length; ) {
    let end = start;
    while (end < ids.length && mask[end] === 1) end++;
    if (end > start) {
      const [scores] = await teacher.getLogprobs([
        { promptIds: ids.slice(0, start), completionIds: ids.slice(start, end) },
      ]);
      expect(scores?.logprobs).toHaveLength(end - start);
      for (const [k, value] of (scores?.logprobs ?? []).entries())
        expect(Math.abs(value - (logprobs[start + k] ?? Number.NaN)), `token ${start + k}`).toBeLessThan(1e-3);
      sampled += end - start;
    } else expect(logprobs[start], `token ${start}`).toBeNaN();
    start = Math.max(end, start + 1);
  }
  return sampled;
}
