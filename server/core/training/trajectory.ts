/** What advantages and losses know of a trajectory: its rewards, not its tokens. */
import { COUNTED_STATUSES, type TrajectoryStatus } from '../vocabulary';

export interface TrainingTrajectory {
  trajectoryId: string;
  /** Groups are keyed by this, never by arrival. */
  groupId: string;
  status: TrajectoryStatus;
  humanEdited: boolean;
  /** Reward of each step, in order. */
  stepRewards: readonly number[];
  /** Outcome; null means the sum of the step rewards. */
  reward: number | null;
  /** SHA-256 of the observation before each step; only the estimator `anchor-state` reads it. */
  stateKeys: readonly string[] | null;
}

/** A failure is not a zero: only these trajectories enter group statistics, advantages and losses. */
export function isCounted(trajectory: { status: TrajectoryStatus; humanEdited: boolean }): boolean {
  return COUNTED_STATUSES.includes(trajectory.status) && !trajectory.humanEdited;
}

export function outcomeOf(trajectory: Pick<TrainingTrajectory, 'reward' | 'stepRewards'>): number {
  if (trajectory.reward !== null) return trajectory.reward;
  let sum = 0;
  for (const reward of trajectory.stepRewards) sum += reward;
  return sum;
}
