/**
 * Log-probability of a given token under the unconstrained policy at temperature 1, from the native sampler, which
 * reports the probability of the token it picks and of no other.
 *
 * So the token is made the likeliest: with b added to its logit it has the probability c = p·e^b / (p·e^b + 1 − p),
 * hence p = o / (1 + o) with o = c / (1 − c) · e^(−b). The smallest b that gets it picked (within 1) is found by
 * picking alone, which is cheap; only the last pick asks for c, which sorts the vocabulary. b has to be small: the
 * library adds probabilities up in float32, largest first, and a needlessly large one would swallow the tail.
 * Listing the probabilities of the whole vocabulary instead costs about ten times as much for 49,000 tokens; that is
 * done where alternatives or the entropy are asked for.
 */
import type { AddonContext, AddonSampler, SamplerConfig } from './llama-addon';

/** A float32 probability below e^-103 is zero: the floor of what can be reported. */
export const LEAST_LOGPROB = -103;
const MOST_BIAS = 128;
const CLOSE_ENOUGH = 1;

/** Natural log. `sampler` is any sampler of the context; its configuration is overwritten. */
export async function logprobOf(
  context: AddonContext,
  sampler: AddonSampler,
  logitIndex: number,
  token: number,
): Promise<number> {
  const picks = async (bias: number) => {
    sampler.applyConfig(greedy(token, bias));
    return (await context.sampleToken(logitIndex, sampler)) === token;
  };
  let enough = 0;
  let tooLittle = 0;
  while (!(await picks(enough))) {
    if (enough >= MOST_BIAS) return LEAST_LOGPROB;
    tooLittle = enough;
    enough = Math.max(1, enough * 2);
  }
  while (enough - tooLittle > CLOSE_ENOUGH) {
    const middle = (enough + tooLittle) / 2;
    if (await picks(middle)) enough = middle;
    else tooLittle = middle;
  }
  sampler.applyConfig(greedy(token, enough));
  const [, , confidence] = await context.sampleToken(logitIndex, sampler, false, true);
  return Math.max(LEAST_LOGPROB, unbiased(confidence ?? Number.NaN, enough));
}

export interface Position {
  logprob: number;
  /** In nats. */
  entropy: number;
  /** The k likeliest tokens, likeliest first; fewer when the vocabulary is smaller. */
  likeliest: { id: number; logprob: number }[];
}

/** All there is to know of one position, from a list of the whole vocabulary's probabilities. */
export async function positionOf(
  context: AddonContext,
  sampler: AddonSampler,
  logitIndex: number,
  token: number,
  k: number,
): Promise<Position> {
  sampler.applyConfig({ temperature: 0 });
  const [, listed] = await context.sampleToken(logitIndex, sampler, true);
  const position: Position = { logprob: LEAST_LOGPROB, entropy: 0, likeliest: [] };
  for (let at = 0; at < listed.length; at += 2) {
    const id = listed[at] ?? -1;
    const probability = listed[at + 1] ?? 0;
    const logprob = Math.max(LEAST_LOGPROB, Math.log(probability));
    if (id === token) position.logprob = logprob;
    if (position.likeliest.length < k) position.likeliest.push({ id, logprob });
    position.entropy -= probability * logprob;
  }
  return position;
}

function greedy(token: number, bias: number): SamplerConfig {
  if (bias === 0) return { temperature: 0 };
  return { temperature: 0, tokenBiasKeys: Uint32Array.of(token), tokenBiasValues: Float32Array.of(bias) };
}

/** log p from the probability `confidence` that the token has with `bias` added to its logit. */
export function unbiased(confidence: number, bias: number): number {
  if (bias === 0) return Math.log(confidence);
  const logOdds = Math.log(confidence) - Math.log1p(-confidence) - bias;
  // log(o / (1 + o)) without losing digits at either end.
  return logOdds > 0 ? -Math.log1p(Math.exp(-logOdds)) : logOdds - Math.log1p(Math.exp(logOdds));
}
