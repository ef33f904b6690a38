/**
 * Log-probabilities of given tokens from a server that only reports those of tokens it samples: each position is a
 * request for one token that is forced by a bias. The reported number is that of the raw distribution, which the bias
 * does not touch. Exact, and a request a token; the server's prefix cache makes each the work of one token.
 */
import { LEAST_LOGPROB } from '../embedded/scoring';
import type { HttpClient } from './http-client';
import { complete, type ListedPosition } from './llama-server-wire';
import type { RawScores, ServerFacts, ServerProtocol } from './protocol';

type ScoreCall = Parameters<NonNullable<ServerProtocol['score']>>[2];

/** Beats any difference of logits. */
const FORCE = 1e6;
/** A part of a character is seldom less likely than this many others; if it is, all are listed. */
const SOME = 256;
/** More than any vocabulary has. */
const ALL = 1e9;

export async function score(http: HttpClient, facts: ServerFacts, call: ScoreCall): Promise<RawScores> {
  const { promptIds, completionIds, alternatives: k, entropy, signal } = call;
  const n = completionIds.length;
  const scores: RawScores = {
    logprobs: new Float32Array(n),
    entropy: entropy ? new Float32Array(n) : null,
    alternatives:
      k > 0 ? { k, ids: new Int32Array(n * k).fill(-1), logprobs: new Float32Array(n * k).fill(Number.NaN) } : null,
  };
  const all = new Int32Array(promptIds.length + n);
  all.set(promptIds);
  all.set(completionIds, promptIds.length);
  await turnsOf(http, facts).take(async () => {
    for (let i = 0; i < n; i++) {
      const before = all.subarray(0, promptIds.length + i);
      const token = completionIds[i] ?? 0;
      const place = await placeOf(http, facts, before, token, { likeliest: entropy ? ALL : k, signal });
      scores.logprobs[i] = atLeast(place.logprob);
      if (scores.entropy)
        scores.entropy[i] = -place.likeliest.reduce(
          (sum, { logprob }) => sum + Math.exp(logprob) * atLeast(logprob),
          0,
        );
      for (const [rank, { id, logprob }] of place.likeliest.slice(0, k).entries()) {
        if (!scores.alternatives) break;
        scores.alternatives.ids[i * k + rank] = id;
        scores.alternatives.logprobs[i * k + rank] = atLeast(logprob);
      }
    }
  });
  return scores;
}

export interface Wanted {
  /** How many of the likeliest tokens to list beside. */
  likeliest: number;
  signal: AbortSignal | undefined;
}

/**
 * The raw log-probability of `token` after `before`, NaN when the server gives none.
 *
 * A token that ends inside a character has no entry in a reply: then another one is forced and the listing of the
 * likeliest is searched, in the end the whole vocabulary.
 */
export async function placeOf(
  http: HttpClient,
  facts: ServerFacts,
  before: Int32Array,
  token: number,
  { likeliest, signal }: Wanted,
): Promise<ListedPosition> {
  const force = async (id: number, listed: number) => {
    const fields = { prompt: before, n_predict: 1, n_probs: Math.max(1, listed), ...forcing(id) };
    const { positions } = await complete(http, facts, fields, signal);
    return positions[0]?.id === id ? positions[0] : null;
  };
  const own = await force(token, likeliest);
  if (own) return own;
  const whole = await wholeToken(http, facts);
  let place: ListedPosition | null = null;
  for (const listed of likeliest > SOME ? [ALL] : [SOME, ALL]) {
    place = await force(whole, listed);
    const found = place?.likeliest.find(({ id }) => id === token);
    if (place && found) return { ...place, id: token, logprob: found.logprob };
  }
  return { id: token, logprob: Number.NaN, likeliest: place?.likeliest ?? [] };
}

function forcing(token: number): Record<string, unknown> {
  return { samplers: ['top_k'], top_k: 1, temperature: 1, logit_bias: [[token, FORCE]], stop: [] };
}

const wholeTokens = new WeakMap<ServerFacts, Promise<number>>();

/** A token that is a character of its own. */
function wholeToken(http: HttpClient, facts: ServerFacts): Promise<number> {
  const held = wholeTokens.get(facts);
  if (held) return held;
  const asked = http.postJson('/tokenize', { model: facts.modelName, content: 'a' }).then(({ body }) => {
    const { tokens } = body as { tokens?: number[] };
    return tokens?.at(-1) ?? 0;
  });
  wholeTokens.set(facts, asked);
  asked.catch(() => wholeTokens.delete(facts));
  return asked;
}

/** Floats below e^-103 are zero, which the server writes as the lowest float. */
function atLeast(logprob: number): number {
  return Number.isNaN(logprob) ? logprob : Math.max(LEAST_LOGPROB, logprob);
}

/**
 * As many completions at once as the server has slots: each slot holds one prefix, and more completions would push each
 * other's out between two tokens.
 */
class Turns {
  #free: number;
  readonly #waiting: (() => void)[] = [];

  constructor(count: number) {
    this.#free = count;
  }

  async take<T>(work: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free--;
    else await new Promise<void>((go) => this.#waiting.push(go));
    try {
      return await work();
    } finally {
      const next = this.#waiting.shift();
      if (next) next();
      else this.#free++;
    }
  }
}

const turns = new WeakMap<HttpClient, Turns>();

function turnsOf(http: HttpClient, facts: ServerFacts): Turns {
  const held = turns.get(http) ?? new Turns(Math.max(1, facts.slots ?? 1));
  turns.set(http, held);
  return held;
}
