/** `studio rollout`: starts a run, shows its progress and prints what came of it as one JSON object. */
import { setTimeout as sleep } from 'node:timers/promises';
import { Cancelled } from '../core/errors';
import type { RunDetail } from '../core/views';
import type { StartRunRequest, StudioClient } from './client';
import { createProgress, runProgress } from './progress';

export interface RolloutReport {
  run_id: string;
  trajectories: number;
  completed: number;
  failed: number;
  cancelled: number;
  mean_reward: number | null;
  groups: number;
  seconds: number;
}

const POLL_MS = 400;
const ENDED = new Set(['completed', 'cancelled', 'failed']);

/**
 * @param tell hears each notice of the run when it comes: what its reader must know, and why it waits.
 * @param signal stops the watching; the run itself goes on where it runs.
 */
export async function rollout(
  client: StudioClient,
  request: StartRunRequest,
  { signal, tell }: { signal: AbortSignal; tell(notice: string): void },
): Promise<{ report: RolloutReport; run: RunDetail }> {
  const runId = await client.startRun(request);
  const progress = createProgress(process.stderr);
  let told: readonly string[] = [];
  try {
    for (;;) {
      const run = await client.getRun(runId);
      const fresh = run.notices.filter((notice) => !told.includes(notice));
      if (fresh.length > 0) progress.clear();
      for (const notice of fresh) tell(notice);
      told = run.notices;
      progress.show(runProgress(run));
      if (ENDED.has(run.status)) return { report: reportOf(run), run };
      if (signal.aborted) throw new Cancelled(watchingEnded(client, runId), { runId });
      await pause(POLL_MS, signal);
    }
  } finally {
    progress.end();
  }
}

function watchingEnded(client: StudioClient, runId: string): string {
  return client.url === null
    ? `Stopped. The run ${runId} goes on where it stands when the studio is started again on this data folder.`
    : `Stopped watching. The run ${runId} goes on in the studio at ${client.url}.`;
}

export function reportOf(run: RunDetail): RolloutReport {
  const { counts } = run;
  return {
    run_id: run.runId,
    trajectories: run.taskCount * run.groupSize,
    completed: counts.completed + counts.truncated,
    failed: counts.failed + counts.timed_out,
    cancelled: counts.cancelled,
    mean_reward: run.meanReward,
    groups: run.taskCount,
    seconds: Math.round(((run.finishedAtMs ?? run.createdAtMs) - run.createdAtMs) / 10) / 100,
  };
}

/** Ends early, without an error, when the watching is stopped. */
async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal }).catch(() => undefined);
}
