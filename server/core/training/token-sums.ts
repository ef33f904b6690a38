/**
 * The hot loop of the loss: one pass over the tokens of a sequence, before any advantage is known.
 *
 * With the advantage A of a step fixed, min(ratio·A, clip(ratio)·A) is A·min(ratio, 1 + high) for A > 0 and
 * A·max(ratio, 1 - low) for A < 0. So a step needs only its sums of those two, and batches of any size are reduced
 * while they are read. One exponential a masked token (two where the ratio is not against the reference and k3 is wanted).
 */
import { Invalid } from '../errors';
import { boundedExp, EXPONENT_LIMIT } from './bounded-exp';

export type Logprobs = Float32Array | Float64Array;
export type KlKind = 'k1' | 'k2' | 'k3';

/** Engines write -9999 where they have no number; nothing sampled is that unlikely. */
export const LOGPROB_FLOOR = -9999;

/** Sums of one step of one trajectory: `SUMS_PER_STEP` numbers in a row of the table. */
export const SUMS_PER_STEP = 6;
export const TOKENS = 0;
/** Σ min(ratio, 1 + clipHigh) */
export const CAPPED = 1;
/** Σ max(ratio, 1 - clipLow) */
export const FLOORED = 2;
/** Tokens with ratio > 1 + clipHigh, and with ratio < 1 - clipLow. */
export const ABOVE = 3;
export const BELOW = 4;
/** Σ policy log-probability */
export const POLICY = 5;

/** Tokens of one sequence with the log-probabilities a loss uses, all of one length. */
export interface ScoredTokens {
  mask: Uint8Array;
  stepIndex: Int32Array;
  policy: Logprobs;
  denominator: Logprobs;
  /** Null: no KL is wanted. The same array as `denominator` where the ratio is taken against the reference. */
  ref: Logprobs | null;
  /** Names for messages. */
  names: { trajectoryId: string; sequenceIndex: number | null; denominator: string };
}

export interface WholeSums {
  ratio: number;
  kl: number;
  clamped: number;
}

/** Tokens of one step are summed in blocks of this many, so that the inner loops stay small and free of calls. */
const BLOCK = 1024;
const exponents = new Float64Array(BLOCK);
const ratios = new Float64Array(BLOCK);
/** policy - ref, where the ratio is taken against something else. */
const refGaps = new Float64Array(BLOCK);
const refRatios = new Float64Array(BLOCK);

/**
 * Adds the masked tokens of `tokens` to `table` (row of step t: `firstRow + t`) and to `whole`.
 * Throws Invalid, with trajectory, position and value, on a log-probability that is none and on a step outside 0..steps-1.
 */
export function addTokens(
  tokens: ScoredTokens,
  settings: { clipLow: number; clipHigh: number; kl: KlKind },
  table: Float64Array,
  firstRow: number,
  steps: number,
  whole: WholeSums,
): void {
  const { mask, stepIndex, policy, denominator, ref } = tokens;
  const separateKl = ref !== null && ref !== denominator;
  const gaps = separateKl ? refGaps : exponents;
  const kl = ref === null ? 'none' : settings.kl;
  const limit = EXPONENT_LIMIT;
  const wellAboveFloor = LOGPROB_FLOOR + limit;
  const n = mask.length;
  let k = 0;
  while (k < n) {
    if (mask[k] === 0) {
      k++;
      continue;
    }
    const step = stepIndex[k] as number;
    if (step < 0 || step >= steps) refuseStep(tokens, k, steps);
    const start = k;
    let count = 0;
    let policySum = 0;
    let far = false;
    for (; k < n && count < BLOCK; k++) {
      if (mask[k] === 0) continue;
      if (stepIndex[k] !== step) break;
      const p = policy[k] as number;
      const q = denominator[k] as number;
      const exponent = p - q;
      // One look for the common case: near each other, and p well above the floor, both are numbers.
      if (!(exponent >= -limit && exponent <= limit && p > wellAboveFloor)) {
        if (!(p > LOGPROB_FLOOR && p < Infinity && q > LOGPROB_FLOOR && q < Infinity)) refuse(tokens, k);
        far = true;
      }
      exponents[count++] = exponent;
      policySum += p;
    }
    if (separateKl) gatherRefGaps(tokens, ref, start, k);
    if (kl === 'k1' || kl === 'k2') whole.kl += plainKl(gaps, count, kl);
    const clampsRefGaps = separateKl && kl === 'k3';
    if (far || clampsRefGaps) whole.clamped += clamp(count, clampsRefGaps);
    boundedExp(exponents, ratios, count);
    const row = (firstRow + step) * SUMS_PER_STEP;
    table[row + POLICY] = (table[row + POLICY] as number) + policySum;
    whole.ratio += addRatios(count, 1 - settings.clipLow, 1 + settings.clipHigh, table, row);
    if (kl !== 'k3') continue;
    if (separateKl) boundedExp(refGaps, refRatios, count);
    whole.kl += k3(gaps, separateKl ? refRatios : ratios, count);
  }
}

