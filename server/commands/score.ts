/** `studio score`: begins the scoring of a run, shows its progress and waits for its end. */
import { setTimeout as sleep } from 'node:timers/promises';
import { Cancelled, Unavailable } from '../core/errors';
import type { ScoreJobView } from '../core/views';
import type { StudioClient } from './client';
import { createProgress, scoreProgress } from './progress';

const POLL_MS = 400;

/** @param signal stops the watching; what was scored stays. Throws Unavailable with the reason when the scoring failed. */
export async function score(
  client: StudioClient,
  request: Parameters<StudioClient['scoreRun']>[0],
  signal: AbortSignal,
): Promise<ScoreJobView> {
  let job = await client.scoreRun(request);
  const progress = createProgress(process.stderr);
  try {
    for (;;) {
      progress.show(scoreProgress(job));
      if (job.status !== 'running') break;
      if (signal.aborted) throw new Cancelled(watchingEnded(client, request.runId));
      await sleep(POLL_MS, undefined, { signal }).catch(() => undefined);
      const now = await client.scoreStatus(request.runId);
      if (!now)
        throw new Unavailable(
          `The scoring of ${request.runId} is gone: the studio was started again. Run the command again; what was scored is passed over.`,
        );
      job = now;
    }
  } finally {
    progress.end();
  }
  if (job.status === 'failed') throw new Unavailable(job.error ?? 'The scoring failed.');
  if (job.status === 'cancelled') throw new Cancelled('The scoring was cancelled. What was scored stays.');
  return job;
}

function watchingEnded(client: StudioClient, runId: string): string {
  return client.url === null
    ? `Stopped. What was scored of ${runId} stays; run the command again to go on.`
    : `Stopped watching. The scoring of ${runId} goes on in the studio at ${client.url}.`;
}
