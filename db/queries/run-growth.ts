/** LISTEN and NOTIFY about the growth of run logs, between processes that share a PostgreSQL server. */
import type { Database } from '../connection';

const CHANNEL = 'studio_run_log_grew';

/** Calls `grew` with the run's id for every notice of any process; the returned function ends it. postgres.js reconnects by itself. */
export async function listenForRunGrowth(
  database: Database,
  grew: (runId: string) => void,
): Promise<() => Promise<void>> {
  const { unlisten } = await database.sql.listen(CHANNEL, grew);
  return unlisten;
}

export async function notifyRunGrowth(database: Database, runId: string): Promise<void> {
  await database.sql.notify(CHANNEL, runId);
}
