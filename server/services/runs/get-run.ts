/** One run with its groups and trajectories. */
import type { z } from 'zod';
import { getRun as queryRun } from '../../../db/queries/runs';
import type { RunDetail } from '../../core/views';
import { requireRole, type ServiceContext } from '../context';
import { parseInput } from '../inputs';
import { runIdInput } from './run-inputs';

/** Throws NotFound. */
export async function getRun({
  ctx,
  input,
}: {
  ctx: ServiceContext;
  input: z.input<typeof runIdInput>;
}): Promise<RunDetail> {
  requireRole(ctx, 'viewer', 'Looking at a run');
  const { runId } = parseInput(runIdInput, input);
  return queryRun(ctx.database.db, runId);
}
