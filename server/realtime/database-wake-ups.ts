/**
 * Wake-ups between processes on PostgreSQL: NOTIFY says which run's log grew, LISTEN passes it to this process's bus.
 * The embedded database has one process, so there the bus alone is enough. A lost notice costs a moment: followers poll.
 */
import type { Database } from '../../db/connection';
import { listenForRunGrowth, notifyRunGrowth } from '../../db/queries/run-growth';
import type { Logger } from '../observability/logger';
import { createRunLogBus, type RunLogBus } from './run-log-bus';

/** At most one notice a run in this time, so that a fast writer does not flood the server. */
const NOTICE_INTERVAL_MS = 50;

export interface SharedRunLogBus extends RunLogBus {
  followers(): number;
  close(): Promise<void>;
}

export async function createSharedRunLogBus(database: Database, logger: Logger): Promise<SharedRunLogBus> {
  const local = createRunLogBus();
  if (database.kind === 'embedded') return { ...local, close: async () => undefined };
  const stop = await listenForRunGrowth(database, (runId) => local.grew(runId));
  const due = new Map<string, NodeJS.Timeout>();
  return {
    ...local,
    grew(runId) {
      local.grew(runId);
      if (due.has(runId)) return;
      const timer = setTimeout(() => {
        due.delete(runId);
        notifyRunGrowth(database, runId).catch((error) =>
          logger.warn({ err: error, runId }, 'A notice of growth was lost'),
        );
      }, NOTICE_INTERVAL_MS);
      due.set(runId, timer);
    },
    async close() {
      for (const timer of due.values()) clearTimeout(timer);
      due.clear();
      await stop();
    },
  };
}
