/** A server that speaks trtllm-serve's protocol (about version 1.2 to 1.3) on a small model. */
import { basename, extname } from 'node:path';
import type { TwinError } from './engine';
import type { TwinFaults } from './faults';
import type { CountedEngine, TwinCounters } from './open-engine';
import { complete } from './tensorrt-completions';
import { controlRoutes } from './tensorrt-control';
import { type ServerStart, startTwin, type Twin, type TwinOptions } from './twin';
import type { TwinRoute } from './twin-server';

export interface TensorrtTwinOptions extends TwinOptions {
  /** `rl_control_api_key`; without it the routes for a trainer do not exist. */
  controlKey?: string;
  /** `guided_decoding_backend` is set. Default true. */
  guided?: boolean;
  /** The older engine, whose numbers are divided by the temperature. Default false. */
  tempered?: boolean;
  /** `return_perf_metrics`: Prometheus text. Default true. */
  metrics?: boolean;
  /** Whether `/server_info` tells `max_seq_len`; older servers have no such route. Default true. */
  serverInfo?: boolean;
}

export function startTensorrtTwin(options: TensorrtTwinOptions): Promise<Twin> {
  return startTwin(options, { routes: (...parts) => routesOf(options, ...parts), errorBody });
}

function routesOf(
  options: TensorrtTwinOptions,
  counted: CountedEngine,
  faults: TwinFaults,
  start: ServerStart,
): Record<string, TwinRoute> {
  const { engine, counters } = counted;
  // What it was started with, whatever tensors are moved into it.
  const model = basename(engine.modelPath, extname(engine.modelPath));
  const { guided = true, tempered = false, metrics = true, serverInfo = true, controlKey } = options;
  let told = 0;
  const routes: Record<string, TwinRoute> = {
    'POST /v1/completions': (request) =>
      complete({ engine, run: counted.generate, faults, guided, tempered, model }, request),
    'GET /v1/models': () => ({
      json: { object: 'list', data: [{ id: model, object: 'model', created: 1, owned_by: 'tensorrt_llm' }] },
    }),
    'GET /version': () => ({ json: { version: '1.2.1' } }),
    'GET /health': () => ({ text: '' }),
    'GET /health_generate': () => ({ text: '' }),
    // Iteration records, each told once.
    'GET /metrics': () => {
      const { requests, running, waiting } = counters();
      const fresh = requests - told;
      told = requests;
      return {
        json: Array.from({ length: fresh }, () => ({ numActiveRequests: running, numQueuedRequests: waiting })),
      };
    },
  };
  if (metrics) routes['GET /prometheus/metrics'] = () => ({ text: metricsText(counters(), start) });
  if (serverInfo)
    routes['GET /server_info'] = () => ({ json: { disaggregated_params: null, max_seq_len: engine.contextLength } });
  return controlKey === undefined ? routes : { ...routes, ...controlRoutes(engine, faults, controlKey) };
}

/** Flat; what the schema refuses is a mere string. */
function errorBody(_path: string, { message, type, status }: TwinError): unknown {
  if (type === 'validation') return { error: message };
  return { object: 'error', message, type, param: null, code: status };
}

function metricsText(counters: TwinCounters, start: ServerStart): string {
  const labels = '{model_name="twin",engine_type="pytorch"}';
  const { generatedTokens, promptTokens, cachedTokens, requests, aborted, busyMs } = counters;
  const seconds = busyMs / 1000;
  const lines: [name: string, type: string, value: number][] = [
    ['process_start_time_seconds', 'gauge', start.number],
    ['trtllm_num_requests_running', 'gauge', counters.running],
    ['trtllm_num_requests_waiting', 'gauge', counters.waiting],
    ['trtllm_kv_cache_utilization', 'gauge', counters.running / counters.slots],
    ['trtllm_kv_cache_hit_rate', 'gauge', promptTokens > 0 ? cachedTokens / promptTokens : 0],
    ['trtllm_prompt_tokens_total', 'counter', promptTokens],
    ['trtllm_prompt_cached_tokens_total', 'counter', cachedTokens],
    ['trtllm_generation_tokens_total', 'counter', generatedTokens],
    ['trtllm_request_success_total', 'counter', requests - aborted],
    ['trtllm_time_per_output_token_seconds_sum', 'histogram', seconds],
    ['trtllm_time_per_output_token_seconds_count', 'histogram', generatedTokens],
    [
      'trtllm_time_to_first_token_seconds_sum',
      'histogram',
      generatedTokens > 0 ? (seconds / generatedTokens) * requests : 0,
    ],
    ['trtllm_time_to_first_token_seconds_count', 'histogram', requests],
  ];
  return lines
    .map(
      ([name, type, value]) => `# TYPE ${name} ${type}\n${name}${name.startsWith('process') ? '' : labels} ${value}\n`,
    )
    .join('');
}
