/**
 * Scores the token sequences of a run under the weights of a backend, in the background of this process. What the same
 * weights have scored before is passed over, so that a job that was stopped goes on where it was.
 */
import type { z } from 'zod';
import { getBackend } from '../../../db/queries/catalog';
import { countSequences } from '../../../db/queries/scores';
import { Invalid } from '../../core/errors';
import type { ScoreJobView } from '../../core/views';
import type { InferenceBackend } from '../../inference/backend';
import { auditEntry } from '../../observability/audit';
import { requireRole, type ServiceContext } from '../context';
import { parseInput } from '../inputs';
import { requireRun } from '../runs/require-run';
import { type ScoreRunRequest, scoreRunInput } from './score-inputs';
import type { ScoreProgress } from './score-jobs';
import { scorePages } from './score-pages';

/** Returns as soon as the job has begun. Throws NotFound, Conflict (a job of the run goes on), Invalid (it cannot score). */
export async function scoreRun({
  ctx,
  input,
}: {
  ctx: ServiceContext;
  input: z.input<typeof scoreRunInput>;
}): Promise<ScoreJobView> {
  requireRole(ctx, 'operator', 'Scoring a run');
  const request = parseInput(scoreRunInput, input);
  const { runId, as } = request;
  const { database, process, logger } = ctx;
  await requireRun(database.db, runId);
  const { name: backendName } = await getBackend(database.db, request.backend);
  const total = await countSequences(database.db, runId);
  if (total === 0) throw new Invalid('This run has no token sequences of ended trajectories that could be scored.');
  const { backend, release } = await process.backendHeld(backendName);
  const work = async (progress: ScoreProgress, signal: AbortSignal): Promise<void> => {
    progress.total = total;
    await scoreAudited(ctx, backend, request, progress, signal).finally(release);
  };
  try {
    await requireScores(backend, request);
    return process.scoreJobs.start({ runId, as, backendName }, work, (error) =>
      logger.error({ err: error, runId }, 'scoring a run failed'),
    );
  } catch (error) {
    release();
    throw error;
  }
}

async function scoreAudited(
  ctx: ServiceContext,
  backend: InferenceBackend,
  request: ScoreRunRequest,
  progress: ScoreProgress,
  signal: AbortSignal,
): Promise<void> {
  await audit(ctx, request, 'started', {});
  try {
    await scorePages(ctx, backend, request, progress, signal);
  } catch (error) {
    await audit(ctx, request, 'error', { done: progress.done, cancelled: signal.aborted });
    throw error;
  }
  await audit(ctx, request, 'success', { done: progress.done, scored: progress.scored });
}

async function requireScores(backend: InferenceBackend, { entropy }: ScoreRunRequest): Promise<void> {
  const { canScore, entropy: hasEntropy } = await backend.capabilities();
  if (!canScore)
    throw new Invalid(
      `The backend ${backend.name} cannot score: its server gives no log-probabilities of given tokens.`,
    );
  if (entropy && !hasEntropy)
    throw new Invalid(`The backend ${backend.name} gives no entropy. Score without it, or with another backend.`);
}

async function audit(
  ctx: ServiceContext,
  { runId, as, backend, alternatives, entropy }: ScoreRunRequest,
  status: 'started' | 'success' | 'error',
  more: { done?: number; scored?: number; cancelled?: boolean },
): Promise<void> {
  await auditEntry(ctx.database.db, ctx, {
    actionType: 'score_run',
    resource: `run://${runId}`,
    operation: 'score',
    status,
    details: { as, backend, alternatives, entropy, ...more },
  });
}
