import { describe, expect, it } from 'vitest';
import type { GroupRow, TrajectoryRow } from '../../server/core/views';
import type { TrajectoryStatus } from '../../server/core/vocabulary';
import {
  bandAt,
  columnsFor,
  columnValue,
  laneAt,
  lanesFor,
  layOutHeatmap,
  movedRow,
  rowAt,
  sortedByReward,
} from './heatmap-layout';

function row(member: number, reward: number | null, status: TrajectoryStatus = 'completed', steps = 2): TrajectoryRow {
  return {
    trajectoryId: `t${member}`,
    groupId: 'g',
    member,
    status,
    reward,
    success: null,
    stepRewards: Array.from({ length: steps }, () => 0.5),
    advantages: null,
    generatedTokens: null,
    totalTokens: null,
    endReason: null,
    errorMessage: null,
    toolFailures: {},
    startedAtMs: null,
    finishedAtMs: null,
  };
}
const group = (trajectories: TrajectoryRow[]): GroupRow => ({
  groupId: 'g',
  position: 0,
  taskId: 'task',
  prompt: '',
  completed: false,
  meanReward: null,
  stdReward: null,
  hasSignal: null,
  trajectories,
});
const SIZES = { rowHeight: 10, groupGap: 8, leastRows: 3 };

describe('the heatmap', () => {
  it('sorts by reward and puts a failed trajectory last, whatever its number says', () => {
    const sorted = sortedByReward([
      row(0, 0.2),
      row(1, 9, 'failed'),
      row(2, 0.7),
      row(3, null, 'running'),
      row(4, 0.7),
    ]);
    expect(sorted.map(({ member }) => member)).toEqual([2, 4, 0, 1, 3]);
  });
  it('stacks groups of different sizes and leaves room for the name of a small one', () => {
    const layout = layOutHeatmap(
      [group([row(0, 1)]), group([row(0, 1), row(1, 0), row(2, 0), row(3, 0, 'completed', 9)])],
      SIZES,
    );
    expect(Array.from(layout.groupY)).toEqual([0, 38, 86]);
    expect(layout.rows.map(({ y }) => y)).toEqual([0, 38, 48, 58, 68]);
    expect(layout.steps).toBe(9);
    expect(layOutHeatmap([], SIZES)).toMatchObject({ height: 0, steps: 1 });
  });
  it('joins steps into columns only where they would be too thin', () => {
    expect(columnsFor(10, 520)).toEqual({ width: 52, stepsEach: 1, count: 10 });
    expect(columnsFor(1000, 300)).toMatchObject({ stepsEach: 10, count: 100 });
    expect(columnValue([0.1, -3, 2, 0], 0, 4)).toBe(-3);
    expect(columnValue(null, 0, 4)).toBeNaN();
    expect(columnValue([null, 0], 0, 2)).toBe(0);
  });
  it('puts groups side by side where there is room, and keeps the bands aligned', () => {
    expect(lanesFor(1, 32, 870, 168)).toBe(2);
    expect(lanesFor(6, 32, 870, 168), 'no jump on the way to the sixth step').toBe(2);
    expect(lanesFor(40, 32, 870, 168)).toBe(1);
    expect(lanesFor(6, 1, 2000, 168)).toBe(1);
    expect(lanesFor(6, 0, 2000, 168)).toBe(1);
    expect(laneAt(2, 1, 420)).toEqual({ x: 220, width: 200 });
    const four = [row(0, 1), row(1, 0), row(2, 0), row(3, 0)];
    const layout = layOutHeatmap([group([row(0, 1)]), group(four), group([row(0, 1)])], { ...SIZES, lanes: 2 });
    expect(Array.from(layout.groupY)).toEqual([0, 0, 48, 86]);
    expect(layout.rows.map(({ y }) => y)).toEqual([0, 0, 10, 20, 30, 48]);
    expect(layout.height).toBe(78);
    expect([bandAt(layout, 0), bandAt(layout, 47), bandAt(layout, 48), bandAt(layout, 999)]).toEqual([0, 0, 2, 2]);
    expect([rowAt(layout, 0, 5, 10), rowAt(layout, 0, 15, 10), rowAt(layout, 1, 15, 10)]).toEqual([0, -1, 2]);
    expect([rowAt(layout, 0, 50, 10), rowAt(layout, 1, 50, 10), rowAt(layout, 0, -1, 10)]).toEqual([5, -1, -1]);
  });
  it('moves down a lane and along a band, and stays at the ends', () => {
    const two = () => group([row(0, 1), row(1, 0)]);
    const layout = layOutHeatmap([two(), two(), two()], { ...SIZES, lanes: 2 });
    expect(movedRow(layout, 0, 'down')).toBe(1);
    expect(movedRow(layout, 1, 'down')).toBe(4);
    expect(movedRow(layout, 4, 'up')).toBe(1);
    expect(movedRow(layout, 3, 'down')).toBe(3);
    expect(movedRow(layout, 1, 'right')).toBe(3);
    expect(movedRow(layout, 3, 'right')).toBe(3);
    expect(movedRow(layout, 3, 'left')).toBe(1);
    expect(movedRow(layout, 4, 'left')).toBe(4);
    expect(movedRow(layout, 0, 'pageDown')).toBe(4);
    expect(movedRow(layout, 5, 'pageDown')).toBe(5);
    expect(movedRow(layout, 5, 'pageUp')).toBe(1);
  });
});
