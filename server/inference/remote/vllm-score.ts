/** Log-probabilities of given tokens on vLLM: those of a prompt, which it computes while it reads it. */
import { Invalid, Unavailable } from '../../core/errors';
import type { HttpClient } from './http-client';
import { isObject } from './json-body';
import type { RawScores } from './protocol';
import { where } from './server-name';
import type { VllmFacts } from './vllm-facts';

/** No alternative: there are fewer. */
const NONE = -1;

/**
 * One throw-away token is sampled, because the server wants at least one. So no prompt may fill the context: then the last
 * token is the one that is sampled, as the only one allowed, which raw numbers do not know of. Entropy is not offered: it takes the whole
 * vocabulary at every position of the prompt, which vLLM writes as JSON, about ten gigabytes for a thousand tokens.
 */
export async function scoreOnVllm(
  http: HttpClient,
  facts: VllmFacts,
  call: { promptIds: Int32Array; completionIds: Int32Array; alternatives: number; signal?: AbortSignal },
): Promise<RawScores | null> {
  if (facts.device === 'cpu' && facts.loraEnabled)
    throw new Unavailable(
      `${where(http)} is a vLLM on a processor with adapters, whose engine ends when it scores beside other requests. Start it without --enable-lora to score, or score with another backend that serves the same weights.`,
    );
  const { promptIds, completionIds, alternatives: k, signal } = call;
  const all = new Int32Array(promptIds.length + completionIds.length);
  all.set(promptIds);
  all.set(completionIds, promptIds.length);
  const next = all.length === facts.contextLength && facts.logprobs === 'raw' ? (all.at(-1) ?? null) : null;
  const request = {
    model: facts.servedModel,
    prompt: next === null ? all : all.subarray(0, -1),
    max_tokens: 1,
    temperature: 1,
    prompt_logprobs: k,
    ...(next !== null && { allowed_token_ids: [next], logprobs: k, return_tokens_as_token_ids: true }),
    stream: false,
  };
  const { body } = await http.postJson('/v1/completions', request, { signal, timeoutMs: null });
  return readScores(http, next === null ? body : withSampled(body, next), promptIds.length, completionIds, k);
}

/** The reply with the sampled token's numbers as those of one more token of the prompt. */
function withSampled(body: unknown, id: number): unknown {
  const choice = isObject(body) && Array.isArray(body.choices) ? body.choices[0] : null;
  if (!isObject(choice) || !Array.isArray(choice.prompt_logprobs) || !isObject(choice.logprobs)) return body;
  const { token_logprobs, top_logprobs } = choice.logprobs;
  const listed = Array.isArray(top_logprobs) && isObject(top_logprobs[0]) ? top_logprobs[0] : {};
  const entry = Object.fromEntries(
    Object.entries(listed).map(([token, logprob]) => [token.replace(/^token_id:/, ''), { logprob }]),
  );
  entry[id] = { logprob: Array.isArray(token_logprobs) ? token_logprobs[0] : null };
  return { choices: [{ ...choice, prompt_logprobs: [...choice.prompt_logprobs, entry] }] };
}

/**
 * `prompt_logprobs` has one entry a position, null for the first; its keys are ids as strings, in no order. Null for a
 * request that was stopped.
 */
export function readScores(
  http: HttpClient,
  body: unknown,
  promptLength: number,
  completionIds: Int32Array,
  k: number,
): RawScores | null {
  const choice = isObject(body) && Array.isArray(body.choices) ? body.choices[0] : null;
  if (isObject(choice) && choice.finish_reason === 'abort') return null;
  const entries = isObject(choice) ? choice.prompt_logprobs : null;
  const n = completionIds.length;
  if (!Array.isArray(entries) || entries.length !== promptLength + n)
    throw new Invalid(
      `${where(http)} answered POST /v1/completions with log-probabilities of ${Array.isArray(entries) ? entries.length : 'no'} prompt tokens where ${promptLength + n} were asked for.`,
    );
  const logprobs = new Float32Array(n);
  const alternatives =
    k > 0 ? { k, ids: new Int32Array(n * k).fill(NONE), logprobs: new Float32Array(n * k).fill(Number.NaN) } : null;
  for (let i = 0; i < n; i++) {
    const entry: unknown = entries[promptLength + i];
    const own = isObject(entry) ? entry[String(completionIds[i])] : null;
    // Only the very first token of all has no token before it.
    logprobs[i] = isObject(own) ? numberOrNaN(own.logprob) : Number.NaN;
    if (alternatives && isObject(entry))
      likeliest(entry, k).forEach(([id, value], j) => {
        alternatives.ids[i * k + j] = id;
        alternatives.logprobs[i * k + j] = value;
      });
  }
  return { logprobs, alternatives, entropy: null };
}

/** The entry holds the token that stands there beside the k likeliest. */
function likeliest(entry: Record<string, unknown>, k: number): [id: number, logprob: number][] {
  return Object.entries(entry)
    .map(([id, value]): [number, number] => [Number(id), isObject(value) ? numberOrNaN(value.logprob) : Number.NaN])
    .filter(([id, value]) => Number.isInteger(id) && id >= 0 && !Number.isNaN(value))
    .sort(([, a], [, b]) => b - a)
    .slice(0, k);
}

const numberOrNaN = (value: unknown): number => (typeof value === 'number' ? value : Number.NaN);
