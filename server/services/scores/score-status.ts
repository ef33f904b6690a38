/** The scoring of a run that goes on, or that ended last, in this process. */
import type { z } from 'zod';
import type { ScoreJobView } from '../../core/views';
import { requireRole, type ServiceContext } from '../context';
import { parseInput } from '../inputs';
import { runIdInput } from '../runs/run-inputs';

/** Null when there was none since the start of this process. */
export async function scoreStatus({
  ctx,
  input,
}: {
  ctx: ServiceContext;
  input: z.input<typeof runIdInput>;
}): Promise<ScoreJobView | null> {
  requireRole(ctx, 'viewer', 'Looking at the scoring of a run');
  const { runId } = parseInput(runIdInput, input);
  return ctx.process.scoreJobs.get(runId);
}
