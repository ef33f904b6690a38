/** Generation on trtllm-serve's `/v1/completions`. A field that the server does not know is refused, so only known ones are sent. */
import type { JsonObject, LogprobKind } from '../../core/vocabulary';
import type { Constraint, SamplingOptions } from '../backend';
import { constraintGrammar } from '../constraint-grammar';
import { hasControlShape } from './control-strings';
import type { HttpClient } from './http-client';
import { isObject } from './json-body';
import type { GenerateCall, RawGeneration } from './protocol';
import { broken, countOrNull, numberOrNaN, readIds } from './server-probe';
import { quoted } from './server-words';
import type { TensorrtFacts } from './tensorrt-llm-facts';

const COMPLETIONS = '/v1/completions';
/** The server's random numbers take no more. */
const SEEDS = 2 ** 31;

export async function generateOnTensorrt(
  http: HttpClient,
  facts: TensorrtFacts,
  call: GenerateCall,
): Promise<RawGeneration> {
  const { options, signal } = call;
  const request = { model: facts.modelName, prompt: call.promptIds, ...samplingFields(options) };
  const { body } = await http.postJson(COMPLETIONS, request, { signal, timeoutMs: null });
  facts.lastPrompt = call.promptIds;
  const choices: unknown[] = isObject(body) && Array.isArray(body.choices) ? body.choices : [];
  const [choice] = choices;
  if (choices.length !== 1 || !isObject(choice))
    throw broken(http, COMPLETIONS, `it has ${choices.length} completions where one was asked for`);
  const ids = readIds(choice.token_ids);
  if (!ids) throw broken(http, COMPLETIONS, 'it has no token ids (token_ids), though no text was asked for');
  const numbers = isObject(choice.logprobs) ? choice.logprobs : {};
  return {
    ids,
    logprobs: readNumbers(http, numbers.token_logprobs, ids.length),
    logprobKind: kindOf(facts, options),
    ...endOf(http, choice, numbers.tokens, ids.length),
    promptTokens: promptTokens(body),
    weightVersions: null,
    tokenBytes: null,
  };
}

function samplingFields(options: SamplingOptions): JsonObject {
  return {
    n: 1,
    max_tokens: options.maxTokens,
    temperature: options.temperature,
    top_p: options.topP,
    top_k: options.topK,
    min_p: options.minP,
    repetition_penalty: 1,
    seed: Math.abs(options.seed) % SEEDS,
    stop: options.stop,
    // Else the ids lose the tokens of the stop string and the numbers do not, which the server then refuses itself.
    include_stop_str_in_output: true,
    skip_special_tokens: false,
    // Ids come only instead of text.
    detokenize: false,
    // 0 means none here.
    logprobs: 1,
    stream: false,
    ...(options.constraint && { response_format: formatOf(options.constraint) }),
  };
}

function formatOf(constraint: Constraint): JsonObject {
  switch (constraint.kind) {
    case 'json_schema':
      return { type: 'json', schema: constraint.schema };
    case 'regex':
      return { type: 'regex', regex: constraint.pattern };
    case 'grammar':
      return { type: 'ebnf', ebnf: constraint.grammar };
    case 'choice':
      return { type: 'ebnf', ebnf: constraintGrammar(constraint) };
  }
}

function kindOf({ tempered }: TensorrtFacts, { constraint, temperature }: SamplingOptions): LogprobKind {
  if (constraint) return 'constrained';
  return tempered && temperature !== 1 ? 'sampled' : 'raw';
}

function readNumbers(http: HttpClient, value: unknown, ids: number): Float32Array {
  if (!Array.isArray(value) || value.length !== ids)
    throw broken(
      http,
      COMPLETIONS,
      `it has ${ids} token ids but ${Array.isArray(value) ? value.length : 'no'} log-probabilities`,
    );
  return Float32Array.from(value, numberOrNaN);
}

function endOf(
  http: HttpClient,
  { finish_reason, stop_reason }: Record<string, unknown>,
  texts: unknown,
  ids: number,
): Pick<RawGeneration, 'finish' | 'stopString' | 'endTokenSampled'> {
  const plain = { stopString: null, endTokenSampled: false };
  if (finish_reason === 'length') return { ...plain, finish: 'length' };
  if (finish_reason === 'cancelled' || finish_reason === 'abort') return { ...plain, finish: 'aborted' };
  if (finish_reason !== 'stop')
    throw broken(http, COMPLETIONS, `it ended for a reason that is not known here (${quoted(String(finish_reason))})`);
  if (typeof stop_reason === 'string') return { ...plain, finish: 'stop', stopString: stop_reason };
  // The model's own end token, which not every engine of this server puts among the ids: its text tells it.
  const last: unknown = Array.isArray(texts) && ids > 0 ? texts[ids - 1] : null;
  const sampled = typeof last === 'string' && (last === '' || hasControlShape(last));
  return { ...plain, finish: 'eos', endTokenSampled: sampled };
}

function promptTokens(body: unknown): number | null {
  const usage = isObject(body) ? body.usage : null;
  return isObject(usage) ? countOrNull(usage.prompt_tokens) : null;
}
