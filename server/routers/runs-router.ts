/** Runs: input schema → verb → output. */
import { type TrackedEnvelope, tracked } from '@trpc/server';
import type { FailureCount, Page, RunDetail, RunFeedEntry, RunSummary, ScoreJobView } from '../core/views';
import { followRunFeed } from '../realtime/follow-run-feed';
import { cancelRun } from '../services/runs/cancel-run';
import { countExported } from '../services/runs/export-run';
import { getRun } from '../services/runs/get-run';
import { listFailures } from '../services/runs/list-failures';
import { listRuns } from '../services/runs/list-runs';
import { feedInput, listRunsInput, runIdInput, startRunInput } from '../services/runs/run-inputs';
import { startRun } from '../services/runs/start-run';
import { cancelScore } from '../services/scores/cancel-score';
import { listScores } from '../services/scores/list-scores';
import { scoreRunInput } from '../services/scores/score-inputs';
import { scoreRun } from '../services/scores/score-run';
import { scoreStatus } from '../services/scores/score-status';
import { toTrpcError } from './error-mapping';
import { procedures, router } from './trpc';

/** Token sequences of ended trajectories by whether an export holds them; trajectories that have not ended. */
export interface ExportCounts {
  sequences: number;
  approximate: number;
  notRaw: number;
  /** Of groups without signal, where the run leaves those out; else 0. */
  withoutSignal: number;
  unfinished: number;
}

export const runsRouter = router({
  list: procedures.viewer
    .input(listRunsInput)
    .query(({ ctx, input }): Promise<Page<RunSummary>> => listRuns({ ctx: ctx.serviceContext, input })),
  get: procedures.viewer
    .input(runIdInput)
    .query(({ ctx, input }): Promise<RunDetail> => getRun({ ctx: ctx.serviceContext, input })),
  failures: procedures.viewer
    .input(runIdInput)
    .query(({ ctx, input }): Promise<FailureCount[]> => listFailures({ ctx: ctx.serviceContext, input })),
  /** What GET /api/runs/:id/export holds, and what it leaves out unless asked with `?all=1`. */
  exportCounts: procedures.viewer
    .input(runIdInput)
    .query(({ ctx, input }): Promise<ExportCounts> => countExported({ ctx: ctx.serviceContext, input })),
  start: procedures.operator
    .input(startRunInput)
    .mutation(({ ctx, input }): Promise<{ runId: string }> => startRun({ ctx: ctx.serviceContext, input })),
  cancel: procedures.operator.input(runIdInput).mutation(async ({ ctx, input }): Promise<{ runId: string }> => {
    await cancelRun({ ctx: ctx.serviceContext, input });
    return { runId: input.runId };
  }),
  /** Begins to fill ref or policy log-probabilities in the background. */
  score: procedures.operator
    .input(scoreRunInput)
    .mutation(({ ctx, input }): Promise<ScoreJobView> => scoreRun({ ctx: ctx.serviceContext, input })),
  scoreStatus: procedures.viewer
    .input(runIdInput)
    .query(({ ctx, input }): Promise<ScoreJobView | null> => scoreStatus({ ctx: ctx.serviceContext, input })),
  scores: procedures.viewer
    .input(runIdInput)
    .query(({ ctx, input }): Promise<ScoreJobView[]> => listScores({ ctx: ctx.serviceContext, input })),
  cancelScore: procedures.operator
    .input(runIdInput)
    .mutation(({ ctx, input }): Promise<{ runId: string }> => cancelScore({ ctx: ctx.serviceContext, input })),
  /** Batches of up to 100 entries in order; the id of a batch is the `seq` of its last entry, and resumes after it. */
  feed: procedures.viewer.input(feedInput).subscription(async function* ({
    ctx,
    input,
    signal,
  }): AsyncGenerator<TrackedEnvelope<RunFeedEntry[]>, void> {
    try {
      const { runLog, connectionDrained } = ctx;
      const batches = followRunFeed({ ctx: ctx.serviceContext, input, runLog, connectionDrained, signal });
      for await (const batch of batches) yield tracked(String(batch.at(-1)?.seq ?? 0), batch);
    } catch (error) {
      throw toTrpcError(error, ctx.services.logger, 'runs.feed');
    }
  }),
});
