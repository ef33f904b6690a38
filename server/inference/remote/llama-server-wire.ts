/** Shapes of llama-server's JSON as far as they are read, and the calls behind them. Nothing in a reply is trusted. */
import type { HttpClient } from './http-client';
import { isObject } from './json-body';
import type { ServerFacts } from './protocol';
import { broken, numberOrNaN, readIds } from './server-probe';

/** A token and its raw log-probability: temperature 1, no filters, no grammar, whatever was sampled under. */
export interface ListedToken {
  id: number;
  logprob: number;
  /** Of the token alone; empty for control tokens. */
  bytes: Uint8Array;
}

/** One place of `completion_probabilities`; NaN where the server computed no number. */
export interface ListedPosition {
  id: number;
  logprob: number;
  likeliest: ListedToken[];
}

export interface CompletionReply {
  tokens: Int32Array;
  predicted: number;
  evaluated: number;
  stopType: string;
  stoppingWord: string;
  positions: ListedPosition[];
}

/** What is read of a reply; the rest (the whole prompt as text, all settings) is not sent. */
const FIELDS = [
  'tokens',
  'tokens_predicted',
  'tokens_evaluated',
  'stop_type',
  'stopping_word',
  'completion_probabilities',
];

/** Set whatever the server was started with: the numbers stay raw, and nothing but `samplers` shapes what is sampled. */
const ALWAYS = {
  return_tokens: true,
  post_sampling_probs: false,
  cache_prompt: true,
  // Moves cached pieces to other positions, which changes the numbers.
  n_cache_reuse: 0,
  ignore_eos: false,
  reasoning_budget_tokens: -1,
  stream: false,
  response_fields: FIELDS,
};

/** `POST /completion`; a trajectory has a deadline of its own, so there is none here. */
export async function complete(
  http: HttpClient,
  facts: ServerFacts,
  fields: Record<string, unknown>,
  signal: AbortSignal | undefined,
): Promise<CompletionReply> {
  const body = { model: facts.modelName, ...ALWAYS, ...fields };
  const answer = await http.postJson('/completion', body, { timeoutMs: null, ...(signal && { signal }) });
  const reply = isObject(answer.body) ? answer.body : {};
  const tokens = readIds(reply.tokens);
  if (!tokens)
    throw broken(http, '/completion', 'it holds no token ids, though return_tokens asks for them; take a newer build');
  return {
    tokens,
    predicted: Number(reply.tokens_predicted),
    evaluated: Number(reply.tokens_evaluated),
    stopType: String(reply.stop_type),
    stoppingWord: typeof reply.stopping_word === 'string' ? reply.stopping_word : '',
    positions: listOf(reply.completion_probabilities).map(readPosition),
  };
}

function readPosition(place: Record<string, unknown>): ListedPosition {
  const likeliest = listOf(place.top_logprobs).map((token) => ({
    id: Number(token.id),
    logprob: numberOrNaN(token.logprob),
    bytes: Uint8Array.from(Array.isArray(token.bytes) ? token.bytes : []),
  }));
  // Of a token that it drafted and accepted the server lists nothing and says 0.
  return { id: Number(place.id), logprob: likeliest.length > 0 ? numberOrNaN(place.logprob) : Number.NaN, likeliest };
}

/** Objects of a list; nothing for what is no list. */
export function listOf(value: unknown): Record<string, unknown>[] {
  return Array.isArray(value) ? value.filter(isObject) : [];
}

/** A server that serves several models is told everywhere which one is meant; one that serves a single model ignores it. */
export function ofModel(route: string, facts: Pick<ServerFacts, 'modelName'>): string {
  return `${route}?model=${encodeURIComponent(facts.modelName)}`;
}
