/** Putting one trajectory back on the queue: to go on from its log, or to begin anew. */
import { and, eq, sql } from 'drizzle-orm';
import type { Queryable } from '../connection';
import { trajectories } from '../schema';

/** After a fault that is not its own; it is claimed again when `afterMs` has passed. */
export async function giveBackTrajectory(
  q: Queryable,
  input: { trajectoryId: string; workerId: string; afterMs: number },
): Promise<void> {
  await q
    .update(trajectories)
    .set({ workerId: null, leaseUntilMs: input.afterMs })
    .where(
      and(
        eq(trajectories.id, input.trajectoryId),
        eq(trajectories.workerId, input.workerId),
        eq(trajectories.status, 'running'),
      ),
    );
}

/**
 * Begins an unfinished trajectory anew, in a log of its own and with its whole time before it: its weights had become too
 * old. The old log stays. False when the worker does not hold it any more; nothing is changed then.
 */
export async function requeueTrajectory(
  q: Queryable,
  input: { trajectoryId: string; workerId: string; sessionId: string },
): Promise<boolean> {
  const rows = await q
    .update(trajectories)
    .set({
      status: 'queued',
      sessionId: input.sessionId,
      workerId: null,
      leaseUntilMs: null,
      claims: 0,
      startedAtMs: null,
      redone: sql`${trajectories.redone} + 1`,
    })
    .where(
      and(
        eq(trajectories.id, input.trajectoryId),
        eq(trajectories.workerId, input.workerId),
        eq(trajectories.status, 'running'),
      ),
    )
    .returning({ id: trajectories.id });
  return rows.length > 0;
}
