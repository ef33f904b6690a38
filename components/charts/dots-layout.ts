/** Numbers of the group dots: one shared reward axis, and who stands on it. Pure. */
import type { GroupRow, TrajectoryRow } from '../../server/core/views';
import { counted } from './heatmap-layout';

export interface Axis {
  low: number;
  high: number;
}

/** From the rewards that count; 0 is always on it, and [0, 1] unless some reward lies outside. */
export function rewardAxis(groups: readonly GroupRow[]): Axis {
  let low = 0;
  let high = 1;
  for (const group of groups)
    for (const { trajectory, reward } of dotsOf(group)) {
      if (!counted(trajectory)) continue;
      low = Math.min(low, reward);
      high = Math.max(high, reward);
    }
  return { low, high };
}

export interface Dot {
  trajectory: TrajectoryRow;
  reward: number;
}

/** Members with a reward that counts, in order of reward. */
export function dotsOf(group: GroupRow): Dot[] {
  return group.trajectories
    .filter((row) => counted(row) && row.reward !== null && Number.isFinite(row.reward))
    .map((trajectory) => ({ trajectory, reward: trajectory.reward as number }))
    .sort((a, b) => a.reward - b.reward || a.trajectory.member - b.trajectory.member);
}

/** Mean and standard deviation (divisor n): the group's own where it is complete, else of those who ended so far. */
export function spreadOf(group: GroupRow, dots: readonly Dot[]): { mean: number; std: number } | null {
  if (group.meanReward !== null && group.stdReward !== null) return { mean: group.meanReward, std: group.stdReward };
  if (dots.length === 0) return null;
  const mean = dots.reduce((sum, dot) => sum + dot.reward, 0) / dots.length;
  const variance = dots.reduce((sum, dot) => sum + (dot.reward - mean) ** 2, 0) / dots.length;
  return { mean, std: Math.sqrt(variance) };
}

export function share(axis: Axis, reward: number): number {
  return Math.max(0, Math.min(1, (reward - axis.low) / (axis.high - axis.low || 1)));
}
