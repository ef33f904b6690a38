/** A server that speaks SGLang's protocol (about version 0.5.2x) on a small model. */
import { basename } from 'node:path';
import { type TwinEngine, TwinError } from './engine';
import type { TwinFaults } from './faults';
import type { CountedEngine, TwinCounters } from './open-engine';
import { fieldsOf, flagOf, isIds, textsOf } from './read-body';
import { controlRoutes } from './sglang-control';
import { generate } from './sglang-generate';
import { type ServerStart, startTwin, type Twin, type TwinOptions } from './twin';
import type { TwinRoute } from './twin-server';

export interface SglangTwinOptions extends TwinOptions {
  /** `--allow-auto-truncate`. */
  autoTruncate?: boolean;
  /** `--enable-deterministic-inference`; default true. */
  deterministic?: boolean;
  /** Newer trees report `weight_versions`. */
  versionSpans?: boolean;
  /** `--enable-metrics`; default true. */
  metrics?: boolean;
}

export function startSglangTwin(options: SglangTwinOptions): Promise<Twin> {
  return startTwin(options, { routes: (...parts) => routesOf(options, ...parts), errorBody });
}

function routesOf(
  options: SglangTwinOptions,
  counted: CountedEngine,
  faults: TwinFaults,
  start: ServerStart,
): Record<string, TwinRoute> {
  const { engine } = counted;
  let ids = 0;
  const generateOptions = {
    engine,
    run: counted.generate,
    faults,
    autoTruncate: options.autoTruncate ?? false,
    deterministic: options.deterministic ?? true,
    versionSpans: options.versionSpans ?? false,
    newId: () => `twin-${++ids}`,
  };
  const contextLength = engine.contextLength;
  const tokenizerPath = engine.modelPath;
  const modelName = () => basename(engine.modelPath);
  const modelInfo = () => ({
    model_path: engine.modelPath,
    tokenizer_path: tokenizerPath,
    is_generation: true,
    weight_version: engine.weightVersion,
    preferred_sampling_params: null,
  });
  const tokenize: TwinRoute = ({ body }) => ({ json: tokensOf(engine, fieldsOf(body)) });
  const detokenize: TwinRoute = ({ body }) => ({ json: textOf(engine, fieldsOf(body)) });
  const routes: Record<string, TwinRoute> = {
    'POST /generate': (request) => generate(generateOptions, request),
    'POST /tokenize': tokenize,
    'POST /v1/tokenize': tokenize,
    'POST /detokenize': detokenize,
    'POST /v1/detokenize': detokenize,
    'GET /v1/models': () => ({
      json: {
        object: 'list',
        data: [
          {
            id: modelName(),
            object: 'model',
            created: 1,
            owned_by: 'sglang',
            root: modelName(),
            parent: null,
            max_model_len: contextLength,
          },
        ],
      },
    }),
    'GET /model_info': () => ({ json: modelInfo() }),
    'GET /get_model_info': () => ({ json: modelInfo() }),
    'GET /server_info': () => ({
      json: {
        model_path: engine.modelPath,
        context_length: contextLength,
        // Drawn at every start.
        random_seed: start.number,
        max_running_requests: engine.scheduler.slots,
        enable_deterministic_inference: generateOptions.deterministic,
        allow_auto_truncate: generateOptions.autoTruncate,
        enable_lora: false,
        enable_metrics: options.metrics ?? true,
        version: '0.5.20',
        internal_states: [{}],
      },
    }),
    'GET /health': () => ({ text: '' }),
    'GET /health_generate': () => ({ text: '' }),
    ...controlRoutes(engine, faults),
  };
  if (options.metrics ?? true) routes['GET /metrics'] = () => ({ text: metricsText(counted.counters()) });
  return routes;
}

/** Flat on the OpenAI routes, nested on its own. */
function errorBody(path: string, { message, type, status }: TwinError): unknown {
  if (path.startsWith('/v1/') || path === '/tokenize' || path === '/detokenize')
    return { object: 'error', message, type, param: null, code: status };
  return { error: { message } };
}

function tokensOf(engine: TwinEngine, fields: Record<string, unknown>): unknown {
  if ((fields.prompt == null) === (fields.messages == null))
    throw new TwinError(400, "Exactly one of 'prompt' or 'messages' must be provided.");
  const counted = (tokens: number[] | number[][], count: number | number[]) => ({
    tokens,
    count,
    max_model_len: engine.contextLength,
  });
  if (fields.messages != null) {
    const text = engine.render(fields.messages, { addGenerationPrompt: true, tools: fields.tools ?? null });
    const tokens = engine.tokenize(text);
    return counted(tokens, tokens.length);
  }
  const lists = textsOf(fields, 'prompt').map((text) => engine.tokenize(text));
  if (!Array.isArray(fields.prompt)) return counted(lists[0] ?? [], lists[0]?.length ?? 0);
  return counted(
    lists,
    lists.map((list) => list.length),
  );
}

function textOf(engine: TwinEngine, fields: Record<string, unknown>): unknown {
  const { tokens } = fields;
  const skip = flagOf(fields, 'skip_special_tokens', true);
  const decode = (ids: number[]) => {
    if (ids.some((id) => id < 0 || id >= engine.vocabularySize))
      throw new TwinError(
        400,
        'Error decoding tokens: id out of range. Input tokens might be invalid for the model.',
        'DecodeError',
      );
    return engine.detokenize(ids, skip);
  };
  if (isIds(tokens)) return { text: decode(tokens) };
  if (Array.isArray(tokens) && tokens.every(isIds)) return { text: tokens.map(decode) };
  throw new TwinError(400, 'Invalid tokens type. Expected List[int] or List[List[int]].');
}

function metricsText(counters: TwinCounters): string {
  const labels = '{model_name="twin"}';
  const { generatedTokens, promptTokens, cachedTokens, requests, aborted, busyMs } = counters;
  const seconds = busyMs / 1000;
  const lines: [name: string, type: string, value: number][] = [
    ['sglang:num_running_reqs', 'gauge', counters.running],
    ['sglang:num_queue_reqs', 'gauge', counters.waiting],
    ['sglang:token_usage', 'gauge', counters.running / counters.slots],
    ['sglang:cache_hit_rate', 'gauge', promptTokens > 0 ? cachedTokens / promptTokens : 0],
    ['sglang:prompt_tokens_total', 'counter', promptTokens],
    ['sglang:cached_tokens_total', 'counter', cachedTokens],
    ['sglang:generation_tokens_total', 'counter', generatedTokens],
    ['sglang:num_requests_total', 'counter', requests],
    ['sglang:num_aborted_requests_total', 'counter', aborted],
    ['sglang:inter_token_latency_seconds_sum', 'histogram', seconds],
    ['sglang:inter_token_latency_seconds_count', 'histogram', generatedTokens],
    [
      'sglang:time_to_first_token_seconds_sum',
      'histogram',
      generatedTokens > 0 ? (seconds / generatedTokens) * requests : 0,
    ],
    ['sglang:time_to_first_token_seconds_count', 'histogram', requests],
    ['sglang:e2e_request_latency_seconds_sum', 'histogram', seconds],
    ['sglang:e2e_request_latency_seconds_count', 'histogram', requests],
  ];
  return lines.map(([name, type, value]) => `# TYPE ${name} ${type}\n${name}${labels} ${value}\n`).join('');
}
