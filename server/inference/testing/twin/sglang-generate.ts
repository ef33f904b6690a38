/** SGLang's `POST /generate`: ids in, ids out. */
import type { Constraint } from '../../backend';
import { type Alternatives, type EngineGeneration, type EngineRequest, type TwinEngine, TwinError } from './engine';
import type { TwinFaults } from './faults';
import { type Fields, fieldsOf, flagOf, idsOf, isIds, numberOf, textOf, textsOf } from './read-body';
import type { TwinReply, TwinRequest } from './twin-server';

const SAMPLING_FIELDS = [
  ...['max_new_tokens', 'min_new_tokens', 'temperature', 'top_p', 'top_k', 'min_p', 'n', 'sampling_seed'],
  ...['stop', 'stop_token_ids', 'stop_regex', 'ignore_eos', 'skip_special_tokens', 'no_stop_trim'],
  ...['spaces_between_special_tokens', 'frequency_penalty', 'presence_penalty', 'repetition_penalty', 'logit_bias'],
  ...['json_schema', 'regex', 'ebnf', 'structural_tag', 'custom_params', 'stream_interval'],
];
const DEFAULT_NEW_TOKENS = 128;
/** Below this SGLang is greedy, and its numbers are those of temperature 1. */
const LEAST_TEMPERATURE = 1e-6;

export interface SglangGenerateOptions {
  engine: TwinEngine;
  run: (request: EngineRequest) => Promise<EngineGeneration>;
  faults: TwinFaults;
  /** `--allow-auto-truncate`. */
  autoTruncate: boolean;
  /** `--enable-deterministic-inference`: only then is the seed honoured. */
  deterministic: boolean;
  /** Newer trees report `weight_versions`. */
  versionSpans: boolean;
  /** Of requests that came without one. */
  newId: () => string;
}

interface Asked {
  request: Omit<EngineRequest, 'signal'>;
  returnLogprob: boolean;
  textInLogprobs: boolean;
  skipSpecial: boolean;
  stopTrim: boolean;
}

export async function generate(options: SglangGenerateOptions, { body, signal }: TwinRequest): Promise<TwinReply> {
  const fields = fieldsOf(body);
  const batch = promptsOf(options.engine, fields);
  const asked = batch.prompts.flatMap((promptIds, k) => {
    const sampling = fieldsOf(
      Array.isArray(fields.sampling_params) ? fields.sampling_params[k] : (fields.sampling_params ?? {}),
    );
    const rid = Array.isArray(fields.rid) ? fields.rid[k] : fields.rid;
    const one = ask(options, fields, sampling, promptIds, typeof rid === 'string' ? rid : options.newId());
    const samples = numberOf(sampling, 'n', 1);
    return Array.from({ length: samples }, (_, j) =>
      samples === 1 ? one : { ...one, request: { ...one.request, id: `${one.request.id}-${j}` } },
    );
  });
  const many = batch.isBatch || asked.length > 1;
  if (flagOf(fields, 'stream', false)) return stream(options, asked, many, signal);
  const replies = await Promise.all(
    asked.map(async (one) => replyOf(options, one, await options.run({ ...one.request, signal }))),
  );
  return { json: many ? replies : replies[0] };
}

function stream(options: SglangGenerateOptions, asked: Asked[], many: boolean, signal: AbortSignal): TwinReply {
  return {
    events: async (send) => {
      await Promise.all(
        asked.map(async (one, index) => {
          // Cumulative: every chunk repeats what came before.
          const write = (so: EngineGeneration) =>
            send(JSON.stringify({ ...replyOf(options, one, so), ...(many ? { index } : {}) }));
          write(await options.run({ ...one.request, signal, onToken: write }));
        }),
      ).catch((error) => send(JSON.stringify({ error: { message: String((error as Error).message) } })));
      send('[DONE]');
    },
  };
}

function promptsOf(engine: TwinEngine, fields: Fields): { prompts: number[][]; isBatch: boolean } {
  const given = ['text', 'input_ids', 'input_embeds'].filter((name) => fields[name] != null);
  if (given.length !== 1) throw new TwinError(400, 'Either text, input_ids or input_embeds should be provided.');
  if (fields.input_embeds != null) throw new TwinError(400, 'input_embeds needs --disable-radix-cache.');
  if (fields.input_ids != null) {
    const ids = fields.input_ids;
    if (isIds(ids)) return { prompts: [ids], isBatch: false };
    if (Array.isArray(ids) && ids.every(isIds)) return { prompts: ids, isBatch: true };
    throw new TwinError(400, 'input_ids: Input should be a valid list of integers');
  }
  const texts = textsOf(fields, 'text');
  return { prompts: texts.map((text) => engine.tokenize(text)), isBatch: Array.isArray(fields.text) };
}

