/** SGLang's routes for new weights, pausing, the cache and stopping. */
import { type TwinEngine, TwinError } from './engine';
import type { TwinFaults } from './faults';
import { fieldsOf, flagOf, textOf } from './read-body';
import type { PauseMode } from './scheduler';
import type { TwinReply, TwinRequest, TwinRoute } from './twin-server';

const PAUSES: readonly string[] = ['abort', 'retract', 'in_place'];

export function controlRoutes(engine: TwinEngine, faults: TwinFaults): Record<string, TwinRoute> {
  const { scheduler } = engine;
  const abortAll = () => scheduler.stop(() => true, 'Aborted by AbortReq.');
  const flush = async (): Promise<TwinReply> => {
    if (scheduler.running > 0 || scheduler.waiting > 0)
      return { status: 400, text: 'Flush cache failed: there are running or waiting requests.\n' };
    if (!faults.staleCache) await engine.flush();
    return { text: 'Cache flushed.\nPlease check backend logs for more details.\n' };
  };

  return {
    'POST /update_weights_from_disk': (request) => updateFromDisk(engine, faults, request),
    'POST /update_weight_version': ({ body }) => {
      const fields = fieldsOf(body);
      const version = textOf(fields, 'new_version');
      if (version === null) throw new TwinError(400, 'new_version: Field required');
      // On by default: whoever only wants to name the weights ends every generation.
      if (flagOf(fields, 'abort_all_requests', true)) abortAll();
      engine.weightVersion = version;
      return { json: { success: true, message: `Weight version updated to ${version}`, new_version: version } };
    },
    'POST /pause_generation': async ({ body }) => {
      const mode = body === null ? null : textOf(fieldsOf(body), 'mode');
      if (mode !== null && !PAUSES.includes(mode))
        throw new TwinError(400, `mode: Input should be one of ${PAUSES.join(', ')}`);
      await scheduler.pause((mode ?? 'abort') as PauseMode);
      return { json: { message: 'Generation paused successfully.', status: 'ok' } };
    },
    'POST /continue_generation': () => {
      scheduler.resume();
      return { json: { message: 'Generation continued successfully.', status: 'ok' } };
    },
    'GET /flush_cache': flush,
    'POST /flush_cache': flush,
    'POST /abort_request': ({ body }) => {
      const fields = fieldsOf(body ?? {});
      const rid = textOf(fields, 'rid') ?? '';
      if (flagOf(fields, 'abort_all', false)) abortAll();
      // By prefix: `r1` also ends `r10`. An empty one is ignored.
      else if (rid !== '') scheduler.stop(({ id }) => id.startsWith(rid), 'Aborted by AbortReq.');
      return { text: '' };
    },
    'POST /load_lora_adapter': ({ body }) => {
      const name = textOf(fieldsOf(body), 'lora_name');
      const error = 'LoRA is not enabled. Please set `--enable-lora` to enable LoRA.';
      return { status: 400, json: { success: false, error_message: error, loaded_adapters: {}, lora_name: name } };
    },
    'POST /unload_lora_adapter': () => ({
      status: 400,
      json: { success: false, error_message: 'LoRA is not enabled. Please set `--enable-lora` to enable LoRA.' },
    }),
  };
}

async function updateFromDisk(engine: TwinEngine, faults: TwinFaults, { body }: TwinRequest): Promise<TwinReply> {
  const fields = fieldsOf(body);
  const path = textOf(fields, 'model_path');
  if (path === null) throw new TwinError(400, 'model_path: Field required');
  const version = textOf(fields, 'weight_version');
  const { scheduler } = engine;
  if (flagOf(fields, 'abort_all_requests', false)) scheduler.stop(() => true, 'Aborted by AbortReq.');
  const keepCache = faults.staleCache || !flagOf(fields, 'flush_cache', true);
  return scheduler.exclusive(async () => {
    const paused = scheduler.running;
    try {
      await engine.load(path, { keepCache });
    } catch (error) {
      const message = `Failed to update weights: ${(error as Error).message}. Rolling back to original weights.`;
      return { status: 400, json: { success: false, message, num_paused_requests: paused } };
    }
    if (version !== null) engine.weightVersion = version;
    return { json: { success: true, message: 'Succeeded to update model weights.', num_paused_requests: paused } };
  });
}
