import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { computeAdvantages, discountedReturns, ESTIMATORS } from './advantages';
import type { TrainingTrajectory } from './trajectory';

let made = 0;
function trajectory(
  groupId: string,
  stepRewards: number[],
  more: Partial<TrainingTrajectory> = {},
): TrainingTrajectory {
  return {
    trajectoryId: `t${made++}`,
    groupId,
    status: 'completed',
    humanEdited: false,
    stepRewards,
    reward: null,
    stateKeys: null,
    ...more,
  };
}

function values(trajectories: TrainingTrajectory[], options = {}): (number[] | undefined)[] {
  const { byTrajectory } = computeAdvantages(trajectories, options);
  return trajectories.map((t) => byTrajectory.get(t.trajectoryId));
}

describe('step-group', () => {
  it('normalises each step over the members that reach it', () => {
    const [a, b, c] = values([trajectory('g', [1, 4]), trajectory('g', [3, 8]), trajectory('g', [2])]);
    const std = Math.sqrt(2 / 3) + 1e-8;
    expect(a).toEqual([-1 / std, -2 / (2 + 1e-8)]);
    expect(b).toEqual([1 / std, 2 / (2 + 1e-8)]);
    expect(c).toEqual([0]);
  });

  it('gives 0 to the only member left at a step, never NaN and never the raw reward', () => {
    const [a, b] = values([trajectory('g', [1, 5]), trajectory('g', [0])]);
    expect(a?.[1]).toBe(0);
    expect(b).toHaveLength(1);
    expect(values([trajectory('h', [0.7])], { unbiased: true })).toEqual([[0]]);
  });

  it('gives 0 to equal rewards and counts their group as one without signal', () => {
    const equal = [0.1, 0.1, 0.1, 0.1].map((r) => trajectory('flat', [r]));
    const mixed = [1, 0].map((r) => trajectory('mixed', [r]));
    const result = computeAdvantages([...equal, ...mixed]);
    expect(equal.map((t) => result.byTrajectory.get(t.trajectoryId))).toEqual([[0], [0], [0], [0]]);
    expect(result.groupsWithoutSignal).toBe(1);
    expect(result.groups.map((g) => g.hasSignal)).toEqual([false, true]);
  });

  it('treats a spread within rounding as equal', () => {
    expect(values([trajectory('g', [1e6]), trajectory('g', [1e6 + 1e-7])])).toEqual([[0], [0]]);
    const [low] = values([trajectory('g', [0]), trajectory('g', [1e-11])]);
    expect(low?.[0]).toBeLessThan(0);
  });

  it('divides by n - 1 when unbiased', () => {
    const [a] = values([trajectory('g', [1]), trajectory('g', [3])], { unbiased: true });
    expect(a?.[0]).toBeCloseTo(-1 / Math.SQRT2, 7);
  });

  it('keys groups by their id when two tasks arrive interleaved', () => {
    const got = values([trajectory('a', [1]), trajectory('b', [0]), trajectory('a', [1]), trajectory('b', [0])]);
    expect(got).toEqual([[0], [0], [0], [0]]);
  });
});

describe('what counts', () => {
  it('leaves failed, cancelled, timed out and edited trajectories out of every statistic', () => {
    const counted = [trajectory('g', [1]), trajectory('g', [0], { status: 'truncated' })];
    const others = [
      trajectory('g', [100], { status: 'failed' }),
      trajectory('g', [100], { status: 'cancelled' }),
      trajectory('g', [100], { status: 'timed_out' }),
      trajectory('g', [100], { humanEdited: true }),
      trajectory('only failed', [1], { status: 'failed' }),
    ];
    for (const estimator of ESTIMATORS.filter((name) => name !== 'anchor-state')) {
      const alone = computeAdvantages(counted, { estimator });
      const together = computeAdvantages([...others, ...counted], { estimator });
      expect([...together.byTrajectory]).toEqual([...alone.byTrajectory]);
      expect(together.groups).toHaveLength(1);
    }
  });

  it('refuses a trajectory given twice and a reward that is no number', () => {
    const one = trajectory('g', [1]);
    expect(() => computeAdvantages([one, one])).toThrow(/given twice/);
    expect(() => computeAdvantages([trajectory('g', [0, Number.NaN])])).toThrow(/step 1 is NaN/);
    expect(() => computeAdvantages([trajectory('g', [0], { reward: Infinity })])).toThrow(/Infinity/);
  });
});

