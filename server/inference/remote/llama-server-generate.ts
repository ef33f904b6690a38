/**
 * Generation on llama-server: every sampling field is set (its defaults filter), the ids are `tokens`, and the numbers are
 * put beside them. The server keeps numbers back: those of the tokens that its own spelling of the stop string has, and
 * those of tokens that end inside a character, and those of tokens that it drafted. What is missing is scored.
 */
import { Invalid } from '../../core/errors';
import type { Constraint, SamplingOptions } from '../backend';
import { constraintGrammar } from '../constraint-grammar';
import type { HttpClient } from './http-client';
import { placeOf } from './llama-server-score';
import { type CompletionReply, complete, type ListedPosition } from './llama-server-wire';
import type { GenerateCall, RawGeneration, ServerFacts } from './protocol';
import { broken, countOrNull } from './server-probe';
import { quoted } from './server-words';

/** llama.cpp takes this seed for "draw one at random". */
const RANDOM_SEED = 0xffffffff;

export async function generate(http: HttpClient, facts: ServerFacts, call: GenerateCall): Promise<RawGeneration> {
  const { promptIds, options, signal } = call;
  const fields = {
    prompt: promptIds,
    n_predict: options.maxTokens,
    n_probs: 1,
    stop: options.stop,
    ...samplingFields(options),
    ...constraintFields(options.constraint),
  };
  const reply = await complete(http, facts, fields, signal);
  if (reply.tokens.length !== reply.predicted)
    throw broken(
      http,
      '/completion',
      `it sampled ${reply.predicted} tokens and sent the ids of ${reply.tokens.length}`,
    );
  // Some builds write a character that the limit cuts off to its end.
  const ids = reply.tokens.slice(0, options.maxTokens);
  const { logprobs, tokenBytes } = align(ids, reply.positions);
  const all = new Int32Array(promptIds.length + ids.length);
  all.set(promptIds);
  all.set(ids, promptIds.length);
  // One after another: each finds the one before in the slot that has just become free.
  for (let k = 0; k < ids.length; k++) {
    if (!Number.isNaN(logprobs[k])) continue;
    const token = ids[k] ?? 0;
    const place = await placeOf(http, facts, all.subarray(0, promptIds.length + k), token, { likeliest: 1, signal });
    logprobs[k] = place.logprob;
    tokenBytes[k] ??= bytesIn(place, token);
  }
  return {
    ids,
    logprobs,
    logprobKind: 'raw',
    ...finishOf(reply, ids.length, http),
    promptTokens: countOrNull(reply.evaluated),
    weightVersions: null,
    tokenBytes,
  };
}

/** Filters see what temperature left, as on the other servers; llama.cpp's own order filters first. */
function samplingFields({ temperature, topK, topP, minP, seed }: SamplingOptions): Record<string, unknown> {
  const filters = temperature === 0 ? [] : [minP > 0 && 'min_p', topK > 0 && 'top_k', topP < 1 && 'top_p'];
  const bits = seed >>> 0;
  return {
    samplers: ['temperature', ...filters.filter((name) => name !== false)],
    temperature,
    top_k: topK,
    top_p: topP,
    min_p: minP,
    seed: bits === RANDOM_SEED ? 0 : bits,
  };
}

/** Throws Invalid for what cannot be sent; an empty grammar would be none to the server. */
function constraintFields(constraint: Constraint | undefined): Record<string, unknown> {
  if (!constraint) return {};
  if (constraint.kind === 'json_schema') return { json_schema: constraint.schema };
  const grammar = constraint.kind === 'grammar' ? constraint.grammar : constraintGrammar(constraint);
  if (grammar.trim() === '') throw new Invalid('The grammar of the constraint is empty; it needs a rule called root.');
  return { grammar };
}

/**
 * Puts the numbers beside the ids. They are of some of the tokens, in order, so a number belongs to a token for certain
 * when the first and the last way to place all of them agree on it; the others stay NaN.
 */
export function align(
  ids: Int32Array,
  numbers: ListedPosition[],
): { logprobs: Float32Array; tokenBytes: (Uint8Array | null)[] } {
  const logprobs = new Float32Array(ids.length).fill(Number.NaN);
  const tokenBytes = new Array<Uint8Array | null>(ids.length).fill(null);
  const latest: number[] = [];
  for (let j = numbers.length - 1, at = ids.length - 1; j >= 0 && at >= 0; at--)
    if (ids[at] === numbers[j]?.id) latest[j--] = at;
  let at = 0;
  for (const [j, place] of numbers.entries()) {
    while (at < ids.length && ids[at] !== place.id) at++;
    if (at === ids.length) break;
    if (latest[j] === at) {
      logprobs[at] = place.logprob;
      tokenBytes[at] = bytesIn(place, place.id);
    }
    at++;
  }
  return { logprobs, tokenBytes };
}

/** A place's own text may hold what the server had kept back before, so only the listing says what a token is. */
function bytesIn({ likeliest }: ListedPosition, token: number): Uint8Array | null {
  const bytes = likeliest.find(({ id }) => id === token)?.bytes;
  return bytes?.length ? bytes : null;
}

function finishOf(
  { stopType, stoppingWord, tokens }: CompletionReply,
  n: number,
  http: HttpClient,
): Pick<RawGeneration, 'finish' | 'endTokenSampled' | 'stopString'> {
  const finish = n < tokens.length ? 'limit' : stopType;
  if (finish === 'eos') return { finish: 'eos', endTokenSampled: true, stopString: null };
  if (finish === 'word') return { finish: 'stop', endTokenSampled: false, stopString: stoppingWord };
  if (finish === 'limit') return { finish: 'length', endTokenSampled: false, stopString: null };
  throw broken(http, '/completion', `it ended for the unknown reason ${quoted(stopType, 40)}`);
}
