/** A running process in which nothing runs, for tests of verbs; what a test needs of it is given. */
import { NotFound } from '../../core/errors';
import type { RunningProcess } from '../context';
import { ScoreJobs } from '../scores/score-jobs';
import { SecretBox } from '../secrets/secret-box';

export function idleProcess(parts: Partial<RunningProcess> = {}): RunningProcess {
  const process: RunningProcess = {
    wakeWorkers: () => undefined,
    cancelRun: () => undefined,
    trouble: () => null,
    runLogGrew: () => undefined,
    backendHealth: async () => ({ ok: true, message: '', modelName: null }),
    planTurns: async () => null,
    backendLive: async (name) => {
      throw new NotFound(`No backend called ${name} is open in this test.`);
    },
    backendHeld: async (name) => ({ backend: await process.backendLive(name), release: () => undefined }),
    backendsOf: async (name) => [await process.backendLive(name)],
    checkServer: async ({ url }) => {
      throw new NotFound(`Nothing answers at ${url} in this test.`);
    },
    backendHistory: () => ({ stepMs: 5_000, replicas: [] }),
    secrets: new SecretBox(new Uint8Array(32).fill(7)),
    scoreJobs: new ScoreJobs(Date.now),
    ...parts,
  };
  return process;
}
