/** Puts one trajectory back on the queue after a fault that is not its own; it is claimed again when `afterMs` has passed. */
import { and, eq } from 'drizzle-orm';
import type { Queryable } from '../connection';
import { trajectories } from '../schema';

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
