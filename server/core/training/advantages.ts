/** Advantages of grouped trajectories, one number a step. */
import { Invalid } from '../errors';
import { centre, leaveOneOut, normalise } from './statistics';
import { isCounted, outcomeOf, type TrainingTrajectory } from './trajectory';

export const ESTIMATORS = [
  'step-group',
  'group-outcome',
  'group-outcome-unscaled',
  'leave-one-out',
  'anchor-state',
] as const;
export type Estimator = (typeof ESTIMATORS)[number];

export interface AdvantageOptions {
  estimator: Estimator;
  /** Standard deviations with divisor n - 1. */
  unbiased: boolean;
  /** Weight of the step term of `anchor-state`. */
  stepWeight: number;
  /** Discount of the returns of `anchor-state`. */
  gamma: number;
}

export const DEFAULT_ADVANTAGE_OPTIONS: AdvantageOptions = {
  estimator: 'step-group',
  unbiased: false,
  stepWeight: 1,
  gamma: 0.95,
};

export interface Advantages {
  /** trajectory id → one advantage a step. Trajectories that do not count are absent. */
  byTrajectory: Map<string, number[]>;
  /** Groups with at least one counted trajectory, in order of first appearance. */
  groups: { groupId: string; counted: number; hasSignal: boolean }[];
  groupsWithoutSignal: number;
}

/**
 * One entry a trajectory (not a token sequence); an id that comes twice is Invalid, and so is a reward of a counted
 * trajectory that is not finite, or a missing state key where `anchor-state` needs one.
 */
export function computeAdvantages(
  trajectories: readonly TrainingTrajectory[],
  options: Partial<AdvantageOptions> = {},
): Advantages {
  const settings = { ...DEFAULT_ADVANTAGE_OPTIONS, ...options };
  const groups = groupCounted(trajectories);
  const result: Advantages = { byTrajectory: new Map(), groups: [], groupsWithoutSignal: 0 };
  for (const [groupId, members] of groups) {
    const advantages = estimate(members, settings);
    let hasSignal = false;
    members.forEach((member, i) => {
      const own = advantages[i] ?? [];
      result.byTrajectory.set(member.trajectoryId, own);
      hasSignal ||= own.some((value) => value !== 0);
    });
    result.groups.push({ groupId, counted: members.length, hasSignal });
    if (!hasSignal) result.groupsWithoutSignal++;
  }
  return result;
}

function groupCounted(trajectories: readonly TrainingTrajectory[]): Map<string, TrainingTrajectory[]> {
  const seen = new Set<string>();
  const groups = new Map<string, TrainingTrajectory[]>();
  for (const trajectory of trajectories) {
    if (seen.has(trajectory.trajectoryId))
      throw new Invalid(`Trajectory ${trajectory.trajectoryId} was given twice; each counts once.`);
    seen.add(trajectory.trajectoryId);
    if (!isCounted(trajectory)) continue;
    checkRewards(trajectory);
    const members = groups.get(trajectory.groupId);
    if (members) members.push(trajectory);
    else groups.set(trajectory.groupId, [trajectory]);
  }
  return groups;
}

/** Squares and sums of larger ones would leave the range of float64. */
const LARGEST_REWARD = 1e100;

function checkRewards({ trajectoryId, stepRewards, reward }: TrainingTrajectory): void {
  stepRewards.forEach((value, step) => {
    if (!(Math.abs(value) <= LARGEST_REWARD))
      throw new Invalid(
        `Trajectory ${trajectoryId}: the reward of step ${step} is ${value}; it must be a number of at most ${LARGEST_REWARD}.`,
      );
  });
  if (reward !== null && !(Math.abs(reward) <= LARGEST_REWARD))
    throw new Invalid(
      `Trajectory ${trajectoryId}: its reward is ${reward}; it must be a number of at most ${LARGEST_REWARD} or null.`,
    );
}

function estimate(members: TrainingTrajectory[], options: AdvantageOptions): number[][] {
  const { estimator, unbiased } = options;
  if (estimator === 'step-group') return stepGroup(members, unbiased);
  const outcomes = members.map(outcomeOf);
  if (estimator === 'group-outcome') return broadcast(members, normalise(outcomes, unbiased));
  if (estimator === 'group-outcome-unscaled') return broadcast(members, centre(outcomes));
  if (estimator === 'leave-one-out') return broadcast(members, leaveOneOut(outcomes));
  return anchorState(members, normalise(outcomes, unbiased), options);
}

function broadcast(members: TrainingTrajectory[], values: number[]): number[][] {
  return members.map((member, i) => member.stepRewards.map(() => values[i] ?? 0));
}

/** Each step against the same step of the members that reach it. */
function stepGroup(members: TrainingTrajectory[], unbiased: boolean): number[][] {
  const advantages: number[][] = members.map(() => []);
  const longest = members.reduce((most, member) => Math.max(most, member.stepRewards.length), 0);
  for (let step = 0; step < longest; step++) {
    const reaching: number[] = [];
    const rewards: number[] = [];
    members.forEach((member, i) => {
      const reward = member.stepRewards[step];
      if (reward === undefined) return;
      reaching.push(i);
      rewards.push(reward);
    });
    const normalised = normalise(rewards, unbiased);
    reaching.forEach((i, at) => {
      advantages[i]?.push(normalised[at] ?? 0);
    });
  }
  return advantages;
}

/** The outcome's advantage plus, for steps taken from the same state, how their discounted returns compare. */
function anchorState(members: TrainingTrajectory[], outcome: number[], options: AdvantageOptions): number[][] {
  const advantages = broadcast(members, outcome);
  const anchors = new Map<string, { member: number; step: number; value: number }[]>();
  members.forEach((trajectory, member) => {
    const keys = trajectory.stateKeys;
    if (keys?.length !== trajectory.stepRewards.length)
      throw new Invalid(
        `Trajectory ${trajectory.trajectoryId} has ${keys?.length ?? 'no'} state_keys for ${trajectory.stepRewards.length} steps; ` +
          'the estimator anchor-state needs one a step.',
      );
    const returns = discountedReturns(trajectory.stepRewards, options.gamma);
    keys.forEach((key, step) => {
      const entry = { member, step, value: returns[step] ?? 0 };
      const anchor = anchors.get(key);
      if (anchor) anchor.push(entry);
      else anchors.set(key, [entry]);
    });
  });
  for (const entries of anchors.values()) {
    const normalised = normalise(
      entries.map((entry) => entry.value),
      options.unbiased,
    );
    entries.forEach(({ member, step }, at) => {
      const own = advantages[member];
      if (own) own[step] = (own[step] ?? 0) + options.stepWeight * (normalised[at] ?? 0);
    });
  }
  return advantages;
}

/** returns[t] = Σ_{k>=t} gamma^(k-t) r_k. */
export function discountedReturns(rewards: readonly number[], gamma: number): number[] {
  const returns = new Array<number>(rewards.length);
  let after = 0;
  for (let step = rewards.length - 1; step >= 0; step--) {
    after = (rewards[step] ?? 0) + gamma * after;
    returns[step] = after;
  }
  return returns;
}
