import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { computeLoss } from '../../server/core/training/loss';
import { channelView, missingFor } from './channels';
import { alternativesAt, exactFloat32, klOf, lossTermOf, numbersAt, probabilityText, ratioOf } from './token-numbers';
import { tokensOf } from './tokens-of';

const scored = (mask: number[], policy: number[], ref: number[]) => ({
  ...tokensOf(mask.map(() => ({ bytes: 'x', step: 0 }))),
  mask: Uint8Array.from(mask),
  policyLogprobs: Float32Array.from(policy),
  refLogprobs: Float32Array.from(ref),
});

describe('the numbers of a token', () => {
  it('add up to the loss that is trained', () => {
    const logprob = fc.float({ min: -6, max: 0, noNaN: true });
    fc.assert(
      fc.property(fc.array(fc.tuple(logprob, logprob, fc.boolean()), { minLength: 1, maxLength: 8 }), (rows) => {
        fc.pre(rows.some(([, , on]) => on));
        const tokens = scored(
          rows.map(([, , on]) => (on ? 1 : 0)),
          rows.map(([p]) => p),
          rows.map(([, r]) => r),
        );
        const member = (id: string, reward: number) => ({
          trajectory: {
            groupId: 'g',
            trajectoryId: id,
            stepRewards: [reward],
            reward,
            status: 'completed' as const,
            humanEdited: false,
            stateKeys: null,
          },
          sequences: [
            {
              sequenceIndex: 0,
              mask: tokens.mask,
              stepIndex: tokens.stepIndex,
              logprobs: null,
              policyLogprobs: tokens.policyLogprobs,
              refLogprobs: tokens.refLogprobs,
            },
          ],
        });
        const report = computeLoss([member('a', 1), member('b', 0)], { klCoef: 1 });
        let policyLoss = 0;
        let kl = 0;
        for (const id of ['a', 'b'])
          for (let at = 0; at < rows.length; at++) {
            const own = numbersAt(tokens, at, report.advantages[id] ?? null, []);
            policyLoss += (own.lossTerm ?? 0) / 2;
            if (tokens.mask[at] === 1) kl += (own.kl ?? 0) / report.masked_tokens;
          }
        expect(policyLoss).toBeCloseTo(report.policy_loss, 9);
        expect(kl).toBeCloseTo(report.kl ?? Number.NaN, 9);
      }),
    );
  });
  it('stay finite where the exponent is 800, and are absent where there is nothing', () => {
    expect(Number.isFinite(ratioOf(0, -800))).toBe(true);
    expect(Number.isFinite(klOf(-800, 0))).toBe(true);
    expect(lossTermOf(1.5, 1)).toEqual({ value: -1.2, clipped: true });
    const bare = tokensOf(['x']);
    expect(numbersAt(bare, 0, [1], [])).toMatchObject({ logprob: null, ratio: null, advantage: null, lossTerm: null });
  });
  it('has the likeliest tokens of a position, and none where nothing was scored', () => {
    const tokens = tokensOf(['a', 'b']);
    const alternatives = {
      k: 2,
      ids: Int32Array.of(-1, -1, 7, 9),
      logprobs: Float32Array.of(Number.NaN, Number.NaN, -0.5, -2),
    };
    expect(alternativesAt({ ...tokens, alternatives }, 0)).toEqual([]);
    expect(alternativesAt({ ...tokens, alternatives }, 1)).toEqual([
      { id: 7, logprob: -0.5 },
      { id: 9, logprob: -2 },
    ]);
    expect(alternativesAt(tokens, 1)).toEqual([]);
  });
  it('are written in the fewest digits that mean exactly the stored number', () => {
    expect(exactFloat32(Math.fround(-0.412345))).toBe('−0.412345');
    fc.assert(
      fc.property(fc.float({ noNaN: true, noDefaultInfinity: true }), (value) => {
        expect(Math.fround(Number(exactFloat32(value).replace('−', '-')))).toBe(value + 0);
      }),
    );
  });
});

describe('a channel', () => {
  it('says why ratio and KL are not offered', () => {
    const source = { tokens: tokensOf(['a']), advantages: null, weights: [] };
    expect(missingFor('ratio', source)).toBe('noPolicyLogprobs');
    expect(missingFor('kl', { ...source, tokens: { ...source.tokens, policyLogprobs: new Float32Array(1) } })).toBe(
      'noRefLogprobs',
    );
    expect(missingFor('advantage', source)).toBe('noAdvantages');
    expect(missingFor('mask', source)).toBeNull();
  });
  it('has numbers only where the policy sampled', () => {
    const tokens = scored([0, 1], [-1, -1], [-1, -2]);
    const view = channelView('ratio', { tokens, advantages: null, weights: [] });
    expect(view.valueAt(0)).toBeNaN();
    expect(view.valueAt(1)).toBe(1);
  });
  it('gives spans of one version one number', () => {
    const weights = [
      { version: 'a', start: 0, end: 1 },
      { version: 'b', start: 1, end: 2 },
      { version: 'a', start: 2, end: 3 },
    ];
    const tokens = { ...tokensOf(['x', 'y', 'z']), mask: Uint8Array.from([1, 1, 1]) };
    const view = channelView('version', { tokens, advantages: null, weights });
    expect([0, 1, 2].map((token) => view.valueAt(token))).toEqual([0, 1, 0]);
  });
  it('write a probability as exact only where it is', () => {
    expect([1, 0.99997, 0.5, 0.00123, 1e-9, 0, null].map(probabilityText)).toEqual([
      '100.00%',
      '>99.99%',
      '50.00%',
      '0.1230%',
      '<0.0001%',
      '0.0000%',
      '–',
    ]);
  });
});
