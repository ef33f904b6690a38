/** Where the heatmap's groups, rows and cells stand. Pure; thousands of groups cost a few numbers each. */
import type { GroupRow, TrajectoryRow } from '../../server/core/views';
import { COUNTED_STATUSES } from '../../server/core/vocabulary';

export interface HeatmapSizes {
  rowHeight: number;
  groupGap: number;
  /** Rows a group takes at least, so that its name and a word below it fit. */
  leastRows: number;
}

export interface HeatmapRow {
  trajectory: TrajectoryRow;
  /** Index into `groups`. */
  group: number;
  y: number;
}

export interface HeatmapLayout {
  rows: HeatmapRow[];
  /** y of group g, and one more entry: the height of everything. */
  groupY: Float64Array;
  /** First row of group g, and one more entry. */
  groupRow: Uint32Array;
  /** Steps of the longest trajectory; at least 1. */
  steps: number;
  /** No row needs a status word beside its cells. */
  allCounted: boolean;
  height: number;
}

/** Highest reward first; those without one last, in member order. A failed trajectory's reward is not compared. */
export function sortedByReward(trajectories: readonly TrajectoryRow[]): TrajectoryRow[] {
  const rank = (row: TrajectoryRow) => (counted(row) && row.reward !== null ? row.reward : Number.NEGATIVE_INFINITY);
  return [...trajectories].sort((a, b) => {
    const [left, right] = [rank(a), rank(b)];
    return left === right ? a.member - b.member : right > left ? 1 : -1;
  });
}

export const counted = (row: TrajectoryRow): boolean => COUNTED_STATUSES.includes(row.status);

export function layOutHeatmap(groups: readonly GroupRow[], sizes: HeatmapSizes): HeatmapLayout {
  const groupY = new Float64Array(groups.length + 1);
  const groupRow = new Uint32Array(groups.length + 1);
  const rows: HeatmapRow[] = [];
  let steps = 1;
  let y = 0;
  groups.forEach((group, g) => {
    groupY[g] = y;
    groupRow[g] = rows.length;
    sortedByReward(group.trajectories).forEach((trajectory, i) => {
      rows.push({ trajectory, group: g, y: y + i * sizes.rowHeight });
      steps = Math.max(steps, trajectory.stepRewards.length, trajectory.advantages?.length ?? 0);
    });
    y += Math.max(sizes.leastRows, group.trajectories.length) * sizes.rowHeight + sizes.groupGap;
  });
  groupY[groups.length] = y;
  groupRow[groups.length] = rows.length;
  const allCounted = rows.every(({ trajectory }) => counted(trajectory));
  return { rows, groupY, groupRow, steps, allCounted, height: Math.max(0, y - sizes.groupGap) };
}

/** Columns of the picture: one a step, or several steps in one where a step would be thinner than `leastWidth`. */
export function columnsFor(
  steps: number,
  width: number,
  leastWidth = 3,
  mostWidth = 52,
): { width: number; stepsEach: number; count: number } {
  const stepsEach = Math.max(1, Math.ceil((steps * leastWidth) / Math.max(1, width)));
  const count = Math.ceil(steps / stepsEach);
  return { width: Math.min(mostWidth, width / count), stepsEach, count };
}

/** Of the steps in one column the value furthest from zero, so that a short signal is not averaged away. NaN: none. */
export function columnValue(values: readonly (number | null)[] | null, column: number, stepsEach: number): number {
  let best = Number.NaN;
  if (!values) return best;
  for (let step = column * stepsEach; step < Math.min(values.length, (column + 1) * stepsEach); step++) {
    const value = values[step] ?? Number.NaN;
    if (!Number.isNaN(value) && !(Math.abs(best) >= Math.abs(value))) best = value;
  }
  return best;
}
