/**
 * New weights on vLLM: a checkpoint folder by reloading in place, an adapter by loading it under a name of its own, or
 * tensors that a trainer moves itself. All but the adapter need a server in development mode (VLLM_SERVER_DEV_MODE=1), the
 * adapter one with --enable-lora and VLLM_ALLOW_RUNTIME_LORA_UPDATING=True.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { Conflict, Unavailable } from '../../core/errors';
import type { WeightSource } from '../../core/inference';
import type { HttpClient } from './http-client';
import { isObject } from './json-body';
import type { WeightRoutes } from './protocol';
import { where } from './server-name';
import { checkCheckpoint } from './vllm-checkpoint';
import { adapterName, adapterVersion, UNLABELLED, type VllmFacts } from './vllm-facts';

/** A load reads the whole checkpoint from a disk or a network. */
const LOAD_TIMEOUT_MS = 30 * 60_000;
/** Blocks are let go a moment after the last request has ended. */
const FLUSH_TRIES = 10;
const FLUSH_PAUSE_MS = 200;

export function vllmWeights(facts: VllmFacts): WeightRoutes | null {
  const canPause = facts.routes.has('pause');
  const sources: WeightSource[] = [];
  if (canPause && facts.routes.has('reload')) sources.push('checkpoint');
  if (facts.routes.has('lora')) sources.push('lora');
  if (canPause) sources.push('external');
  if (sources.length === 0) return null;
  return {
    sources,
    canPause,
    // An adapter's name is a label too.
    get keepsLabel() {
      return facts.routes.has('weight-label') || adapterVersion(facts.servedModel) !== null;
    },
    version: (http) => weightLabel(http, facts),
    async pause(http, mode, signal) {
      const how = mode === 'drain' ? 'wait' : 'abort';
      await http.postJson(`/pause?mode=${how}&clear_cache=true`, undefined, { signal, timeoutMs: null });
    },
    async resume(http) {
      await http.postJson('/resume', undefined);
    },
    async load(http, source, version) {
      if (source.kind === 'checkpoint') await loadCheckpoint(http, facts, source.path, version);
      else if (source.kind === 'lora') await loadAdapter(http, facts, source.path, version);
    },
    flush: flushPrefixCache,
    async stamp(http, version) {
      if (facts.routes.has('weight-label')) await http.postJson('/update_weight_version', { new_version: version });
    },
  };
}

async function weightLabel(http: HttpClient, facts: VllmFacts): Promise<string> {
  const adapter = adapterVersion(facts.servedModel);
  if (adapter !== null) return adapter;
  if (!facts.routes.has('weight-label')) return UNLABELLED;
  const { body } = await http.getJson('/weight_info');
  return isObject(body) && typeof body.weight_version === 'string' ? body.weight_version : UNLABELLED;
}

/**
 * A load that failed leaves the model without usable weights, and the next request would end the engine. So the folder
 * that served before is loaded again at once; only when that works do the old weights serve.
 */
async function loadCheckpoint(http: HttpClient, facts: VllmFacts, path: string, version: string): Promise<void> {
  const serving = await checkpointOf(http, facts);
  await checkCheckpoint(path, serving, facts.device);
  try {
    await reload(http, path);
  } catch (error) {
    if (serving !== null && (await reload(http, serving).then(succeeded, failed))) throw error;
    throw new Unavailable(
      `${where(http)} could not load ${path} and has lost the weights that served before${serving === null ? ', because their folder is not known here' : ''}; start the server again. ${(error as Error).message}`,
      { retry: false, weightsUnknown: true },
    );
  }
  facts.checkpoint = { path, version };
  // Adapters were trained on the weights that are gone.
  await unloadAdapters(http, facts, null);
  facts.servedModel = facts.modelName;
}

/** A trainer that moved tensors itself has changed the label, and no folder holds what serves then. */
async function checkpointOf(http: HttpClient, facts: VllmFacts): Promise<string | null> {
  const label = await weightLabel(http, facts);
  return facts.checkpoint?.version === label ? facts.checkpoint.path : null;
}

const succeeded = () => true;
const failed = () => false;

async function reload(http: HttpClient, path: string): Promise<void> {
  const request = { method: 'reload_weights', kwargs: { weights_path: path } };
  await http.postJson('/collective_rpc', request, { timeoutMs: LOAD_TIMEOUT_MS });
}

async function loadAdapter(http: HttpClient, facts: VllmFacts, path: string, version: string): Promise<void> {
  const name = adapterName(version);
  if ((await loadedAdapters(http)).includes(name))
    throw new Conflict(
      `${where(http)} already has an adapter of the version ${version}; give these weights another version.`,
    );
  const request = { lora_name: name, lora_path: path };
  await http.text('POST', '/v1/load_lora_adapter', request, { timeoutMs: LOAD_TIMEOUT_MS });
  facts.servedModel = name;
  // The weights below it are as they were, under a new label.
  if (facts.checkpoint) facts.checkpoint = { ...facts.checkpoint, version };
  // Without a pause, requests under way still need the one before.
  if (facts.routes.has('pause')) await unloadAdapters(http, facts, name);
}

/** Those that the studio loaded, without `keep`. One that is gone already is no failure. */
async function unloadAdapters(http: HttpClient, facts: VllmFacts, keep: string | null): Promise<void> {
  if (!facts.routes.has('lora')) return;
  for (const name of await loadedAdapters(http))
    if (name !== keep) await http.text('POST', '/v1/unload_lora_adapter', { lora_name: name }, { accept: [404] });
}

async function loadedAdapters(http: HttpClient): Promise<string[]> {
  const { body } = await http.getJson('/v1/models');
  const cards: unknown[] = isObject(body) && Array.isArray(body.data) ? body.data : [];
  return cards.flatMap((card) => (isObject(card) && adapterVersion(String(card.id)) !== null ? [String(card.id)] : []));
}

/** The route answers 200 also when nothing was emptied; `success` alone counts. */
async function flushPrefixCache(http: HttpClient): Promise<void> {
  for (let attempt = 1; attempt <= FLUSH_TRIES; attempt++) {
    const { body } = await http.postJson('/reset_prefix_cache?reset_external=true', undefined);
    const success = isObject(body) ? body.success : undefined;
    if (success === true) return;
    if (success === undefined)
      throw new Unavailable(
        `${where(http)} does not say whether its prefix cache is empty (POST /reset_prefix_cache); a newer vLLM does. Until then the cache may hold what the old weights computed.`,
      );
    await sleep(FLUSH_PAUSE_MS);
  }
  throw new Unavailable(
    `${where(http)} could not empty its prefix cache (POST /reset_prefix_cache answered success: false ${FLUSH_TRIES} times); it holds what the old weights computed.`,
  );
}
