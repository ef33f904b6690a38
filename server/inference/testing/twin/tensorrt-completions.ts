/** trtllm-serve's `POST /v1/completions`: ids in, and ids out when the text is not wanted. */
import type { Constraint } from '../../backend';
import { type EngineGeneration, type EngineRequest, type EngineToken, type TwinEngine, TwinError } from './engine';
import type { TwinFaults } from './faults';
import { type Fields, fieldsOf, flagOf, idsOf, isIds, numberOf, textOf, textsOf } from './read-body';
import type { TwinReply, TwinRequest } from './twin-server';

/** Any other field is refused. */
const FIELDS = [
  ...['model', 'prompt', 'best_of', 'echo', 'frequency_penalty', 'logit_bias', 'logprobs', 'max_tokens', 'n', 'seed'],
  ...['presence_penalty', 'stop', 'stream', 'stream_options', 'suffix', 'temperature', 'top_p', 'user', 'lora_request'],
  ...['use_beam_search', 'top_k', 'top_p_min', 'min_p', 'repetition_penalty', 'length_penalty', 'early_stopping'],
  ...['stop_token_ids', 'include_stop_str_in_output', 'ignore_eos', 'min_tokens', 'skip_special_tokens', 'priority'],
  ...['spaces_between_special_tokens', 'truncate_prompt_tokens', 'return_context_logits', 'detokenize'],
  ...['add_special_tokens', 'response_format', 'disaggregated_params', 'conversation_params', 'cache_salt'],
];
const MOST_LOGPROBS = 20;
/** Minus infinity on the wire. */
const NO_PROBABILITY = -9999;

export interface CompletionsOptions {
  engine: TwinEngine;
  run: (request: EngineRequest) => Promise<EngineGeneration>;
  faults: TwinFaults;
  /** `guided_decoding_backend`; without it every constraint is refused. */
  guided: boolean;
  /** The TensorRT engine divides the numbers by the temperature, the PyTorch one does not. */
  tempered: boolean;
  model: string;
}

interface Asked {
  request: Omit<EngineRequest, 'signal'>;
  /** False: ids instead of text. */
  detokenize: boolean;
  logprobs: boolean;
  skipSpecial: boolean;
  keepStop: boolean;
}

let completions = 0;

export async function complete(options: CompletionsOptions, { body, signal }: TwinRequest): Promise<TwinReply> {
  const fields = fieldsOf(body);
  for (const key of Object.keys(fields))
    if (!FIELDS.includes(key))
      throw invalid(
        `[{'type': 'extra_forbidden', 'loc': ('body', '${key}'), 'msg': 'Extra inputs are not permitted'}]`,
      );
  if (fields.suffix != null) throw invalid('suffix is not supported');
  const id = `cmpl-${++completions}`;
  const asked = promptsOf(options.engine, fields).flatMap((promptIds, k) => {
    const one = ask(options, fields, promptIds, `${id}-${k}`);
    return Array.from({ length: numberOf(fields, 'n', 1) }, () => one);
  });
  const head = { id, object: 'text_completion', created: 1, model: options.model };
  if (flagOf(fields, 'stream', false)) return stream(options, asked, head, signal);
  const generations = await Promise.all(asked.map((one) => options.run({ ...one.request, signal })));
  const sum = (count: (generation: EngineGeneration) => number) =>
    generations.reduce((all, one) => all + count(one), 0);
  const [promptTokens, completionTokens] = [sum((one) => one.promptTokens), sum((one) => one.tokens.length)];
  const choices = generations.map((generation, index) =>
    choiceOf(options, asked[index] as Asked, generation, index, 0),
  );
  const usage = {
    prompt_tokens: promptTokens,
    completion_tokens: completionTokens,
    total_tokens: promptTokens + completionTokens,
    prompt_tokens_details: { cached_tokens: sum((one) => one.cachedTokens) },
  };
  return { json: { ...head, choices, usage, prompt_token_ids: null } };
}

