/** The arithmetic of GPU servers' samplers: temperature first, then the filters, then one draw. */
import type { Alternatives } from './engine';
import type { Distribution } from './weights';

export interface Filters {
  topP: number;
  /** 0 = off. */
  topK: number;
  /** 0 = off. */
  minP: number;
}

/** log-softmax of logits / T from the one at T = 1. Greedy (0) is numbered as T = 1, as the servers do. */
export function atTemperature(logprobs: Distribution, temperature: number): Distribution {
  if (temperature === 0 || temperature === 1) return logprobs;
  const scaled = logprobs.map((value) => value / temperature);
  let most = Number.NEGATIVE_INFINITY;
  for (const value of scaled) most = Math.max(most, value);
  let sum = 0;
  for (const value of scaled) sum += Math.exp(value - most);
  const norm = most + Math.log(sum);
  return scaled.map((value) => value - norm);
}

/** `logprobs` are those at the temperature; `random` is uniform in [0, 1). */
export function draw(logprobs: Distribution, greedy: boolean, filters: Filters, random: () => number): number {
  const likeliest = ranked(logprobs);
  const first = likeliest[0] ?? 0;
  if (greedy) return first;
  const kept = filtered(likeliest, logprobs, filters);
  const probabilities = kept.map((id) => Math.exp(logprobs[id] ?? Number.NEGATIVE_INFINITY));
  let rest = random() * probabilities.reduce((sum, value) => sum + value, 0);
  for (const [k, probability] of probabilities.entries()) {
    rest -= probability;
    if (rest < 0) return kept[k] ?? first;
  }
  return kept.at(-1) ?? first;
}

export function likeliestOf(logprobs: Distribution, count: number): Alternatives {
  if (count === 0) return [];
  return ranked(logprobs)
    .slice(0, count)
    .map((id) => [logprobs[id] ?? Number.NEGATIVE_INFINITY, id]);
}

function ranked(logprobs: Distribution): number[] {
  return Array.from(logprobs.keys()).sort((a, b) => (logprobs[b] ?? 0) - (logprobs[a] ?? 0) || a - b);
}

function filtered(likeliest: readonly number[], logprobs: Distribution, { topP, topK, minP }: Filters): number[] {
  const most = logprobs[likeliest[0] ?? 0] ?? 0;
  const kept: number[] = [];
  let sum = 0;
  for (const id of likeliest) {
    const logprob = logprobs[id] ?? Number.NEGATIVE_INFINITY;
    if (topK > 0 && kept.length >= topK) break;
    if (topP < 1 && sum >= topP) break;
    if (minP > 0 && logprob < most + Math.log(minP)) break;
    kept.push(id);
    sum += Math.exp(logprob);
  }
  return kept;
}
