/** Stops the scoring of a run. What was scored stays, and is passed over when it is begun again. */
import type { z } from 'zod';
import { Conflict } from '../../core/errors';
import { auditEntry } from '../../observability/audit';
import { requireRole, type ServiceContext } from '../context';
import { parseInput } from '../inputs';
import { runIdInput } from '../runs/run-inputs';

/** Throws Conflict when nothing goes on. */
export async function cancelScore({
  ctx,
  input,
}: {
  ctx: ServiceContext;
  input: z.input<typeof runIdInput>;
}): Promise<{ runId: string }> {
  requireRole(ctx, 'operator', 'Cancelling a scoring');
  const { runId } = parseInput(runIdInput, input);
  if (!(await ctx.process.scoreJobs.cancel(runId))) throw new Conflict(`The run ${runId} is not being scored.`);
  await auditEntry(ctx.database.db, ctx, {
    actionType: 'cancel_score',
    resource: `run://${runId}`,
    operation: 'cancel',
    status: 'success',
  });
  return { runId };
}
