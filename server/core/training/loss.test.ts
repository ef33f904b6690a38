import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { boundedExp } from './bounded-exp';
import { AGGREGATES, computeLoss, DENOMINATORS, KL_KINDS, type LossOptions, type LossSequence } from './loss';
import type { TrainingTrajectory } from './trajectory';

interface Entry {
  trajectory: TrainingTrajectory;
  sequences: LossSequence[];
}

function entry(
  id: string,
  groupId: string,
  stepRewards: number[],
  tokens: { mask: number[]; step: number[]; policy: number[]; ref?: number[]; old?: number[] },
  more: Partial<TrainingTrajectory> = {},
): Entry {
  const column = (values: number[] | undefined) => (values ? Float64Array.from(values) : null);
  return {
    trajectory: {
      trajectoryId: id,
      groupId,
      status: 'completed',
      humanEdited: false,
      stepRewards,
      reward: null,
      stateKeys: null,
      ...more,
    },
    sequences: [
      {
        sequenceIndex: 0,
        mask: Uint8Array.from(tokens.mask),
        stepIndex: Int32Array.from(tokens.step),
        logprobs: column(tokens.old),
        policyLogprobs: column(tokens.policy),
        refLogprobs: column(tokens.ref),
      },
    ],
  };
}

const pair = (): Entry[] => [
  entry('a', 'g', [1], {
    mask: [0, 1, 1],
    step: [-1, 0, 0],
    policy: [Number.NaN, -1, -0.5],
    ref: [Number.NaN, -1.5, -0.5],
  }),
  entry('b', 'g', [0], { mask: [1], step: [0], policy: [-2], ref: [-1] }),
];

describe('the loss of a batch worked out by hand', () => {
  const a = 0.5 / (0.5 + 1e-8);

  it('clips, averages over trajectories and adds the k3 term', () => {
    const report = computeLoss(pair());
    expect(report.advantages).toEqual({ a: [a], b: [-a] });
    const policyLoss = -(a * 1.2 + a * 1 + -a * 0.8) / 2;
    const kl = (Math.exp(-0.5) + 0.5 - 1 + 0 + Math.exp(1) - 1 - 1) / 3;
    expect(report.policy_loss).toBeCloseTo(policyLoss, 12);
    expect(report.kl).toBeCloseTo(kl, 12);
    expect(report.loss).toBeCloseTo(policyLoss + 0.01 * kl, 12);
    expect(report.reinforce_loss).toBeCloseTo(-(-1.5 * a + 2 * a) / 3, 12);
    expect(report.clip_fraction).toBeCloseTo(2 / 3, 12);
    expect(report.ratio_mean).toBeCloseTo((Math.exp(0.5) + 1 + Math.exp(-1)) / 3, 12);
    expect(report.masked_tokens).toBe(3);
    expect(report.clamped).toBe(0);
    expect(report.groups_without_signal).toBe(0);
  });

  it('has a mean over tokens and a mean over trajectory means', () => {
    const sum = a * 1.2 + a - a * 0.8;
    expect(computeLoss(pair(), { aggregate: 'token-mean' }).policy_loss).toBeCloseTo(-sum / 3, 12);
    expect(computeLoss(pair(), { aggregate: 'trajectory-mean' }).policy_loss).toBeCloseTo(
      -((a * 2.2) / 2 - a * 0.8) / 2,
      12,
    );
  });

  it('has two clip ends', () => {
    const report = computeLoss(pair(), { clipLow: 0.5, clipHigh: 1 });
    expect(report.policy_loss).toBeCloseTo(-(a * Math.exp(0.5) + a - a * 0.5) / 2, 12);
    expect(report.clip_fraction).toBeCloseTo(1 / 3, 12);
  });

  it('needs no reference when the ratio is against the sampler and the KL coefficient is 0', () => {
    const entries = pair();
    for (const { sequences } of entries)
      for (const sequence of sequences) {
        sequence.logprobs = sequence.refLogprobs;
        sequence.refLogprobs = null;
      }
    const report = computeLoss(entries, { denominator: 'old', klCoef: 0 });
    expect(report.kl).toBeNull();
    expect(report.loss).toBe(report.policy_loss);
    expect(report.policy_loss).toBeCloseTo(computeLoss(pair()).policy_loss, 12);
    expect(() => computeLoss(entries, { denominator: 'old' })).toThrow(/a has no ref_logprobs/);
    expect(() => computeLoss(entries)).toThrow(/a has no ref_logprobs/);
  });
});

