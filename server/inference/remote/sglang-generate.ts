/**
 * Generation and scoring on SGLang's own `/generate`. Every sampling field is always sent: what is left out is taken from
 * the model's own defaults.
 */
import type { WeightSpan } from '../../core/tokens/chunk';
import type { JsonObject, LogprobKind } from '../../core/vocabulary';
import type { Constraint, SamplingOptions } from '../backend';
import { constraintGrammar } from '../constraint-grammar';
import type { HttpClient } from './http-client';
import { isObject, showJson } from './json-body';
import type { GenerateCall, RawGeneration, RawScores, ServerFacts } from './protocol';
import { broken, countOrNull, numberOrNaN, readIds } from './server-probe';
import { quoted } from './server-words';
import type { SglangFacts } from './sglang-facts';

const GENERATE = '/generate';
const ABORT_TIMEOUT_MS = 5000;
/** Seeds are numbers of 32 bits with a sign on the server. */
const SEEDS = 2 ** 31;
/** No alternative: there are fewer. */
const NONE = -1;

export async function generateOnSglang(
  http: HttpClient,
  facts: SglangFacts,
  call: GenerateCall,
): Promise<RawGeneration> {
  const { options, requestId, signal } = call;
  const body = await ask(
    http,
    {
      rid: requestId,
      input_ids: call.promptIds,
      sampling_params: samplingFields(facts, options),
      return_logprob: true,
      // Of what is sampled only.
      logprob_start_len: -1,
      stream: false,
    },
    signal,
  );
  facts.lastPrompt = call.promptIds;
  const { output_ids, meta_info: meta } = body;
  const ids = readIds(output_ids);
  if (!ids) throw broken(http, GENERATE, 'it has no token ids (output_ids)');
  return {
    ids,
    logprobs: readTriples(http, 'output_token_logprobs', meta.output_token_logprobs, ids),
    logprobKind: kindOf(options),
    ...endOf(http, meta.finish_reason, ids),
    promptTokens: countOrNull(meta.prompt_tokens),
    weightVersions: readSpans(meta.weight_versions, ids.length) ?? labelOf(meta.weight_version),
    tokenBytes: null,
  };
}

/**
 * Nothing is sampled; the prompt's own numbers from its last token on are those of the completion. They are never
 * divided by a temperature. No prompt may fill the context: then the last token is asked for as one that may come next.
 */
export async function scoreOnSglang(
  http: HttpClient,
  { contextLength }: Pick<ServerFacts, 'contextLength'>,
  call: { promptIds: Int32Array; completionIds: Int32Array; alternatives: number; signal?: AbortSignal },
): Promise<RawScores | null> {
  const { promptIds, completionIds, alternatives: k } = call;
  const all = new Int32Array(promptIds.length + completionIds.length);
  all.set(promptIds);
  all.set(completionIds, promptIds.length);
  const next = all.length < contextLength ? null : (all.at(-1) ?? null);
  const ids = next === null ? all : all.subarray(0, -1);
  const { meta_info: meta } = await ask(
    http,
    {
      input_ids: ids,
      sampling_params: { max_new_tokens: next === null ? 0 : 1, temperature: 1 },
      ...(next !== null && { token_ids_logprob: [next] }),
      return_logprob: true,
      // The first entry of the window has no number, so the window begins one token early.
      logprob_start_len: promptIds.length - 1,
      top_logprobs_num: k,
      stream: false,
    },
    call.signal,
  );
  if (isObject(meta.finish_reason) && meta.finish_reason.type === 'abort') return null;
  if (meta.prompt_tokens !== ids.length)
    throw broken(
      http,
      GENERATE,
      `it read ${String(meta.prompt_tokens).slice(0, 20)} tokens where ${ids.length} were to be scored`,
    );
  const window = ids.subarray(promptIds.length - 1);
  const read = readTriples(http, 'input_token_logprobs', meta.input_token_logprobs, window).slice(1);
  const lists = Array.isArray(meta.input_top_logprobs) ? meta.input_top_logprobs.slice(1) : [];
  if (next === null)
    return { logprobs: read, alternatives: k > 0 ? readAlternatives(lists, read.length, k) : null, entropy: null };
  const last = Array.isArray(meta.output_token_ids_logprobs) ? meta.output_token_ids_logprobs[0] : null;
  const likeliest = Array.isArray(meta.output_top_logprobs) ? meta.output_top_logprobs[0] : null;
  const logprobs = new Float32Array(completionIds.length);
  logprobs.set(read);
  logprobs.set(readTriples(http, 'output_token_ids_logprobs', last, Int32Array.of(next)), read.length);
  return {
    logprobs,
    alternatives: k > 0 ? readAlternatives([...lists, likeliest], logprobs.length, k) : null,
    entropy: null,
  };
}

type Reply = Record<string, unknown> & { meta_info: Record<string, unknown> };

