/** Reading trajectories: one in detail, its tokens, and a run's for export. */
import { and, asc, eq } from 'drizzle-orm';
import { NotFound } from '../../server/core/errors';
import type { TokenExtras, TokenSequence } from '../../server/core/tokens/chunk';
import type { TrajectoryDetail } from '../../server/core/views';
import type { LogprobKind } from '../../server/core/vocabulary';
import type { Queryable } from '../connection';
import { backends, groups, runs, skills, skillVersions, tasks, tokenSequences, trajectories } from '../schema';
import { asTrajectoryRow, trajectoryRowColumns } from './runs';
import { fromTokenColumns } from './token-columns';

/** The detail without what is folded from the log (steps, answer) or read from the skill (reward weights). */
export type TrajectoryRecord = Omit<TrajectoryDetail, 'steps' | 'answer' | 'rewardWeights'> & {
  sessionId: string;
  skillYaml: string;
  advantages: number[] | null;
};

/** Throws NotFound. */
export async function getTrajectory(q: Queryable, trajectoryId: string): Promise<TrajectoryRecord> {
  const [row] = await q
    .select({
      trajectory: trajectories,
      runName: runs.name,
      groupSize: runs.groupSize,
      nextEventSeq: runs.nextEventSeq,
      groupPosition: groups.position,
      taskId: groups.taskId,
      prompt: tasks.prompt,
      reference: tasks.answer,
      skillName: skills.name,
      skillVersion: skillVersions.version,
      skillYaml: skillVersions.yaml,
      backendName: backends.name,
    })
    .from(trajectories)
    .innerJoin(runs, eq(runs.id, trajectories.runId))
    .innerJoin(groups, eq(groups.id, trajectories.groupId))
    .innerJoin(tasks, and(eq(tasks.datasetId, runs.datasetId), eq(tasks.taskId, groups.taskId)))
    .innerJoin(skillVersions, eq(skillVersions.id, runs.skillVersionId))
    .innerJoin(skills, eq(skills.id, skillVersions.skillId))
    .innerJoin(backends, eq(backends.id, runs.backendId))
    .where(eq(trajectories.id, trajectoryId));
  if (!row) throw new NotFound(`There is no trajectory ${trajectoryId}.`);
  const { trajectory: t, nextEventSeq, ...around } = row;
  const siblings = await q
    .select(trajectoryRowColumns)
    .from(trajectories)
    .where(eq(trajectories.groupId, t.groupId))
    .orderBy(asc(trajectories.member));
  const sequences = await q
    .select({
      index: tokenSequences.sequenceIndex,
      length: tokenSequences.length,
      generatedLength: tokenSequences.generatedLength,
      weightVersions: tokenSequences.weightVersions,
      logprobKind: tokenSequences.logprobKind,
      approximate: tokenSequences.approximate,
      truncated: tokenSequences.truncated,
      policyScoredBy: tokenSequences.policyScoredBy,
      refScoredBy: tokenSequences.refScoredBy,
    })
    .from(tokenSequences)
    .where(eq(tokenSequences.trajectoryId, trajectoryId))
    .orderBy(asc(tokenSequences.sequenceIndex));
  return {
    ...around,
    trajectoryId,
    sessionId: t.sessionId,
    runId: t.runId,
    groupId: t.groupId,
    member: t.member,
    status: t.status,
    reward: t.reward,
    rewardComponents: t.rewardComponents ?? {},
    success: t.success,
    endReason: t.endReason,
    error: t.errorMessage === null ? null : { message: t.errorMessage, stack: t.errorStack },
    generatedTokens: t.generatedTokens ?? 0,
    totalTokens: t.totalTokens ?? 0,
    sandboxLevels: t.sandboxLevels ?? [],
    advantages: t.advantages,
    redone: t.redone,
    siblings: siblings.map(asTrajectoryRow),
    sequences,
    final: t.status !== 'queued' && t.status !== 'running',
    eventSeq: nextEventSeq - 1,
  };
}

/** Null when the trajectory has no such sequence (yet): its tokens are then in its log. */
export async function getTokenSequence(
  q: Queryable,
  input: { trajectoryId: string; sequenceIndex: number },
): Promise<
  (TokenSequence & TokenExtras & { logprobKind: LogprobKind; truncated: boolean; approximate: boolean }) | null
> {
  const [row] = await q
    .select()
    .from(tokenSequences)
    .where(
      and(eq(tokenSequences.trajectoryId, input.trajectoryId), eq(tokenSequences.sequenceIndex, input.sequenceIndex)),
    );
  if (!row) return null;
  const { logprobKind, truncated, approximate } = row;
  return { ...fromTokenColumns(row), logprobKind, truncated, approximate };
}
