/**
 * Generation on vLLM. `/inference/v1/generate` (with --enable-scale-out) is preferred: it also says which tokens came from
 * which weights. Without it `/v1/completions` gives the same ids and numbers. Every sampling field is always sent: what is
 * left out is taken from the model's own defaults.
 */
import { Invalid } from '../../core/errors';
import type { WeightSpan } from '../../core/tokens/chunk';
import type { JsonObject } from '../../core/vocabulary';
import type { Constraint, SamplingOptions } from '../backend';
import type { HttpClient } from './http-client';
import { isObject } from './json-body';
import type { GenerateCall, RawGeneration } from './protocol';
import { where } from './server-name';
import { broken, numberOrNaN, readIds } from './server-probe';
import { quoted } from './server-words';
import { adapterVersion, type VllmFacts } from './vllm-facts';

const GENERATE = '/inference/v1/generate';
const COMPLETIONS = '/v1/completions';

export async function generateOnVllm(http: HttpClient, facts: VllmFacts, call: GenerateCall): Promise<RawGeneration> {
  checkTemperature(http, call.options);
  const spans = facts.routes.has('tokens-in-tokens-out');
  // The name is read once: an update in the meantime changes what later requests ask for.
  const model = facts.servedModel;
  const sampling = samplingFields(call.options);
  const request_id = call.requestId;
  const { body } = spans
    ? await http.postJson(
        GENERATE,
        {
          request_id,
          model,
          token_ids: call.promptIds,
          sampling_params: sampling,
          stream: false,
          output_mode: 'tokens',
        },
        { signal: call.signal, timeoutMs: null },
      )
    : await http.postJson(
        COMPLETIONS,
        { request_id, model, prompt: call.promptIds, ...sampling, stream: false, return_token_ids: true },
        { signal: call.signal, timeoutMs: null },
      );
  const asked = spans ? GENERATE : COMPLETIONS;
  const reply = spans ? readGenerate(http, body) : readCompletion(http, body);
  return {
    ...reply.tokens,
    ...endOf(http, asked, reply.choice, reply.tokens.ids),
    logprobKind: call.options.constraint ? 'constrained' : facts.logprobs,
    promptTokens: promptTokens(body),
    // An adapter's weights never change under its name, so the name is the version of every token.
    weightVersions: adapterVersion(model) ?? readSpans(reply.choice, reply.tokens.ids.length),
    tokenBytes: null,
  };
}

/** vLLM raises such a temperature to 0.01 without a word; data that says otherwise would be wrong. */
function checkTemperature(http: HttpClient, { temperature }: SamplingOptions): void {
  if (temperature > 0 && temperature < 0.01)
    throw new Invalid(
      `${where(http)} is a vLLM, which samples at temperature 0.01 when it is asked for ${temperature}; choose 0 (greedy) or at least 0.01.`,
    );
}

function samplingFields(options: SamplingOptions): JsonObject {
  return {
    n: 1,
    max_tokens: options.maxTokens,
    temperature: options.temperature,
    top_p: options.topP,
    top_k: options.topK,
    min_p: options.minP,
    seed: options.seed,
    stop: options.stop,
    presence_penalty: 0,
    frequency_penalty: 0,
    repetition_penalty: 1,
    min_tokens: 0,
    ignore_eos: false,
    logprobs: 0,
    // Stop strings are looked for in the text, and may hold control tokens.
    skip_special_tokens: false,
    spaces_between_special_tokens: false,
    ...(options.constraint && { structured_outputs: constraintField(options.constraint) }),
  };
}

function constraintField(constraint: Constraint): JsonObject {
  switch (constraint.kind) {
    case 'json_schema':
      return { json: constraint.schema };
    case 'regex':
      return { regex: constraint.pattern };
    case 'grammar':
      return { grammar: constraint.grammar };
    case 'choice':
      return { choice: constraint.choices };
  }
}

interface Reply {
  choice: Record<string, unknown>;
  tokens: { ids: Int32Array; logprobs: Float32Array };
}

