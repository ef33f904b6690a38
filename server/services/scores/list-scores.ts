/** What became of the scoring of a run, column by column, in this process. */
import type { z } from 'zod';
import type { ScoreJobView } from '../../core/views';
import { requireRole, type ServiceContext } from '../context';
import { parseInput } from '../inputs';
import { runIdInput } from '../runs/run-inputs';

/** The last job of each target, newest first: one that goes on is the first. */
export async function listScores({
  ctx,
  input,
}: {
  ctx: ServiceContext;
  input: z.input<typeof runIdInput>;
}): Promise<ScoreJobView[]> {
  requireRole(ctx, 'viewer', 'Looking at the scoring of a run');
  const { runId } = parseInput(runIdInput, input);
  return ctx.process.scoreJobs.list(runId);
}
