/** Where a trajectory stands in its group. Pure. */
import type { TrajectoryRow } from '../../server/core/views';
import { counted } from '../charts/heatmap-layout';

export interface Standing {
  /** 1 for the highest reward; equal rewards share the better rank. */
  rank: number;
  /** Members that are compared: completed or truncated, with a reward. */
  of: number;
  mean: number;
  /** Divisor n. */
  std: number;
}

/** Null for a trajectory that is not compared itself. */
export function standingOf(trajectoryId: string, siblings: readonly TrajectoryRow[]): Standing | null {
  const compared = siblings.filter((row) => counted(row) && row.reward !== null);
  const own = compared.find((row) => row.trajectoryId === trajectoryId)?.reward;
  if (own === undefined || own === null) return null;
  const rewards = compared.map((row) => row.reward as number);
  const mean = rewards.reduce((sum, reward) => sum + reward, 0) / rewards.length;
  const variance = rewards.reduce((sum, reward) => sum + (reward - mean) ** 2, 0) / rewards.length;
  return {
    rank: 1 + rewards.filter((reward) => reward > own).length,
    of: rewards.length,
    mean,
    std: Math.sqrt(variance),
  };
}