export function readGenerate(http: HttpClient, body: unknown): Reply {
  const choice = onlyChoice(http, GENERATE, body);
  const ids = idsOf(http, GENERATE, choice);
  const content: unknown[] =
    isObject(choice.logprobs) && Array.isArray(choice.logprobs.content) ? choice.logprobs.content : [];
  checkCount(http, GENERATE, ids.length, content.length);
  const logprobs = Float32Array.from(content, (entry, k) => {
    // An older server sends the shape of the chat route, with the id inside a string.
    if (!isObject(entry) || entry.token_id !== ids[k])
      throw broken(http, GENERATE, `the log-probability at token ${k} is of another token than the id`);
    return numberOrNaN(entry.logprob);
  });
  return { choice, tokens: { ids, logprobs } };
}

export function readCompletion(http: HttpClient, body: unknown): Reply {
  const choice = onlyChoice(http, COMPLETIONS, body);
  const ids = idsOf(http, COMPLETIONS, choice);
  const numbers: unknown[] =
    isObject(choice.logprobs) && Array.isArray(choice.logprobs.token_logprobs) ? choice.logprobs.token_logprobs : [];
  checkCount(http, COMPLETIONS, ids.length, numbers.length);
  return { choice, tokens: { ids, logprobs: Float32Array.from(numbers, numberOrNaN) } };
}

function onlyChoice(http: HttpClient, asked: string, body: unknown): Record<string, unknown> {
  const choices: unknown[] = isObject(body) && Array.isArray(body.choices) ? body.choices : [];
  if (choices.length !== 1 || !isObject(choices[0]))
    throw broken(http, asked, `it has ${choices.length} completions where one was asked for`);
  return choices[0];
}

/** No ids is an error, not an empty completion: ids are never made from text. */
function idsOf(http: HttpClient, asked: string, { token_ids }: Record<string, unknown>): Int32Array {
  const ids = readIds(token_ids);
  if (ids) return ids;
  throw broken(http, asked, 'it has no token ids (token_ids); a newer vLLM gives them');
}

function checkCount(http: HttpClient, asked: string, ids: number, logprobs: number): void {
  if (ids !== logprobs) throw broken(http, asked, `it has ${ids} token ids but ${logprobs} log-probabilities`);
}

function endOf(
  http: HttpClient,
  asked: string,
  { finish_reason, stop_reason }: Record<string, unknown>,
  ids: Int32Array,
): Pick<RawGeneration, 'finish' | 'stopString' | 'endTokenSampled'> {
  const plain = { stopString: null, endTokenSampled: false };
  if (finish_reason === 'length') return { ...plain, finish: 'length' };
  if (finish_reason === 'abort') return { ...plain, finish: 'aborted' };
  if (finish_reason !== 'stop')
    throw broken(http, asked, `it ended for a reason that is not known here (${quoted(String(finish_reason))})`);
  if (typeof stop_reason === 'string') return { ...plain, finish: 'stop', stopString: stop_reason };
  // Null after the model's own end token, its id after another one from the generation settings: either way the last id.
  return { ...plain, finish: 'eos', endTokenSampled: ids.length > 0 };
}

function promptTokens(body: unknown): number | null {
  const usage = isObject(body) ? body.usage : null;
  return isObject(usage) && typeof usage.prompt_tokens === 'number' ? usage.prompt_tokens : null;
}

/** Null unless the spans cover the tokens from first to last: half a label is none. */
export function readSpans({ weight_versions }: Record<string, unknown>, tokens: number): WeightSpan[] | null {
  if (!Array.isArray(weight_versions) || weight_versions.length === 0) return null;
  const spans: WeightSpan[] = [];
  let at = 0;
  for (const span of weight_versions) {
    if (!isObject(span) || typeof span.version !== 'string' || span.start !== at || !Number.isInteger(span.end))
      return null;
    const end = span.end as number;
    if (end < at || end > tokens) return null;
    spans.push({ version: span.version, start: at, end });
    at = end;
  }
  return at === tokens ? spans : null;
}
