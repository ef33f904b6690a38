import { describe, expect, it } from 'vitest';
import type { TrajectoryRow } from '../../server/core/views';
import type { TrajectoryStatus } from '../../server/core/vocabulary';
import { standingOf } from './standing';

const row = (id: string, reward: number | null, status: TrajectoryStatus = 'completed') =>
  ({ trajectoryId: id, reward, status }) as TrajectoryRow;

describe('where a trajectory stands', () => {
  it('is told among those that count; equals share the better rank', () => {
    const group = [row('a', 1), row('b', 0.5, 'truncated'), row('c', 0.5), row('d', 0), row('e', 9, 'failed')];
    expect(standingOf('a', group)).toMatchObject({ rank: 1, of: 4, mean: 0.5 });
    expect(standingOf('b', group)).toMatchObject({ rank: 2, of: 4 });
    expect(standingOf('c', group)).toMatchObject({ rank: 2, of: 4 });
    expect(standingOf('d', group)?.rank).toBe(4);
    expect(standingOf('d', group)?.std).toBeCloseTo(Math.sqrt(0.125), 12);
  });
  it('is not told of one that failed, that still runs, or that has no reward', () => {
    const group = [row('a', 9, 'failed'), row('b', 1, 'running'), row('c', null), row('d', 0)];
    for (const id of ['a', 'b', 'c', 'nobody']) expect(standingOf(id, group)).toBeNull();
    expect(standingOf('d', group)).toEqual({ rank: 1, of: 1, mean: 0, std: 0 });
  });
});
