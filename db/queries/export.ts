/** A run's token sequences in order, page by page, for the export; and how much an exact export leaves out. */
import { and, asc, eq, inArray, sql } from 'drizzle-orm';
import type { TokenExtras, TokenSequence } from '../../server/core/tokens/chunk';
import type { LogprobKind } from '../../server/core/vocabulary';
import type { Queryable } from '../connection';
import { groups, tokenSequences, trajectories } from '../schema';
import { fromTokenColumns } from './token-columns';

export interface ExportRow {
  groupId: string;
  groupPosition: number;
  /** Null where no member counts. */
  hasSignal: boolean | null;
  taskId: string;
  trajectory: typeof trajectories.$inferSelect;
  sequence:
    | (TokenSequence & TokenExtras & { logprobKind: LogprobKind; truncated: boolean; approximate: boolean })
    | null;
}

export type ExportCursor = Pick<ExportRow, 'groupPosition'> & { member: number; sequenceIndex: number };

/**
 * The run's ended trajectories with their token sequences, in order of group, member and sequence; one without tokens
 * comes once, with null. Page on with the cursor of the last row until a page comes back empty.
 */
export async function readExportPage(
  q: Queryable,
  input: { runId: string; after: ExportCursor | null; limit: number },
): Promise<{ rows: ExportRow[]; next: ExportCursor | null }> {
  const { after } = input;
  const sequenceIndex = sql<number>`coalesce(${tokenSequences.sequenceIndex}, -1)`;
  const rows = await q
    .select({ group: groups, trajectory: trajectories, sequence: tokenSequences })
    .from(groups)
    .innerJoin(trajectories, eq(trajectories.groupId, groups.id))
    .leftJoin(tokenSequences, eq(tokenSequences.trajectoryId, trajectories.id))
    .where(
      and(
        eq(groups.runId, input.runId),
        sql`${trajectories.status} not in ('queued', 'running')`,
        after ? sql`${groups.position} >= ${after.groupPosition}` : undefined,
        after
          ? sql`(${groups.position}, ${trajectories.member}, ${sequenceIndex}) > (${after.groupPosition}::int, ${after.member}::int, ${after.sequenceIndex}::int)`
          : undefined,
      ),
    )
    .orderBy(asc(groups.position), asc(trajectories.member), asc(sequenceIndex))
    .limit(input.limit);
  const last = rows.at(-1);
  return {
    rows: rows.map(({ group, trajectory, sequence }) => ({
      groupId: group.id,
      groupPosition: group.position,
      hasSignal: group.hasSignal,
      taskId: group.taskId,
      trajectory,
      sequence: sequence && {
        ...fromTokenColumns(sequence),
        logprobKind: sequence.logprobKind,
        truncated: sequence.truncated,
        approximate: sequence.approximate,
      },
    })),
    next: last
      ? {
          groupPosition: last.group.position,
          member: last.trajectory.member,
          sequenceIndex: last.sequence?.sequenceIndex ?? -1,
        }
      : null,
  };
}

/** How many sequences of a run an export of raw, exact data leaves out, and how many trajectories have not ended. */
export async function countExport(
  q: Queryable,
  runId: string,
): Promise<{ sequences: number; approximate: number; notRaw: number; withoutSignal: number; unfinished: number }> {
  const [counted] = await q
    .select({
      sequences: sql<number>`count(*)::int`,
      approximate: sql<number>`(count(*) filter (where ${tokenSequences.approximate}))::int`,
      notRaw: sql<number>`(count(*) filter (where not ${tokenSequences.approximate} and ${tokenSequences.logprobKind} <> 'raw'))::int`,
      withoutSignal: sql<number>`(count(*) filter (where ${groups.hasSignal} = false))::int`,
    })
    .from(tokenSequences)
    .innerJoin(trajectories, eq(trajectories.id, tokenSequences.trajectoryId))
    .innerJoin(groups, eq(groups.id, trajectories.groupId))
    .where(eq(trajectories.runId, runId));
  const [open] = await q
    .select({ unfinished: sql<number>`count(*)::int` })
    .from(trajectories)
    .where(and(eq(trajectories.runId, runId), inArray(trajectories.status, ['queued', 'running'])));
  return { sequences: 0, approximate: 0, notRaw: 0, withoutSignal: 0, ...counted, unfinished: open?.unfinished ?? 0 };
}