function gatherRefGaps(tokens: ScoredTokens, ref: Logprobs, start: number, end: number): void {
  const { mask, policy } = tokens;
  let count = 0;
  for (let k = start; k < end; k++) {
    if (mask[k] === 0) continue;
    const r = ref[k] as number;
    if (!(r > LOGPROB_FLOOR && r < Infinity)) refuse(tokens, k);
    refGaps[count++] = (policy[k] as number) - r;
  }
}

/** Clamps the block in place; returns how many tokens that touched. */
function clamp(count: number, refGapsToo: boolean): number {
  const limit = EXPONENT_LIMIT;
  let touched = 0;
  for (let k = 0; k < count; k++) {
    const x = exponents[k] as number;
    if (x > limit || x < -limit) {
      exponents[k] = x > 0 ? limit : -limit;
      touched++;
    }
    if (!refGapsToo) continue;
    const gap = refGaps[k] as number;
    if (gap > limit || gap < -limit) {
      refGaps[k] = gap > 0 ? limit : -limit;
      if (Math.abs(x) <= limit) touched++;
    }
  }
  return touched;
}

/** Adds the block's ratios to the sums of its step; returns Σ ratio. */
function addRatios(count: number, bottom: number, top: number, table: Float64Array, row: number): number {
  let sum = 0;
  let capped = 0;
  let floored = 0;
  let above = 0;
  let below = 0;
  for (let k = 0; k < count; k++) {
    const ratio = ratios[k] as number;
    sum += ratio;
    capped += Math.min(ratio, top);
    floored += Math.max(ratio, bottom);
    above += +(ratio > top);
    below += +(ratio < bottom);
  }
  table[row + TOKENS] = (table[row + TOKENS] as number) + count;
  table[row + CAPPED] = (table[row + CAPPED] as number) + capped;
  table[row + FLOORED] = (table[row + FLOORED] as number) + floored;
  table[row + ABOVE] = (table[row + ABOVE] as number) + above;
  table[row + BELOW] = (table[row + BELOW] as number) + below;
  return sum;
}

function plainKl(gaps: Float64Array, count: number, kl: 'k1' | 'k2'): number {
  let sum = 0;
  let squares = 0;
  for (let k = 0; k < count; k++) {
    const gap = gaps[k] as number;
    sum += gap;
    squares += gap * gap;
  }
  return kl === 'k1' ? sum : 0.5 * squares;
}

/** Σ e^d - d - 1 with d = ref - policy = -gap, so e^d = 1 / e^gap. */
function k3(gaps: Float64Array, exps: Float64Array, count: number): number {
  let sum = 0;
  for (let k = 0; k < count; k++) sum += 1 / (exps[k] as number) + (gaps[k] as number) - 1;
  return sum;
}

function placeOf({ names }: ScoredTokens, position: number): string {
  const sequence = names.sequenceIndex ? ` (sequence ${names.sequenceIndex})` : '';
  return `Trajectory ${names.trajectoryId}${sequence}, token ${position}`;
}

function refuse(tokens: ScoredTokens, position: number): never {
  const columns: [string, Logprobs | null][] = [
    ['policy_logprobs', tokens.policy],
    [tokens.names.denominator, tokens.denominator],
    ['ref_logprobs', tokens.ref],
  ];
  for (const [name, values] of columns) {
    const value = values?.[position];
    if (value === undefined || (value > LOGPROB_FLOOR && value < Infinity)) continue;
    const shown = Number.isNaN(value) ? 'missing (null or NaN)' : String(value);
    throw new Invalid(
      `${placeOf(tokens, position)}: its ${name} is ${shown}. A sampled token (generation_mask 1) needs a finite log-probability; ` +
        'score it again, or leave the trajectory out.',
      { trajectoryId: tokens.names.trajectoryId, position, value: String(value), column: name },
    );
  }
  throw new Invalid(`${placeOf(tokens, position)}: its log-probability cannot be used.`);
}

function refuseStep(tokens: ScoredTokens, position: number, steps: number): never {
  throw new Invalid(
    `${placeOf(tokens, position)}: it was sampled (generation_mask 1) in step ${tokens.stepIndex[position]}, but the trajectory has ` +
      `${steps === 1 ? '1 step reward' : `${steps} step rewards`}.`,
    { trajectoryId: tokens.names.trajectoryId, position, step: tokens.stepIndex[position], steps },
  );
}