/** Deltas. An error in between just cuts the stream. */
function stream(options: CompletionsOptions, asked: Asked[], head: object, signal: AbortSignal): TwinReply {
  return {
    events: async (send) => {
      await Promise.all(
        asked.map(async (one, index) => {
          let sent = 0;
          const write = (so: EngineGeneration) => {
            send(JSON.stringify({ ...head, choices: [choiceOf(options, one, so, index, sent)] }));
            sent = so.tokens.length;
          };
          write(await options.run({ ...one.request, signal, onToken: write }));
        }),
      );
      send('[DONE]');
    },
  };
}

function promptsOf(engine: TwinEngine, fields: Fields): number[][] {
  const { prompt } = fields;
  if (isIds(prompt)) return [prompt];
  if (Array.isArray(prompt) && prompt.every(isIds)) return prompt;
  const texts = textsOf(fields, 'prompt');
  if (texts.length === 0) throw invalid("[{'type': 'missing', 'loc': ('body', 'prompt'), 'msg': 'Field required'}]");
  return texts.map((text) => engine.tokenize(text));
}

function ask({ engine, faults, guided }: CompletionsOptions, fields: Fields, ids: number[], id: string): Asked {
  const logprobs = numberOf(fields, 'logprobs', 0);
  if (logprobs < 0 || logprobs > MOST_LOGPROBS)
    throw invalid(`logprobs must be between 0 and ${MOST_LOGPROBS}, got ${logprobs}`);
  const topP = numberOf(fields, 'top_p', 1);
  if (topP <= 0 || topP > 1) throw invalid(`require 0 <= top_p <= 1, got top_p=${topP}`);
  const temperature = numberOf(fields, 'temperature', 1);
  if (temperature < 0) throw invalid(`require temperature >= 0, got temperature=${temperature}`);
  const promptIds = faults.addBos ? [engine.beginOfText, ...ids] : ids;
  const outside = promptIds.find((token) => token < 0 || token >= engine.vocabularySize);
  if (outside !== undefined) throw new TwinError(400, `Token ID ${outside} is out of range for the vocabulary.`);
  if (promptIds.length === 0) throw new TwinError(400, 'The prompt token ids must not be empty.');
  const room = engine.contextLength - promptIds.length;
  const maxTokens = numberOf(fields, 'max_tokens', room);
  if (room < 1 || maxTokens > room)
    throw new TwinError(
      400,
      `The sum of prompt length (${promptIds.length}) and query length (${maxTokens}) should not exceed max_num_tokens (${engine.contextLength})`,
    );
  if (maxTokens < 1) throw invalid(`max_tokens must be at least 1, got ${maxTokens}`);
  const constraint = constraintOf(fields);
  if (constraint && !guided)
    throw new TwinError(400, 'Guided decoding is not enabled: guided_decoding_backend is not set.');
  return {
    request: {
      id,
      promptIds,
      maxTokens,
      temperature,
      topP,
      topK: numberOf(fields, 'top_k', 0),
      minP: numberOf(fields, 'min_p', 0),
      seed: fields.seed == null ? null : numberOf(fields, 'seed', 0),
      stop: textsOf(fields, 'stop'),
      stopTokenIds: idsOf(fields, 'stop_token_ids'),
      ignoreEos: flagOf(fields, 'ignore_eos', false),
      constraint: faults.ignoreConstraints ? null : constraint,
      alternatives: logprobs,
      scoreFrom: null,
    },
    detokenize: flagOf(fields, 'detokenize', true),
    // 0 means none here.
    logprobs: logprobs > 0,
    skipSpecial: flagOf(fields, 'skip_special_tokens', true),
    keepStop: flagOf(fields, 'include_stop_str_in_output', false),
  };
}