describe('outcome estimators', () => {
  const group = () => [trajectory('g', [1, 1], { reward: 6 }), trajectory('g', [2, 1]), trajectory('g', [0])];

  it('broadcasts the outcome over the steps: the reward where there is one, else the sum of the steps', () => {
    expect(values(group(), { estimator: 'group-outcome-unscaled' })).toEqual([[3, 3], [0, 0], [-3]]);
    const [a, , c] = values(group(), { estimator: 'group-outcome' });
    expect(a?.[0]).toBeCloseTo(3 / Math.sqrt(6), 7);
    expect(c?.[0]).toBeCloseTo(-3 / Math.sqrt(6), 7);
  });

  it('leaves one out', () => {
    expect(values(group(), { estimator: 'leave-one-out' })).toEqual([[4.5, 4.5], [0, 0], [-4.5]]);
    expect(values([trajectory('g', [1])], { estimator: 'leave-one-out' })).toEqual([[0]]);
  });
});

describe('anchor-state', () => {
  it('adds the normalised discounted return among the steps that start from one state', () => {
    const a = trajectory('g', [0, 2], { stateKeys: ['s', 'x'] });
    const b = trajectory('g', [1, 0], { stateKeys: ['s', 'y'] });
    const got = values([a, b], { estimator: 'anchor-state', gamma: 0.5, stepWeight: 2 });
    const outcome = 0.5 / (0.5 + 1e-8);
    // Both returns from s are 1: no difference there; x and y were met once.
    expect(got).toEqual([
      [outcome, outcome],
      [-outcome, -outcome],
    ]);
    const [c, d] = values(
      [trajectory('g', [0, 4], { stateKeys: ['s', 'x'] }), trajectory('g', [4, 0], { stateKeys: ['s', 'x'] })],
      { estimator: 'anchor-state', gamma: 0.5, stepWeight: 2 },
    );
    expect(c?.[0]).toBeCloseTo(-2, 6);
    expect(c?.[1]).toBeCloseTo(2, 6);
    expect(d?.[0]).toBeCloseTo(2, 6);
  });

  it('compares a state that one trajectory meets twice', () => {
    const [a] = values([trajectory('g', [1, 3], { stateKeys: ['s', 's'] })], { estimator: 'anchor-state', gamma: 0 });
    expect(a?.[0]).toBeCloseTo(-1, 6);
    expect(a?.[1]).toBeCloseTo(1, 6);
  });

  it('asks for state keys', () => {
    expect(() => computeAdvantages([trajectory('g', [1])], { estimator: 'anchor-state' })).toThrow(/state_keys/);
  });

  it('discounts', () => {
    expect(discountedReturns([1, 2, 4], 0.5)).toEqual([3, 4, 4]);
  });
});

describe('any group', () => {
  const groups = fc.array(fc.array(fc.double({ min: -10, max: 10, noNaN: true }), { maxLength: 5 }), {
    minLength: 1,
    maxLength: 9,
  });

  it('gives finite advantages that sum to about 0 at every step, whatever the estimator', () => {
    fc.assert(
      fc.property(groups, fc.boolean(), (rewards, unbiased) => {
        const trajectories = rewards.map((r) => trajectory('g', r, { stateKeys: r.map((_, i) => `s${i % 2}`) }));
        for (const estimator of ESTIMATORS) {
          const { byTrajectory } = computeAdvantages(trajectories, { estimator, unbiased });
          for (const t of trajectories) {
            const own = byTrajectory.get(t.trajectoryId) ?? [];
            expect(own).toHaveLength(t.stepRewards.length);
            expect(own.every(Number.isFinite)).toBe(true);
          }
        }
        const { byTrajectory } = computeAdvantages(trajectories, { unbiased });
        for (let step = 0; step < 5; step++) {
          let sum = 0;
          for (const own of byTrajectory.values()) sum += own[step] ?? 0;
          expect(Math.abs(sum)).toBeLessThan(1e-3);
        }
      }),
    );
  });
});
