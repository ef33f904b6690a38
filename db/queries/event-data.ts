/** What happened in a session, without its tokens: for pages that draw steps. */
import { and, asc, eq, inArray } from 'drizzle-orm';
import type { Queryable } from '../connection';
import { runs, sessionEvents } from '../schema';

export interface EventDataRow {
  type: string;
  data: unknown;
}

/** In order. Only events of these types. */
export async function readEventData(
  q: Queryable,
  sessionId: string,
  types: readonly string[],
): Promise<EventDataRow[]> {
  return await q
    .select({ type: sessionEvents.type, data: sessionEvents.data })
    .from(sessionEvents)
    .where(and(eq(sessionEvents.sessionId, sessionId), inArray(sessionEvents.type, [...types])))
    .orderBy(asc(sessionEvents.seq));
}

export async function runExists(q: Queryable, runId: string): Promise<boolean> {
  const [row] = await q.select({ id: runs.id }).from(runs).where(eq(runs.id, runId));
  return row !== undefined;
}