describe('tokens that do not count', () => {
  it('scores only tokens of the mask: a leaked token after the last one changes nothing', () => {
    const leaked = pair();
    leaked[1] = entry('b', 'g', [0], { mask: [1, 0], step: [0, 0], policy: [-2, -50], ref: [-1, 0] });
    expect(computeLoss(leaked)).toEqual(computeLoss(pair()));
  });

  it('lets a trajectory whose mask is all 0 contribute 0 and still count in N', () => {
    const silent = entry('c', 'h', [1], { mask: [0, 0], step: [-1, 0], policy: [-1, -1], ref: [-3, -3] });
    const [with3, with2] = [computeLoss([...pair(), silent]), computeLoss(pair())];
    expect(with3.policy_loss).toBeCloseTo((with2.policy_loss * 2) / 3, 12);
    expect(with3.kl).toBe(with2.kl);
    expect(with3.groups_without_signal).toBe(1);
    expect(computeLoss([...pair(), silent], { aggregate: 'trajectory-mean' }).policy_loss).toBeCloseTo(
      (computeLoss(pair(), { aggregate: 'trajectory-mean' }).policy_loss * 2) / 3,
      12,
    );
  });

  it('asks for no log-probabilities where nothing was sampled', () => {
    const tokens = { mask: [0, 0], step: [-1, 0], policy: [-1, -1] };
    const bare = entry('c', 'h', [1], tokens);
    for (const sequence of bare.sequences) sequence.policyLogprobs = null;
    expect(computeLoss([...pair(), bare])).toEqual(
      computeLoss([...pair(), entry('c', 'h', [1], { ...tokens, ref: [-3, -3] })]),
    );
  });

  it('refuses a batch without a trainable token', () => {
    const silent = entry('c', 'h', [1], { mask: [0], step: [0], policy: [-1], ref: [-1] });
    expect(() => computeLoss([silent])).toThrow(/no trainable token/);
    expect(() => computeLoss([])).toThrow(/no trainable token/);
    const failed = pair().map((e) => ({ ...e, trajectory: { ...e.trajectory, status: 'failed' as const } }));
    expect(() => computeLoss(failed)).toThrow(/no trainable token/);
  });

  it('ignores everything about trajectories that failed or were edited by a person', () => {
    const bad = { mask: [1], step: [7], policy: [Number.NaN], ref: [-9999] };
    const others = [entry('x', 'g', [9], bad, { status: 'failed' }), entry('y', 'g', [9], bad, { humanEdited: true })];
    expect(computeLoss([...others, ...pair()])).toEqual(computeLoss(pair()));
  });

  it('counts a trajectory of two sequences once', () => {
    const whole = pair();
    const split = pair();
    const [first] = split;
    const sequence = first?.sequences[0];
    if (!first || !sequence) throw new Error('no sequence');
    const cut = (from: number, to: number, index: number): LossSequence => ({
      sequenceIndex: index,
      mask: sequence.mask.slice(from, to),
      stepIndex: sequence.stepIndex.slice(from, to),
      logprobs: null,
      policyLogprobs: sequence.policyLogprobs?.slice(from, to) ?? null,
      refLogprobs: sequence.refLogprobs?.slice(from, to) ?? null,
    });
    first.sequences = [cut(0, 2, 0), cut(2, 3, 1)];
    for (const aggregate of AGGREGATES)
      expect(computeLoss(split, { aggregate })).toEqual(computeLoss(whole, { aggregate }));
  });
});

