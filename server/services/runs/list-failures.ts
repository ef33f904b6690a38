/** What went wrong in a run, counted, with an example of each to open. */
import type { z } from 'zod';
import { countFailures } from '../../../db/queries/runs';
import type { FailureCount } from '../../core/views';
import { requireRole, type ServiceContext } from '../context';
import { parseInput } from '../inputs';
import { requireRun } from './require-run';
import { runIdInput } from './run-inputs';

/** Throws NotFound. */
export async function listFailures({
  ctx,
  input,
}: {
  ctx: ServiceContext;
  input: z.input<typeof runIdInput>;
}): Promise<FailureCount[]> {
  requireRole(ctx, 'viewer', 'Looking at the failures of a run');
  const { runId } = parseInput(runIdInput, input);
  await requireRun(ctx.database.db, runId);
  return countFailures(ctx.database.db, runId);
}
