import { describe, expect, it } from 'vitest';
import type { GroupRow, TrajectoryRow } from '../../server/core/views';
import { dotsOf, rewardAxis, share, spreadOf } from './dots-layout';

const member = (reward: number | null, status = 'completed') =>
  ({ trajectoryId: 't', member: 0, reward, status }) as TrajectoryRow;
const group = (trajectories: TrajectoryRow[]) => ({ trajectories, meanReward: null, stdReward: null }) as GroupRow;

describe('group dots', () => {
  it('leave out what does not count and what has no reward', () => {
    expect(
      dotsOf(group([member(0.5), member(3, 'failed'), member(null), member(0.1, 'truncated')])).map(
        ({ reward }) => reward,
      ),
    ).toEqual([0.1, 0.5]);
  });
  it('share an axis that holds zero, one and every reward that counts', () => {
    expect(rewardAxis([group([member(0.5)])])).toEqual({ low: 0, high: 1 });
    expect(rewardAxis([group([member(-2), member(9, 'failed'), member(4)])])).toEqual({ low: -2, high: 4 });
    expect(share({ low: -2, high: 4 }, 1)).toBe(0.5);
  });
  it('take mean and spread over those who ended, until the group has its own', () => {
    const open = group([member(0), member(1)]);
    expect(spreadOf(open, dotsOf(open))).toEqual({ mean: 0.5, std: 0.5 });
    expect(spreadOf(group([]), [])).toBeNull();
    expect(spreadOf({ ...open, meanReward: 0.4, stdReward: 0.2 }, [])).toEqual({ mean: 0.4, std: 0.2 });
  });
});
