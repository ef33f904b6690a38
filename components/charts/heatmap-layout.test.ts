import { describe, expect, it } from 'vitest';
import type { GroupRow, TrajectoryRow } from '../../server/core/views';
import type { TrajectoryStatus } from '../../server/core/vocabulary';
import { columnsFor, columnValue, layOutHeatmap, sortedByReward } from './heatmap-layout';

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
});
