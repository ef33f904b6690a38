/**
 * Follows a log from a cursor: subscribe first, read what is there, then read again whenever it grew. Because every
 * entry comes from the log in order of its number, nothing is missed or sent twice, over reconnects and restarts too;
 * and because a wake-up carries no data, a slow reader holds one flag and one batch, never a queue.
 */
import type { RunLogBus } from './run-log-bus';

/** At most this many entries in one batch. */
export const MAX_BATCH = 100;
/** Waited after a wake-up, so that what is written in one breath is sent in one batch. */
const GATHER_MS = 25;
/** Safety net for a wake-up that was lost on its way between processes. */
const POLL_MS = 3_000;

export interface FollowOptions<Entry extends { seq: number }> {
  runId: string;
  /** Entries with a larger `seq` are sent. */
  afterSeq: number;
  /** Entries after `afterSeq`, in order, at most `limit`. */
  read(afterSeq: number, limit: number): Promise<Entry[]>;
  runLog: RunLogBus;
  signal?: AbortSignal;
  /** Waited for before each read. */
  connectionDrained?: (signal: AbortSignal | undefined) => Promise<void>;
  pollMs?: number;
  gatherMs?: number;
}

export async function* followLog<Entry extends { seq: number }>(
  options: FollowOptions<Entry>,
): AsyncGenerator<Entry[], void> {
  const { runId, read, runLog, signal, pollMs = POLL_MS, gatherMs = GATHER_MS } = options;
  let afterSeq = options.afterSeq;
  let grew = false;
  let wake: (() => void) | null = null;
  const onGrowth = (): void => {
    grew = true;
    wake?.();
  };
  const unsubscribe = runLog.subscribe(runId, onGrowth);
  const onAbort = (): void => wake?.();
  signal?.addEventListener('abort', onAbort);
  try {
    while (!signal?.aborted) {
      await options.connectionDrained?.(signal);
      grew = false;
      const batch = await read(afterSeq, MAX_BATCH);
      const last = batch.at(-1);
      if (last) {
        yield batch;
        afterSeq = last.seq;
      }
      if (batch.length >= MAX_BATCH) continue;
      if (!grew)
        await sleepUntil(
          pollMs,
          (resolve) => (wake = resolve),
          () => grew || (signal?.aborted ?? false),
        );
      wake = null;
      if (grew && gatherMs > 0) await new Promise((resolve) => setTimeout(resolve, gatherMs));
    }
  } finally {
    unsubscribe();
    signal?.removeEventListener('abort', onAbort);
  }
}

/** Resolves after `ms`, or when the handed-out function is called, or at once when it is already time. */
function sleepUntil(ms: number, handOut: (resolve: () => void) => void, already: () => boolean): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    handOut(() => {
      clearTimeout(timer);
      resolve();
    });
    if (already()) {
      clearTimeout(timer);
      resolve();
    }
  });
}