function constraintOf(fields: Fields): Constraint | null {
  if (fields.response_format == null) return null;
  const format = fieldsOf(fields.response_format);
  const type = textOf(format, 'type');
  const need = (value: unknown, name: string) => {
    if (value == null) throw invalid(`response_format of type ${type} needs ${name}`);
    return value;
  };
  const schemaOf = (value: unknown, name: string) =>
    ({ kind: 'json_schema', schema: fieldsOf(need(value, name)) }) as Constraint;
  switch (type) {
    case 'text':
      return null;
    case 'json':
      return schemaOf(format.schema, 'schema');
    case 'json_schema':
      return schemaOf(fieldsOf(need(format.json_schema, 'json_schema')).schema, 'json_schema.schema');
    case 'json_object':
      return { kind: 'json_schema', schema: { type: 'object', additionalProperties: true } };
    case 'regex':
      return { kind: 'regex', pattern: String(need(format.regex, 'regex')) };
    case 'ebnf':
      return { kind: 'grammar', grammar: String(need(format.ebnf, 'ebnf')) };
    default:
      throw invalid(
        `[{'type': 'literal_error', 'loc': ('body', 'response_format', 'type'), 'msg': 'Input should be text, json, json_schema, json_object, regex, ebnf or structural_tag'}]`,
      );
  }
}

/**
 * The tokens of a stop string are cut off the ids but not off the numbers; the server then fails over its own answer
 * (TensorRT-LLM #18190).
 */
function checkTrimmed(asked: Asked, { finish }: EngineGeneration): void {
  if (asked.keepStop || !asked.logprobs || finish?.kind !== 'stop' || typeof finish.matched !== 'string') return;
  throw new TwinError(400, 'AssertionError: len(logprobs) == len(token_ids)');
}

/** From token `from` on. */
function choiceOf(
  options: CompletionsOptions,
  asked: Asked,
  generation: EngineGeneration,
  index: number,
  from: number,
) {
  const { engine, faults } = options;
  const { finish } = generation;
  checkTrimmed(asked, generation);
  const tokens = generation.tokens.slice(from);
  const ids = tokens.map(({ id }) => id);
  const ended = finish?.kind === 'stop' ? finish.matched : null;
  return {
    index,
    text: asked.detokenize ? completionText(engine, asked, ids, finish) : '',
    token_ids: asked.detokenize || faults.missingIds ? null : ids,
    logprobs: asked.logprobs ? logprobsOf(options, asked, tokens, from) : null,
    context_logits: null,
    finish_reason: finish === null ? null : finish.kind === 'abort' ? 'cancelled' : finish.kind,
    // Null for the model's own end token.
    stop_reason: ended === engine.endOfText ? null : ended,
    disaggregated_params: null,
  };
}

function completionText(engine: TwinEngine, asked: Asked, ids: number[], finish: EngineGeneration['finish']): string {
  const text = engine.detokenize(ids, asked.skipSpecial);
  if (finish?.kind !== 'stop' || typeof finish.matched !== 'string' || asked.keepStop) return text;
  const at = text.lastIndexOf(finish.matched);
  return at < 0 ? text : text.slice(0, at);
}

function logprobsOf(
  { engine, faults, tempered }: CompletionsOptions,
  asked: Asked,
  tokens: EngineToken[],
  from: number,
) {
  const text = (id: number) => engine.detokenize([id], false);
  const clamped = (value: number) => Math.max(NO_PROBABILITY, value);
  const offsets: number[] = [];
  let offset = 0;
  for (const { id } of tokens) {
    offsets.push(offset);
    offset += text(id).length;
  }
  const own = (token: EngineToken) => clamped(tempered ? token.sampled : token.raw);
  const top = (token: EngineToken) => {
    const alternatives = tempered ? token.sampledAlternatives : token.rawAlternatives;
    const entries = alternatives.map(([value, id]): [string, number] => [text(id), clamped(value)]);
    return Object.fromEntries([...entries, [text(token.id), own(token)]]);
  };
  return {
    tokens: tokens.map(({ id }) => text(id)),
    token_logprobs: tokens.map((token, k) =>
      from + k === 1 && faults.logprob !== undefined ? faults.logprob : own(token),
    ),
    text_offset: offsets,
    top_logprobs: asked.request.alternatives > 0 ? tokens.map(top) : null,
  };
}

/** Refusals of the schema have no more than a string. */
function invalid(message: string): TwinError {
  return new TwinError(400, message, 'validation');
}
