/** The numbers of one token, by the definitions of core/training. Null is "there is none", never 0. */

import type { WeightSpan } from '../../server/core/tokens/chunk';
import type { WireTokens } from '../../server/core/tokens/wire';
import { EXPONENT_LIMIT } from '../../server/core/training/bounded-exp';
import { DEFAULT_LOSS_OPTIONS } from '../../server/core/training/loss';
import { ABSENT, decimal } from '../ui/numbers';

export interface TokenNumbers {
  logprob: number | null;
  probability: number | null;
  policy: number | null;
  ref: number | null;
  /** exp(policy − ref), the exponent clamped to ±20. */
  ratio: number | null;
  /** k3: e^d − d − 1, d = ref − policy clamped to ±20. */
  kl: number | null;
  /** A[i, t] of the token's step; only sampled tokens have one. */
  advantage: number | null;
  /** −min(ratio·A, clip(ratio, 1 − ε, 1 + ε)·A) with the default ε; without the KL term and before any averaging. */
  lossTerm: number | null;
  /** The clip decided the loss term, so the token gives no gradient. */
  clipped: boolean;
  /** Of the scored distribution at this position, in nats. */
  entropy: number | null;
  version: string | null;
}

const clampExponent = (value: number): number => Math.max(-EXPONENT_LIMIT, Math.min(EXPONENT_LIMIT, value));

export const ratioOf = (policy: number, ref: number): number => Math.exp(clampExponent(policy - ref));

export function klOf(policy: number, ref: number): number {
  const d = clampExponent(ref - policy);
  return Math.exp(d) - d - 1;
}

export function lossTermOf(ratio: number, advantage: number): { value: number; clipped: boolean } {
  const { clipLow, clipHigh } = DEFAULT_LOSS_OPTIONS;
  const free = ratio * advantage;
  const held = Math.max(1 - clipLow, Math.min(1 + clipHigh, ratio)) * advantage;
  return { value: 0 - Math.min(free, held), clipped: held < free };
}

/** Index of the span that holds `position`, −1 where none does. Spans rise and do not overlap. */
export function versionAt(spans: readonly WeightSpan[], position: number): number {
  let low = 0;
  let high = spans.length - 1;
  while (low <= high) {
    const middle = (low + high) >>> 1;
    const span = spans[middle] as WeightSpan;
    if (position < span.start) high = middle - 1;
    else if (position >= span.end) low = middle + 1;
    else return middle;
  }
  return -1;
}

export function numbersAt(
  tokens: WireTokens,
  position: number,
  advantages: readonly (number | null)[] | null,
  weights: readonly WeightSpan[],
): TokenNumbers {
  const sampled = tokens.mask[position] === 1;
  const logprob = number(tokens.logprobs[position]);
  const policy = number(tokens.policyLogprobs?.[position]);
  const ref = number(tokens.refLogprobs?.[position]);
  const both = policy !== null && ref !== null;
  const ratio = both ? ratioOf(policy, ref) : null;
  const advantage = sampled ? number(advantages?.[tokens.stepIndex[position] as number]) : null;
  const loss = ratio !== null && advantage !== null ? lossTermOf(ratio, advantage) : null;
  return {
    logprob,
    probability: logprob === null ? null : Math.exp(logprob),
    policy,
    ref,
    ratio,
    kl: both ? klOf(policy, ref) : null,
    advantage,
    lossTerm: loss?.value ?? null,
    clipped: loss?.clipped ?? false,
    entropy: number(tokens.entropy?.[position]),
    version: weights[versionAt(weights, position)]?.version ?? null,
  };
}

/** The likeliest tokens of a position, likeliest first; none where nothing was scored. */
export function alternativesAt(tokens: WireTokens, position: number): { id: number; logprob: number }[] {
  const { alternatives } = tokens;
  if (!alternatives) return [];
  const { k, ids, logprobs } = alternatives;
  return Array.from({ length: k }, (_, rank) => ({
    id: ids[position * k + rank] as number,
    logprob: logprobs[position * k + rank] as number,
  })).filter(({ id, logprob }) => id >= 0 && !Number.isNaN(logprob));
}

function number(value: number | null | undefined): number | null {
  return value === undefined || value === null || Number.isNaN(value) ? null : value;
}

/** A float32 in the fewest digits that still mean exactly it, with a true minus sign: `−0.41234514`. */
export function exactFloat32(value: number): string {
  if (Number.isFinite(value) && Math.fround(value) === value)
    for (let digits = 1; digits <= 9; digits++) {
      const short = Number(value.toPrecision(digits));
      if (Math.fround(short) === value) return String(short).replace('-', '−');
    }
  return String(value).replace('-', '−');
}

/** `99.53%`. 0% and 100% are written only where they are exact. */
export function probabilityText(probability: number | null): string {
  if (probability === null) return ABSENT;
  const digits = probability < 0.01 ? 4 : 2;
  const text = decimal(probability * 100, digits);
  if (probability < 1 && text === '100.00') return '>99.99%';
  return probability > 0 && Number(text) === 0 ? '<0.0001%' : `${text}%`;
}