describe('numbers that are none', () => {
  for (const bad of [Number.NaN, Infinity, -Infinity, -9999, -10000])
    for (const column of ['policy', 'ref'] as const)
      it(`refuses ${bad} in ${column} on a sampled token with trajectory, position and value`, () => {
        const tokens = { mask: [0, 1], step: [0, 0], policy: [bad, -1], ref: [bad, -1] };
        tokens[column][1] = bad;
        const shown = Number.isNaN(bad) ? 'missing' : String(bad);
        expect(() => computeLoss([entry('traj-7', 'g', [1], tokens)])).toThrow(
          new RegExp(`traj-7, token 1: its ${column}_logprobs is ${shown}`),
        );
      });

  it('checks the column of the sampler and a reference read only for the KL term', () => {
    const old = { mask: [1], step: [0], policy: [-1], old: [Number.NaN], ref: [-1] };
    expect(() => computeLoss([entry('t', 'g', [1], old)], { denominator: 'old' })).toThrow(/its logprobs is missing/);
    const ref = { mask: [1], step: [0], policy: [-1], old: [-1], ref: [-9999] };
    expect(() => computeLoss([entry('t', 'g', [1], ref)], { denominator: 'old' })).toThrow(/its ref_logprobs is -9999/);
    expect(computeLoss([entry('t', 'g', [1], ref)], { denominator: 'old', klCoef: 0 }).loss).toBe(0);
  });

  it('refuses a sampled token of a step that has no reward', () => {
    const tokens = { mask: [1], step: [1], policy: [-1], ref: [-1] };
    expect(() => computeLoss([entry('t', 'g', [1], tokens)])).toThrow(/token 0.*step 1.*1 step reward/);
    expect(() => computeLoss([entry('t', 'g', [1], { ...tokens, step: [-1] })])).toThrow(/step -1/);
  });

  it('keeps the loss finite when an exponent is 800, and counts the clamp once', () => {
    const far = (policy: number, ref: number) => [
      entry('a', 'g', [1], { mask: [1], step: [0], policy: [policy], ref: [ref] }),
      entry('b', 'g', [0], { mask: [1], step: [0], policy: [-1], ref: [-1] }),
    ];
    for (const report of [computeLoss(far(0, -800)), computeLoss(far(-800, 0))]) {
      expect(Number.isFinite(report.loss)).toBe(true);
      expect(report.clamped).toBe(1);
    }
    expect(computeLoss(far(0, -800)).ratio_mean).toBeCloseTo((Math.exp(20) + 1) / 2, 5);
    expect(computeLoss(far(-800, 0)).kl).toBeCloseTo((Math.exp(20) - 21) / 2, 5);
    expect(computeLoss(far(-800, 0), { kl: 'k1' }).kl).toBe(-400);
    expect(computeLoss(far(-800, 0), { kl: 'k2' }).kl).toBe(160_000);
  });
});

