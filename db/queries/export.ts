/** A run's token sequences in the order of its groups and members, page by page, for the export. */
import { and, asc, eq, inArray, sql } from 'drizzle-orm';
import type { TokenSequence } from '../../server/core/tokens/chunk';
import type { FinalTrajectoryStatus, LogprobKind } from '../../server/core/vocabulary';
import { FINAL_TRAJECTORY_STATUSES } from '../../server/core/vocabulary';
import type { Queryable } from '../connection';
import { groups, tokenSequences, trajectories } from '../schema';
import { fromTokenColumns } from './token-columns';

export interface ExportedTrajectory {
  trajectoryId: string;
  groupId: string;
  groupPosition: number;
  taskId: string;
  member: number;
  status: FinalTrajectoryStatus;
  stepRewards: number[] | null;
  reward: number | null;
  rewardComponents: Record<string, number> | null;
  stateKeys: string[] | null;
  advantages: number[] | null;
  humanEdited: boolean;
  sequences: { sequence: TokenSequence; logprobKind: LogprobKind; truncated: boolean; approximate: boolean }[];
}

/** The next trajectories that have ended, after the place given (null for the first). */
export async function readExportPage(
  q: Queryable,
  input: { runId: string; after: { groupPosition: number; member: number } | null; limit: number },
): Promise<ExportedTrajectory[]> {
  const { runId, after, limit } = input;
  const rows = await q
    .select({
      trajectoryId: trajectories.id,
      groupId: trajectories.groupId,
      groupPosition: groups.position,
      taskId: groups.taskId,
      member: trajectories.member,
      status: trajectories.status,
      stepRewards: trajectories.stepRewards,
      reward: trajectories.reward,
      rewardComponents: trajectories.rewardComponents,
      stateKeys: trajectories.stateKeys,
      advantages: trajectories.advantages,
      humanEdited: trajectories.humanEdited,
    })
    .from(trajectories)
    .innerJoin(groups, eq(groups.id, trajectories.groupId))
    .where(
      and(
        eq(trajectories.runId, runId),
        inArray(trajectories.status, [...FINAL_TRAJECTORY_STATUSES]),
        after
          ? sql`(${groups.position}, ${trajectories.member}) > (${after.groupPosition}::int, ${after.member}::int)`
          : undefined,
      ),
    )
    .orderBy(asc(groups.position), asc(trajectories.member))
    .limit(limit);
  if (rows.length === 0) return [];
  const sequences = await q
    .select()
    .from(tokenSequences)
    .where(
      inArray(
        tokenSequences.trajectoryId,
        rows.map((row) => row.trajectoryId),
      ),
    )
    .orderBy(asc(tokenSequences.trajectoryId), asc(tokenSequences.sequenceIndex));
  return rows.map((row) => ({
    ...row,
    status: row.status as FinalTrajectoryStatus,
    sequences: sequences
      .filter((sequence) => sequence.trajectoryId === row.trajectoryId)
      .map((sequence) => ({
        sequence: fromTokenColumns(sequence),
        logprobKind: sequence.logprobKind,
        truncated: sequence.truncated,
        approximate: sequence.approximate,
      })),
  }));
}

/** How many sequences of a run an export of raw, exact data leaves out, and how many trajectories have not ended. */
export async function countExport(
  q: Queryable,
  runId: string,
): Promise<{ sequences: number; approximate: number; notRaw: number; unfinished: number }> {
  const [counted] = await q
    .select({
      sequences: sql<number>`count(*)::int`,
      approximate: sql<number>`(count(*) filter (where ${tokenSequences.approximate}))::int`,
      notRaw: sql<number>`(count(*) filter (where not ${tokenSequences.approximate} and ${tokenSequences.logprobKind} <> 'raw'))::int`,
    })
    .from(tokenSequences)
    .innerJoin(trajectories, eq(trajectories.id, tokenSequences.trajectoryId))
    .where(eq(trajectories.runId, runId));
  const [open] = await q
    .select({ unfinished: sql<number>`count(*)::int` })
    .from(trajectories)
    .where(and(eq(trajectories.runId, runId), inArray(trajectories.status, ['queued', 'running'])));
  return { sequences: 0, approximate: 0, notRaw: 0, ...counted, unfinished: open?.unfinished ?? 0 };
}
