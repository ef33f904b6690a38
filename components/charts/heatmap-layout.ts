/** Where the heatmap's groups, rows and cells stand. Pure; thousands of groups cost a few numbers each. */
import type { GroupRow, TrajectoryRow } from '../../server/core/views';
import { COUNTED_STATUSES } from '../../server/core/vocabulary';

export interface HeatmapSizes {
  rowHeight: number;
  groupGap: number;
  /** Rows a group takes at least, so that its name and a word below it fit. */
  leastRows: number;
  /** Groups side by side; 1 by default. They are read like words: along a band, then the next band. */
  lanes?: number;
}

export interface HeatmapRow {
  trajectory: TrajectoryRow;
  /** Index into `groups`. */
  group: number;
  y: number;
}

export interface HeatmapLayout {
  rows: HeatmapRow[];
  lanes: number;
  /** y of group g, the same for all of a band, and one more entry: where the next band would begin. */
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
  const lanes = Math.max(1, Math.min(sizes.lanes ?? 1, groups.length));
  const groupY = new Float64Array(groups.length + 1);
  const groupRow = new Uint32Array(groups.length + 1);
  const rows: HeatmapRow[] = [];
  let steps = 1;
  let y = 0;
  let most = sizes.leastRows;
  groups.forEach((group, g) => {
    groupY[g] = y;
    groupRow[g] = rows.length;
    sortedByReward(group.trajectories).forEach((trajectory, i) => {
      rows.push({ trajectory, group: g, y: y + i * sizes.rowHeight });
      steps = Math.max(steps, trajectory.stepRewards.length, trajectory.advantages?.length ?? 0);
    });
    most = Math.max(most, group.trajectories.length);
    if ((g + 1) % lanes === 0 || g === groups.length - 1) {
      y += most * sizes.rowHeight + sizes.groupGap;
      most = sizes.leastRows;
    }
  });
  groupY[groups.length] = y;
  groupRow[groups.length] = rows.length;
  const allCounted = rows.every(({ trajectory }) => counted(trajectory));
  return { rows, lanes, groupY, groupRow, steps, allCounted, height: Math.max(0, y - sizes.groupGap) };
}

/** Steps that are planned for: lanes and cells do not change size while the first trajectories take their first steps. */
export const PLANNED_STEPS = 6;
const LANE_GAP = 20;
const EASY_CELL = 30;

/** How many groups fit side by side with cells that are easily told apart and pointed at. */
export function lanesFor(steps: number, groups: number, width: number, besideCells: number): number {
  const lane = besideCells + Math.max(PLANNED_STEPS, steps) * EASY_CELL;
  return Math.max(1, Math.min(groups, Math.floor((width + LANE_GAP) / (lane + LANE_GAP))));
}

/** Where lane `lane` begins, and how wide every lane is. */
export function laneAt(lanes: number, lane: number, width: number): { x: number; width: number } {
  const each = (width - LANE_GAP * (lanes - 1)) / lanes;
  return { x: lane * (each + LANE_GAP), width: each };
}

/** The first group of the band at `y`: the last one that begins at or above it. */
export function bandAt(layout: HeatmapLayout, y: number): number {
  let low = 0;
  let high = Math.max(0, Math.ceil((layout.groupY.length - 1) / layout.lanes) - 1);
  while (low < high) {
    const middle = (low + high + 1) >>> 1;
    if ((layout.groupY[middle * layout.lanes] as number) <= y) low = middle;
    else high = middle - 1;
  }
  return low * layout.lanes;
}

/** The row at `y` in a lane; −1 between rows. */
export function rowAt(layout: HeatmapLayout, lane: number, y: number, rowHeight: number): number {
  const group = bandAt(layout, y) + lane;
  if (group >= layout.groupY.length - 1 || y < 0) return -1;
  const row = (layout.groupRow[group] as number) + Math.floor((y - (layout.groupY[group] as number)) / rowHeight);
  return row < (layout.groupRow[group + 1] as number) ? row : -1;
}

export type RowMove = 'up' | 'down' | 'left' | 'right' | 'pageUp' | 'pageDown';

/** The row to go to from `row`; the same one where there is none. Up and down stay in a lane, left and right in a band. */
export function movedRow(layout: HeatmapLayout, row: number, move: RowMove): number {
  const { lanes, groupRow } = layout;
  const last = groupRow.length - 2;
  const group = layout.rows[row]?.group ?? 0;
  const begins = (of: number) => groupRow[of] as number;
  const ends = (of: number) => (groupRow[of + 1] as number) - 1;
  switch (move) {
    case 'up':
      return row > begins(group) ? row - 1 : group - lanes >= 0 ? ends(group - lanes) : row;
    case 'down':
      return row < ends(group) ? row + 1 : group + lanes <= last ? begins(group + lanes) : row;
    case 'left':
    case 'right': {
      const beside = group + (move === 'left' ? -1 : 1);
      if (beside < 0 || beside > last || Math.floor(beside / lanes) !== Math.floor(group / lanes)) return row;
      return Math.min(ends(beside), begins(beside) + row - begins(group));
    }
    default: {
      const direction = move === 'pageUp' ? -1 : 1;
      let to = group;
      for (let rows = 0; rows < 24 && to + direction * lanes >= 0 && to + direction * lanes <= last; ) {
        rows += Math.max(1, ends(to) - begins(to) + 1);
        to += direction * lanes;
      }
      if (to !== group) return Math.min(ends(to), begins(to) + row - begins(group));
      return move === 'pageUp' ? begins(group) : ends(group);
    }
  }
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
