import { describe, expect, it } from 'vitest';
import type { GroupRow, TrajectoryRow } from '@/server/core/views';
import { rewardFigures, selectRows, tableRows } from './run-figures';

const trajectory = (part: Partial<TrajectoryRow>): TrajectoryRow => ({
  trajectoryId: 't',
  groupId: 'g',
  member: 0,
  status: 'completed',
  reward: null,
  success: null,
  stepRewards: [],
  advantages: null,
  generatedTokens: null,
  totalTokens: null,
  endReason: null,
  errorMessage: null,
  toolFailures: {},
  startedAtMs: null,
  finishedAtMs: null,
  ...part,
});
const group = (position: number, trajectories: TrajectoryRow[]): GroupRow => ({
  groupId: `g${position}`,
  position,
  taskId: `task-${position}`,
  prompt: '',
  completed: true,
  meanReward: null,
  stdReward: null,
  hasSignal: null,
  trajectories,
});

describe('the mean reward of a run', () => {
  it('counts completed and truncated trajectories, with the standard error of the mean', () => {
    const figures = rewardFigures([
      group(0, [trajectory({ reward: 1 }), trajectory({ reward: 0, status: 'truncated' })]),
      group(1, [
        trajectory({ reward: 1 }),
        trajectory({ reward: 0, status: 'failed' }),
        trajectory({ reward: null, status: 'running' }),
      ]),
    ]);
    expect(figures.counted).toBe(3);
    expect(figures.mean).toBeCloseTo(2 / 3, 12);
    expect(figures.standardError).toBeCloseTo(Math.sqrt(1 / 3 / 3), 12);
  });
  it('has no error from one reward, and nothing from none', () => {
    expect(rewardFigures([group(0, [trajectory({ reward: 0.4 })])])).toEqual({
      mean: 0.4,
      standardError: null,
      counted: 1,
    });
    expect(rewardFigures([group(0, [trajectory({ reward: 0, status: 'cancelled' })])])).toEqual({
      mean: null,
      standardError: null,
      counted: 0,
    });
  });
});

describe('the table of trajectories', () => {
  const rows = tableRows([
    group(0, [
      trajectory({ trajectoryId: 'a', reward: 0.2 }),
      trajectory({ trajectoryId: 'b', member: 1, reward: 0.9, toolFailures: { probe: 1 } }),
    ]),
    group(1, [
      trajectory({ trajectoryId: 'c', status: 'failed', errorMessage: 'The Sandbox died' }),
      trajectory({ trajectoryId: 'd', member: 1, reward: 0.2 }),
    ]),
  ]);
  const ids = (options: Partial<Parameters<typeof selectRows>[1]>) =>
    selectRows(rows, { find: '', status: undefined, sort: 'task', descending: false, ...options }).map(
      (row) => row.trajectoryId,
    );

  it('sorts with what is not known last in both directions, and equals in the order of groups', () => {
    expect(ids({ sort: 'reward' })).toEqual(['a', 'd', 'b', 'c']);
    expect(ids({ sort: 'reward', descending: true })).toEqual(['b', 'a', 'd', 'c']);
  });
  it('finds by task, reason and tool, whatever the case', () => {
    expect(ids({ find: ' sandbox ' })).toEqual(['c']);
    expect(ids({ find: 'PROBE' })).toEqual(['b']);
    expect(ids({ find: 'task-1' })).toEqual(['c', 'd']);
    expect(ids({ status: 'failed' })).toEqual(['c']);
  });
});