describe('against a plain reading of the formula', () => {
  const logprob = fc.double({ min: -30, max: 0, noNaN: true });
  const token = fc.record({
    mask: fc.constantFrom(0, 1),
    step: fc.integer({ min: 0, max: 2 }),
    p: logprob,
    r: logprob,
    o: logprob,
  });
  const batch = fc.array(
    fc.record({
      group: fc.constantFrom('g', 'h'),
      rewards: fc.array(fc.double({ min: -2, max: 2, noNaN: true }), { minLength: 3, maxLength: 3 }),
      tokens: fc.array(token, { maxLength: 40 }),
    }),
    { minLength: 1, maxLength: 6 },
  );
  const options = fc.record({
    denominator: fc.constantFrom(...DENOMINATORS),
    clipLow: fc.constantFrom(0, 0.2, 0.9),
    clipHigh: fc.constantFrom(0, 0.28, 3),
    klCoef: fc.constantFrom(0, 0.01, 1),
    kl: fc.constantFrom(...KL_KINDS),
    aggregate: fc.constantFrom(...AGGREGATES),
  });

  it('gives the same figures', () => {
    fc.assert(
      fc.property(batch, options, (items, chosen) => {
        if (!items.some((item) => item.tokens.some((t) => t.mask === 1))) return;
        const entries = items.map((item, i) =>
          entry(`t${i}`, item.group, item.rewards, {
            mask: item.tokens.map((t) => t.mask),
            step: item.tokens.map((t) => t.step),
            policy: item.tokens.map((t) => t.p),
            ref: item.tokens.map((t) => t.r),
            old: item.tokens.map((t) => t.o),
          }),
        );
        const report = computeLoss(entries, chosen);
        const plain = plainLoss(
          items.map((item, i) => ({ tokens: item.tokens, advantages: report.advantages[`t${i}`] ?? [] })),
          chosen,
        );
        for (const [name, value] of Object.entries(plain)) {
          const got = report[name as keyof typeof plain] as number;
          expect(Math.abs(got - value), name).toBeLessThanOrEqual(1e-10 * Math.max(1, Math.abs(value)));
        }
      }),
      { numRuns: 300 },
    );
  });

  it('computes exponentials to a few units in the last place', () => {
    fc.assert(
      fc.property(fc.double({ min: -20, max: 20, noNaN: true }), (x) => {
        const out = new Float64Array(1);
        boundedExp(Float64Array.of(x), out, 1);
        expect(Math.abs((out[0] ?? 0) / Math.exp(x) - 1)).toBeLessThan(1e-15);
      }),
    );
  });
});

/** Token by token, straight from the definition. */
function plainLoss(
  items: { tokens: { mask: number; step: number; p: number; r: number; o: number }[]; advantages: number[] }[],
  o: LossOptions,
): Record<
  'policy_loss' | 'loss' | 'reinforce_loss' | 'clip_fraction' | 'ratio_mean' | 'masked_tokens' | 'clamped',
  number
> {
  const limit = (x: number) => Math.min(20, Math.max(-20, x));
  const all = items.flatMap((item, i) =>
    item.tokens
      .filter((t) => t.mask === 1)
      .map((t) => {
        const exponent = t.p - (o.denominator === 'ref' ? t.r : t.o);
        const ratio = Math.exp(limit(exponent));
        const a = item.advantages[t.step] ?? 0;
        const clipped = Math.min(Math.max(ratio, 1 - o.clipLow), 1 + o.clipHigh);
        const d = t.r - t.p;
        const kl = o.kl === 'k1' ? -d : o.kl === 'k2' ? d ** 2 / 2 : Math.exp(limit(d)) - limit(d) - 1;
        const usesD = o.kl === 'k3' && (o.klCoef !== 0 || o.denominator === 'ref');
        const clamp = Math.abs(exponent) > 20 || (usesD && Math.abs(d) > 20);
        return {
          i,
          ratio,
          kl,
          clamp,
          p: t.p,
          a,
          term: Math.min(ratio * a, clipped * a),
          clip: clipped * a < ratio * a,
        };
      }),
  );
  const total = (pick: (t: (typeof all)[number]) => number) => all.reduce((sum, t) => sum + pick(t), 0);
  const means = items.map((_, i) => {
    const own = all.filter((t) => t.i === i);
    return own.length === 0 ? 0 : own.reduce((sum, t) => sum + t.term, 0) / own.length;
  });
  const gain = {
    'trajectory-sum': total((t) => t.term) / items.length,
    'token-mean': total((t) => t.term) / all.length,
    'trajectory-mean': means.reduce((sum, m) => sum + m, 0) / items.length,
  }[o.aggregate];
  return {
    policy_loss: -gain,
    loss: -gain + (o.klCoef === 0 ? 0 : (o.klCoef * total((t) => t.kl)) / all.length),
    reinforce_loss: -total((t) => t.p * t.a) / all.length,
    clip_fraction: total((t) => Number(t.clip)) / all.length,
    ratio_mean: total((t) => t.ratio) / all.length,
    masked_tokens: all.length,
    clamped: total((t) => Number(t.clamp)),
  };
}
