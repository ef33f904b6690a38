/** Cancels a run: what waits on the queue ends at once, what runs is stopped where it stands. */
import { appendRunEvent } from '../../../db/queries/events';
import { endedGroupIds, markRunCancelled } from '../../../db/queries/groups';
import { getRunSettings } from '../../../db/queries/runs';
import { cancelQueued } from '../../../db/queries/trajectories';
import { Conflict } from '../../core/errors';
import { auditEntry } from '../../observability/audit';
import { settleGroup, settleRun } from '../../rollout/settle';
import { requireRole, type ServiceContext } from '../context';
import { parseInput } from '../inputs';
import { runIdInput } from './run-inputs';

export async function cancelRun({ ctx, input }: { ctx: ServiceContext; input: { runId: string } }): Promise<void> {
  requireRole(ctx, 'operator', 'Cancelling a run');
  const { runId } = parseInput(runIdInput, input);
  const nowMs = ctx.ambient.now();
  await ctx.database.db.transaction(async (tx) => {
    const run = await getRunSettings(tx, runId);
    if (!(await markRunCancelled(tx, runId)))
      throw new Conflict(`The run ${run.name} has already ended: it is ${run.status}.`);
    await cancelQueued(tx, { runId, nowMs, reason: 'the run was cancelled' });
    await appendRunEvent(tx, { runId, atMs: nowMs, type: 'run.cancelled', data: { status: 'cancelled' } });
    for (const groupId of await endedGroupIds(tx, runId)) await settleGroup(tx, groupId, nowMs);
    await settleRun(tx, runId, nowMs);
    await auditEntry(tx, ctx, {
      actionType: 'cancel_run',
      resource: `run://${runId}`,
      operation: 'cancel',
      status: 'success',
    });
  });
  ctx.process.cancelRun(runId);
  ctx.process.runLogGrew(runId);
}