async function ask(
  http: HttpClient,
  request: Record<string, unknown>,
  signal: AbortSignal | undefined,
): Promise<Reply> {
  try {
    const { body } = await http.postJson(GENERATE, request, { signal, timeoutMs: null });
    if (!isObject(body) || !isObject(body.meta_info)) throw broken(http, GENERATE, 'it has no meta_info');
    return body as Reply;
  } catch (error) {
    // The server looks at the closed connection only every few seconds.
    if (signal?.aborted && request.rid !== undefined) void abort(http, request.rid);
    throw error;
  }
}

/** Nobody waits for it: the connection is closed already. */
async function abort(http: HttpClient, rid: unknown): Promise<void> {
  await http.text('POST', '/abort_request', { rid }, { timeoutMs: ABORT_TIMEOUT_MS }).catch(() => {});
}

function samplingFields(facts: SglangFacts, options: SamplingOptions): JsonObject {
  return {
    n: 1,
    max_new_tokens: options.maxTokens,
    temperature: options.temperature,
    top_p: options.topP,
    top_k: options.topK === 0 ? -1 : options.topK,
    min_p: options.minP,
    repetition_penalty: 1,
    presence_penalty: 0,
    frequency_penalty: 0,
    ...(facts.routes.has('seed') && { sampling_seed: Math.abs(options.seed) % SEEDS }),
    stop: options.stop,
    skip_special_tokens: false,
    ...(options.constraint && constraintField(options.constraint)),
  };
}

/** At most one of the three is taken; a choice is the grammar of its texts. */
function constraintField(constraint: Constraint): JsonObject {
  switch (constraint.kind) {
    case 'json_schema':
      return { json_schema: JSON.stringify(constraint.schema) };
    case 'regex':
      return { regex: constraint.pattern };
    case 'grammar':
      return { ebnf: constraint.grammar };
    case 'choice':
      return { ebnf: constraintGrammar(constraint) };
  }
}

/** Of log-softmax of logits / temperature, before filters; greedy is numbered as temperature 1. The mask of a constraint is in the logits. */
function kindOf({ constraint, temperature }: SamplingOptions): LogprobKind {
  if (constraint) return 'constrained';
  return temperature === 1 || temperature === 0 ? 'raw' : 'sampled';
}

/** Of `[log-probability, id, text]`; every id must be the one that was sampled or sent. */
export function readTriples(http: HttpClient, field: string, value: unknown, ids: Int32Array): Float32Array {
  if (!Array.isArray(value) || value.length !== ids.length)
    throw broken(
      http,
      GENERATE,
      `it has ${ids.length} token ids but ${Array.isArray(value) ? value.length : 'no'} log-probabilities (${field})`,
    );
  return Float32Array.from(value, (triple, k) => {
    if (!Array.isArray(triple) || triple[1] !== ids[k])
      throw broken(http, GENERATE, `the log-probability at token ${k} is of another token than the id (${field})`);
    return numberOrNaN(triple[0]);
  });
}

/** One list a position. */
function readAlternatives(lists: unknown[], n: number, k: number): NonNullable<RawScores['alternatives']> {
  const ids = new Int32Array(n * k).fill(NONE);
  const logprobs = new Float32Array(n * k).fill(Number.NaN);
  for (const [i, list] of lists.slice(0, n).entries()) {
    const triples = Array.isArray(list) ? list.filter((one) => Array.isArray(one) && Number.isInteger(one[1])) : [];
    for (const [j, [logprob, id]] of triples.slice(0, k).entries()) {
      ids[i * k + j] = id;
      logprobs[i * k + j] = numberOrNaN(logprob);
    }
  }
  return { k, ids, logprobs };
}

function endOf(
  http: HttpClient,
  reason: unknown,
  ids: Int32Array,
): Pick<RawGeneration, 'finish' | 'stopString' | 'endTokenSampled'> {
  const plain = { stopString: null, endTokenSampled: false };
  const { type, matched } = isObject(reason) ? reason : {};
  if (type === 'length') return { ...plain, finish: 'length' };
  if (type === 'abort') return { ...plain, finish: 'aborted' };
  if (type !== 'stop')
    throw broken(http, GENERATE, `it ended for a reason that is not known here (${quoted(showJson(reason), 80)})`);
  // No stop ids are sent, so an id is the model's own end token.
  if (typeof matched === 'number') return { ...plain, finish: 'eos', endTokenSampled: ids.at(-1) === matched };
  return { ...plain, finish: 'stop', stopString: typeof matched === 'string' ? matched : null };
}

/** Null unless the spans cover the tokens from first to last: half a label is none. */
function readSpans(value: unknown, tokens: number): WeightSpan[] | null {
  if (!Array.isArray(value) || value.length === 0) return null;
  const spans: WeightSpan[] = [];
  let at = 0;
  for (const span of value) {
    if (!isObject(span) || typeof span.version !== 'string' || span.start !== at) return null;
    const end = countOrNull(span.end);
    if (end === null || end < at || end > tokens) return null;
    spans.push({ version: span.version, start: at, end });
    at = end;
  }
  return at === tokens ? spans : null;
}

const labelOf = (value: unknown): string | null => (typeof value === 'string' ? value : null);
