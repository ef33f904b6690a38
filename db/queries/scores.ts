/** The token sequences of a run page by page, for scoring, and what scoring writes beside them. */
import { and, asc, eq, sql } from 'drizzle-orm';
import type { ScoreSource, TokenExtras, TokenSequence } from '../../server/core/tokens/chunk';
import type { ScoreTarget } from '../../server/core/views';
import type { Queryable, Tx } from '../connection';
import { groups, tokenSequences, trajectories } from '../schema';
import { fromTokenColumns, toExtraColumns } from './token-columns';

export interface SequenceToScore {
  trajectoryId: string;
  sequence: TokenSequence & TokenExtras;
  approximate: boolean;
  policyScoredBy: ScoreSource | null;
  refScoredBy: ScoreSource | null;
}

export interface ScoreCursor {
  groupPosition: number;
  member: number;
  sequenceIndex: number;
}

/** In the order of the export. Page on with `next` until a page comes back empty. */
export async function readSequencesToScore(
  q: Queryable,
  input: { runId: string; after: ScoreCursor | null; limit: number },
): Promise<{ rows: SequenceToScore[]; next: ScoreCursor | null }> {
  const { runId, after, limit } = input;
  const rows = await q
    .select({ groupPosition: groups.position, member: trajectories.member, row: tokenSequences })
    .from(groups)
    .innerJoin(trajectories, eq(trajectories.groupId, groups.id))
    .innerJoin(tokenSequences, eq(tokenSequences.trajectoryId, trajectories.id))
    .where(
      and(
        eq(groups.runId, runId),
        after ? sql`${groups.position} >= ${after.groupPosition}` : undefined,
        after
          ? sql`(${groups.position}, ${trajectories.member}, ${tokenSequences.sequenceIndex}) > (${after.groupPosition}::int, ${after.member}::int, ${after.sequenceIndex}::int)`
          : undefined,
      ),
    )
    .orderBy(asc(groups.position), asc(trajectories.member), asc(tokenSequences.sequenceIndex))
    .limit(limit);
  const last = rows.at(-1);
  return {
    rows: rows.map(({ row }) => ({
      trajectoryId: row.trajectoryId,
      sequence: fromTokenColumns(row),
      approximate: row.approximate,
      policyScoredBy: row.policyScoredBy,
      refScoredBy: row.refScoredBy,
    })),
    next: last
      ? { groupPosition: last.groupPosition, member: last.member, sequenceIndex: last.row.sequenceIndex }
      : null,
  };
}

export async function countSequences(q: Queryable, runId: string): Promise<number> {
  const [row] = await q
    .select({ count: sql<number>`count(*)::int` })
    .from(tokenSequences)
    .innerJoin(trajectories, eq(trajectories.id, tokenSequences.trajectoryId))
    .where(eq(trajectories.runId, runId));
  return row?.count ?? 0;
}

export interface NewScores {
  trajectoryId: string;
  sequenceIndex: number;
  /** Shape [n], NaN where nothing was sampled. */
  logprobs: Float32Array;
  /** Null leaves what is stored. */
  extras: TokenExtras | null;
}

/** Fills one column of the sequences and says who did. */
export async function saveScores(
  tx: Tx,
  input: { as: ScoreTarget; by: ScoreSource; scores: readonly NewScores[] },
): Promise<void> {
  const { as, by } = input;
  for (const { trajectoryId, sequenceIndex, logprobs, extras } of input.scores) {
    const column = new Uint8Array(logprobs.buffer, logprobs.byteOffset, logprobs.byteLength);
    await tx
      .update(tokenSequences)
      .set({
        ...(as === 'ref' ? { refLogprobs: column, refScoredBy: by } : { policyLogprobs: column, policyScoredBy: by }),
        ...(extras ? toExtraColumns(extras) : {}),
      })
      .where(and(eq(tokenSequences.trajectoryId, trajectoryId), eq(tokenSequences.sequenceIndex, sequenceIndex)));
  }
}
