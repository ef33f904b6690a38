/** One run with its groups and trajectories. */
import type { z } from 'zod';
import { getRun as queryRun } from '../../../db/queries/runs';
import type { RunDetail } from '../../core/views';
import { requireRole, type ServiceContext } from '../context';
import { parseInput } from '../inputs';
import { runIdInput } from './run-inputs';

/** Throws NotFound. While the worker cannot go on, the reason is among the notices of a run that has not ended. */
export async function getRun({
  ctx,
  input,
}: {
  ctx: ServiceContext;
  input: z.input<typeof runIdInput>;
}): Promise<RunDetail> {
  requireRole(ctx, 'viewer', 'Looking at a run');
  const { runId } = parseInput(runIdInput, input);
  const run = await queryRun(ctx.database.db, runId);
  const trouble = run.status === 'queued' || run.status === 'running' ? ctx.process.trouble(run.backendName) : null;
  return trouble === null ? run : { ...run, notices: [...run.notices, `This run waits: ${trouble}`] };
}
