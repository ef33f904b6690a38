/** The runs, newest first. */
import type { z } from 'zod';
import { listRuns as queryRuns } from '../../../db/queries/runs';
import type { Page, RunSummary } from '../../core/views';
import { requireRole, type ServiceContext } from '../context';
import { parseInput } from '../inputs';
import { listRunsInput } from './run-inputs';

export async function listRuns({
  ctx,
  input,
}: {
  ctx: ServiceContext;
  input: z.input<typeof listRunsInput>;
}): Promise<Page<RunSummary>> {
  requireRole(ctx, 'viewer', 'Listing runs');
  return queryRuns(ctx.database.db, parseInput(listRunsInput, input));
}
