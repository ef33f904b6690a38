/** Which of these runs were cancelled: a worker asks for the runs whose trajectories it holds. */
import { and, eq, inArray } from 'drizzle-orm';
import type { Queryable } from '../connection';
import { runs } from '../schema';

export async function cancelledRunIds(q: Queryable, runIds: readonly string[]): Promise<string[]> {
  if (runIds.length === 0) return [];
  const rows = await q
    .select({ id: runs.id })
    .from(runs)
    .where(and(inArray(runs.id, [...runIds]), eq(runs.status, 'cancelled')));
  return rows.map((row) => row.id);
}