function ask(options: SglangGenerateOptions, fields: Fields, sampling: Fields, ids: number[], id: string): Asked {
  const { engine, faults } = options;
  for (const key of Object.keys(sampling))
    if (!SAMPLING_FIELDS.includes(key))
      throw new TwinError(400, `SamplingParams.__init__() got an unexpected keyword argument '${key}'`);
  const temperature = numberOf(sampling, 'temperature', 1);
  const topP = numberOf(sampling, 'top_p', 1);
  const topK = numberOf(sampling, 'top_k', -1);
  const minP = numberOf(sampling, 'min_p', 0);
  const maxTokens = numberOf(sampling, 'max_new_tokens', DEFAULT_NEW_TOKENS);
  if (temperature < 0) throw new TwinError(400, `temperature must be non-negative, got ${temperature}.`);
  if (topP <= 0 || topP > 1) throw new TwinError(400, `top_p must be in (0, 1], got ${topP}.`);
  if (minP < 0 || minP > 1) throw new TwinError(400, `min_p must be in [0, 1], got ${minP}.`);
  if (topK !== -1 && topK < 1) throw new TwinError(400, `top_k must be -1 (disable) or at least 1, got ${topK}.`);
  if (maxTokens < 0) throw new TwinError(400, `max_new_tokens must be at least 0, got ${maxTokens}.`);
  const room = fitted(options, faults.addBos ? [engine.beginOfText, ...ids] : ids, maxTokens);
  const returnLogprob = flagOf(fields, 'return_logprob', false);
  const start = numberOf(fields, 'logprob_start_len', -1);
  const constraint = constraintOf(sampling);
  return {
    request: {
      id,
      ...room,
      temperature: temperature < LEAST_TEMPERATURE ? 0 : temperature,
      topP,
      topK: topK === -1 ? 0 : topK,
      minP,
      seed: options.deterministic && sampling.sampling_seed != null ? numberOf(sampling, 'sampling_seed', 0) : null,
      stop: textsOf(sampling, 'stop'),
      stopTokenIds: idsOf(sampling, 'stop_token_ids'),
      ignoreEos: flagOf(sampling, 'ignore_eos', false),
      constraint: faults.ignoreConstraints ? null : constraint,
      alternatives: returnLogprob ? numberOf(fields, 'top_logprobs_num', 0) : 0,
      reported: returnLogprob ? idsOf(fields, 'token_ids_logprob') : [],
      scoreFrom: returnLogprob && start >= 0 ? start : null,
    },
    returnLogprob,
    textInLogprobs: flagOf(fields, 'return_text_in_logprobs', false),
    skipSpecial: flagOf(sampling, 'skip_special_tokens', true),
    stopTrim: !flagOf(sampling, 'no_stop_trim', false),
  };
}

function fitted(
  { engine, autoTruncate }: SglangGenerateOptions,
  promptIds: number[],
  maxTokens: number,
): { promptIds: number[]; maxTokens: number } {
  const { contextLength, vocabularySize } = engine;
  if (promptIds.length === 0) throw new TwinError(400, 'input_ids should not be empty.');
  const outside = promptIds.find((id) => id < 0 || id >= vocabularySize);
  if (outside !== undefined)
    throw new TwinError(
      400,
      `The input_ids contain values out of the vocabulary range: ${outside} (vocab size ${vocabularySize}).`,
    );
  if (autoTruncate) {
    const kept = promptIds.slice(0, contextLength - 1);
    return { promptIds: kept, maxTokens: Math.min(maxTokens, contextLength - kept.length) };
  }
  if (promptIds.length >= contextLength)
    throw new TwinError(
      400,
      `The input (${promptIds.length} tokens) is longer than the model's context length (${contextLength} tokens).`,
    );
  if (promptIds.length + maxTokens > contextLength)
    throw new TwinError(
      400,
      `Requested token count exceeds the model's maximum context length of ${contextLength} tokens. You requested a total of ${promptIds.length + maxTokens} tokens: ${promptIds.length} tokens from the input messages and ${maxTokens} tokens for the completion. Please reduce the number of tokens in the input messages or the completion to fit within the limit.`,
    );
  return { promptIds, maxTokens };
}

