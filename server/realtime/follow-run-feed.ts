/** A run's feed for one reader: what the page draws of each event, never model text. */
import { type RunFeedRow, readRunFeed } from '../../db/queries/events';
import type { RunFeedEntry } from '../core/views';
import { RUN_STATUSES, TRAJECTORY_STATUSES } from '../core/vocabulary';
import { requireRole, type ServiceContext } from '../services/context';
import { parseInput } from '../services/inputs';
import { requireRun } from '../services/runs/require-run';
import { feedInput } from '../services/runs/run-inputs';
import { asCount, asNumber, asWord } from '../services/trajectories/read-json';
import { type FollowOptions, followLog } from './follow-log';

/**
 * Batches of up to 100 entries in order, without gap or repetition, for as long as the reader stays; `lastEventId` is
 * the `seq` of the last entry the reader has. Throws NotFound for an unknown run.
 */
export async function* followRunFeed(request: {
  ctx: ServiceContext;
  input: { runId: string; lastEventId?: string | null };
  runLog: FollowOptions<RunFeedEntry>['runLog'];
  signal?: AbortSignal;
  connectionDrained?: FollowOptions<RunFeedEntry>['connectionDrained'];
}): AsyncGenerator<RunFeedEntry[], void> {
  const { ctx, runLog, signal, connectionDrained } = request;
  requireRole(ctx, 'viewer', 'Following a run');
  const { runId, lastEventId } = parseInput(feedInput, request.input);
  const { db } = ctx.database;
  await requireRun(db, runId);
  const read = async (afterSeq: number, limit: number): Promise<RunFeedEntry[]> =>
    (await readRunFeed(db, { runId, afterSeq, limit })).map(feedEntry);
  const afterSeq = lastEventId === null || lastEventId === undefined ? -1 : Number(lastEventId);
  yield* followLog({ runId, afterSeq, read, runLog, signal, connectionDrained });
}

const STATUSES = [...TRAJECTORY_STATUSES, ...RUN_STATUSES];

function feedEntry({ runSeq, atMs, trajectoryId, type, data }: RunFeedRow): RunFeedEntry {
  const stepNumber = asCount(data.step_number) ?? asCount(data.stepNumber);
  const status = asWord(data.status, STATUSES, null);
  return { seq: runSeq, atMs, trajectoryId, type, stepNumber, reward: asNumber(data.reward), status };
}
