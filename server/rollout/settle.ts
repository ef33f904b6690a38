/**
 * The end of trajectories, groups and runs, as the log says. Each happens once, in the transaction that finds it out:
 * the last member of a group to end brings the group's advantages, the last group the end of the run.
 */
import type { Tx } from '../../db/connection';
import { appendRunEvent } from '../../db/queries/events';
import { completeGroup, completeRunIfEnded, type EndedGroup, takeEndedGroup } from '../../db/queries/groups';
import { type FinishTrajectoryInput, finishTrajectory } from '../../db/queries/trajectories';
import type { TokenSequence } from '../core/tokens/chunk';
import { computeAdvantages } from '../core/training/advantages';
import { groupStatistics } from '../core/training/statistics';
import { isCounted } from '../core/training/trajectory';
import type { RunStatus, SandboxLevel } from '../core/vocabulary';
import type { Session } from '../harness/session';
import { overallLogprobKind } from '../harness/state';

export interface TrajectoryEnd {
  trajectoryId: string;
  runId: string;
  groupId: string;
  workerId: string;
  session: Session;
}

/** Writes a trajectory's end; returns the run's status when this ended the run as well. Conflict when it is not ours any more. */
export async function settleTrajectory(tx: Tx, end: TrajectoryEnd, nowMs: number): Promise<RunStatus | null> {
  await finishTrajectory(tx, finalColumns(end, nowMs));
  await settleGroup(tx, end.groupId, nowMs);
  return settleRun(tx, end.runId, nowMs);
}

/** Completes the group when its last member has ended; does nothing before that or a second time. */
export async function settleGroup(tx: Tx, groupId: string, nowMs: number): Promise<void> {
  const group = await takeEndedGroup(tx, groupId);
  if (!group) return;
  const { byTrajectory, groups } = computeAdvantages(group.members.map((member) => ({ ...member, groupId })));
  const rewards = countedRewards(group);
  const { mean, std } = groupStatistics(rewards);
  // A group of which nothing counts (all failed, all cancelled) says nothing about signal.
  const hasSignal = groups[0]?.hasSignal ?? null;
  const meanReward = rewards.length > 0 ? mean : null;
  const completed = await completeGroup(tx, {
    groupId,
    nowMs,
    meanReward,
    stdReward: rewards.length > 0 ? std : null,
    countedMembers: rewards.length,
    hasSignal,
    advantages: [...byTrajectory].map(([trajectoryId, advantages]) => ({ trajectoryId, advantages })),
  });
  if (completed)
    await appendRunEvent(tx, {
      runId: group.runId,
      atMs: nowMs,
      type: 'group.completed',
      data: { groupId, position: group.position, meanReward, hasSignal },
    });
}

/** Ends the run when all its groups are completed. */
export async function settleRun(tx: Tx, runId: string, nowMs: number): Promise<RunStatus | null> {
  const { completed, status } = await completeRunIfEnded(tx, { runId, nowMs });
  if (!completed || status === null) return null;
  await appendRunEvent(tx, { runId, atMs: nowMs, type: 'run.completed', data: { status } });
  return status;
}

/** A failure is not a zero: only completed and truncated members enter the statistics. */
function countedRewards(group: EndedGroup): number[] {
  return group.members
    .filter(isCounted)
    .map((member) => member.reward ?? member.stepRewards.reduce((a, b) => a + b, 0));
}

function finalColumns({ trajectoryId, workerId, session }: TrajectoryEnd, nowMs: number): FinishTrajectoryInput {
  const { state } = session;
  const { end, steps } = state;
  if (!end) throw new Error(`Trajectory ${trajectoryId} has no end in its log.`);
  const results = steps.flatMap((step) => step.results);
  const logprobKind = overallLogprobKind(state.logprobKinds);
  return {
    trajectoryId,
    workerId,
    status: end.status,
    nowMs,
    stepRewards: steps.map((step) => step.reward),
    stepComponents: steps.map((step) => step.components),
    stateKeys: steps.map((step) => step.stateKey),
    reward: end.reward,
    rewardComponents: end.components,
    success: end.success,
    endReason: end.reason,
    error: end.error,
    toolFailures: countBy(results.filter((result) => result.status !== 'success').map((result) => result.status)),
    sandboxLevels: [
      ...new Set(results.map((result) => result.sandboxLevel).filter((level): level is SandboxLevel => level !== null)),
    ],
    humanEdited: false,
    sequences: state.sequences
      .map((builder) => builder.finish())
      .map((sequence) => ({
        sequence,
        logprobKind,
        truncated: end.status === 'truncated',
        approximate: state.approximate || hasUnscoredToken(sequence),
      })),
  };
}

/** A sampled token without a number, from a backend that cannot score: no loss can be exact with it. */
function hasUnscoredToken({ mask, logprobs }: TokenSequence): boolean {
  return mask.some((sampled, k) => sampled === 1 && Number.isNaN(logprobs[k]));
}

function countBy(words: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const word of words) counts[word] = (counts[word] ?? 0) + 1;
  return counts;
}