function constraintOf(sampling: Fields): Constraint | null {
  const schema = textOf(sampling, 'json_schema');
  const pattern = textOf(sampling, 'regex');
  const grammar = textOf(sampling, 'ebnf');
  if ([schema, pattern, grammar].filter((one) => one !== null).length > 1)
    throw new TwinError(400, 'Only one of json_schema, regex, or ebnf can be set.');
  if (sampling.structural_tag != null)
    throw new TwinError(400, 'structural_tag is not supported by this grammar backend.');
  if (pattern !== null) return { kind: 'regex', pattern };
  if (grammar !== null) return { kind: 'grammar', grammar };
  if (schema === null) return null;
  try {
    return { kind: 'json_schema', schema: JSON.parse(schema) };
  } catch {
    throw new TwinError(400, 'Failed to create grammar: json_schema is not valid JSON.');
  }
}

function replyOf(options: SglangGenerateOptions, asked: Asked, generation: EngineGeneration): Record<string, unknown> {
  const { engine, faults, versionSpans } = options;
  const { tokens, finish } = generation;
  const ids = tokens.map((token) => token.id);
  const text = (id: number) => (asked.textInLogprobs ? engine.detokenize([id], false) : null);
  const triple = ([logprob, id]: Alternatives[number]) => [logprob, id, text(id)];
  const triples = (list: Alternatives | null) => (list === null ? null : list.map(triple));
  const withAlternatives = asked.request.alternatives > 0;
  const output = tokens.map(({ sampled, id }, k) => {
    const number = k === 1 && faults.logprob !== undefined ? faults.logprob : sampled;
    return [number, id, text(id)];
  });
  const { promptLogprobs } = generation;
  const meta: Record<string, unknown> = {
    id: asked.request.id,
    finish_reason: finishOf(finish, tokens.length),
    prompt_tokens: generation.promptTokens,
    completion_tokens: tokens.length,
    cached_tokens: generation.cachedTokens,
    weight_version: engine.weightVersion,
    e2e_latency: 0.01,
  };
  if (versionSpans) meta.weight_versions = spansOf(tokens.map((token) => token.weightVersion));
  if (asked.returnLogprob) {
    // The first of the window has no number: the position before it was not asked for.
    meta.input_token_logprobs = promptLogprobs.map(({ logprob, id }, k) => [k === 0 ? null : logprob, id, text(id)]);
    meta.output_token_logprobs = output;
    if (asked.request.reported?.length)
      meta.output_token_ids_logprobs = tokens.map(({ reported = [] }) => reported.map(triple));
    if (withAlternatives) {
      meta.input_top_logprobs = promptLogprobs.map(({ alternatives }, k) => (k === 0 ? null : triples(alternatives)));
      meta.output_top_logprobs = tokens.map((token) => triples(token.sampledAlternatives));
    }
  }
  return {
    text: replyText(options, asked, generation, ids),
    ...(faults.missingIds ? {} : { output_ids: ids }),
    meta_info: meta,
  };
}

function finishOf(finish: EngineGeneration['finish'], length: number): unknown {
  if (finish === null) return null;
  if (finish.kind === 'stop') return { type: 'stop', matched: finish.matched };
  if (finish.kind === 'length') return { type: 'length', length };
  return { type: 'abort', message: finish.message };
}

/** Without the stop string, which the ids keep. */
function replyText(
  { engine }: SglangGenerateOptions,
  asked: Asked,
  { finish }: EngineGeneration,
  ids: number[],
): string {
  const text = engine.detokenize(ids, asked.skipSpecial);
  if (!asked.stopTrim || finish?.kind !== 'stop') return text;
  if (typeof finish.matched === 'number')
    return ids.at(-1) === finish.matched ? engine.detokenize(ids.slice(0, -1), asked.skipSpecial) : text;
  const at = text.lastIndexOf(finish.matched);
  return at < 0 ? text : text.slice(0, at);
}

function spansOf(versions: readonly string[]): { version: string; start: number; end: number }[] {
  const spans: { version: string; start: number; end: number }[] = [];
  for (const [k, version] of versions.entries()) {
    const last = spans.at(-1);
    if (last?.version === version) last.end = k + 1;
    else spans.push({ version, start: k, end: k + 1 });
  }
  return spans;
}
