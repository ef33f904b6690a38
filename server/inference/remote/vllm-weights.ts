/**
 * New weights on vLLM: a checkpoint folder by reloading in place, an adapter by loading it under a name of its own, or
 * tensors that a trainer moves itself. All but the adapter need a server in development mode (VLLM_SERVER_DEV_MODE=1), the
 * adapter one with --enable-lora and VLLM_ALLOW_RUNTIME_LORA_UPDATING=True. Without that mode nothing can be paused or
 * emptied, and an adapter needs neither: our own requests are held back here, and what the prefix cache holds is found
 * under the name of the adapter that computed it.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { Conflict, Unavailable } from '../../core/errors';
import type { WeightSource } from '../../core/inference';
import type { UnfinishedUpdate } from '../backend';
import type { HttpClient } from './http-client';
import { isObject } from './json-body';
import type { WeightRoutes } from './protocol';
import { where } from './server-name';
import { checkCheckpoint } from './vllm-checkpoint';
import { adapterName, adapterVersion, freshAdapterName, UNLABELLED, type VllmFacts } from './vllm-facts';

/** A load reads the whole checkpoint from a disk or a network. */
const LOAD_TIMEOUT_MS = 30 * 60_000;
/** Blocks are let go a moment after the last request has ended. */
const FLUSH_TRIES = 10;
const FLUSH_PAUSE_MS = 200;

export function vllmWeights(facts: VllmFacts): WeightRoutes | null {
  const canPause = facts.routes.has('pause');
  const canFlush = facts.routes.has('flush');
  const sources: WeightSource[] = [];
  if (canPause && canFlush && facts.routes.has('reload')) sources.push('checkpoint');
  if (facts.routes.has('lora')) sources.push('lora');
  if (canPause && canFlush) sources.push('external');
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
    ...(canPause && { paused: isPaused }),
    async load(http, source, version) {
      if (source.kind === 'checkpoint') await loadCheckpoint(http, facts, source.path, version);
      else if (source.kind === 'lora') await loadAdapter(http, facts, source.path, version);
    },
    restore: (http, unfinished) => restore(http, facts, unfinished),
    flush: (http) => (canFlush ? flushPrefixCache(http) : Promise.resolve()),
    async stamp(http, version) {
      if (facts.routes.has('weight-label')) await http.postJson('/update_weight_version', { new_version: version });
      // Only now: whatever is cut off before this, the adapter that the label names is there.
      await unloadAdapters(http, facts);
    },
  };
}

/** Older servers have no such route. */
async function isPaused(http: HttpClient): Promise<boolean> {
  const { body } = await http.getJson('/is_paused', { accept: [404] });
  return isObject(body) && body.is_paused === true;
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
  facts.servedModel = facts.modelName;
}

/**
 * A checkpoint is loaded before its label is stamped: where they may be apart the folder of the label is loaded again.
 * An adapter is asked for by the label that its name holds, so those two are never apart.
 */
async function restore(http: HttpClient, facts: VllmFacts, { update, before }: UnfinishedUpdate): Promise<void> {
  const label = await weightLabel(http, facts);
  if (update.source.kind === 'checkpoint' && label === update.version)
    facts.checkpoint = { path: update.source.path, version: label };
  else if (update.source.kind === 'checkpoint') {
    const given = before.findLast(({ version }) => version === label)?.source;
    const path = label === UNLABELLED ? facts.checkpoint?.path : given?.kind === 'checkpoint' ? given.path : undefined;
    if (path === undefined)
      throw new Unavailable(
        `${where(http)} is labelled ${label}, but may have the weights ${update.version}, and the folder of ${label} is not known here.`,
      );
    await reload(http, path);
    facts.checkpoint = { path, version: label };
  }
  await unloadAdapters(http, facts);
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
  await http.postJson('/collective_rpc', request, { timeoutMs: LOAD_TIMEOUT_MS, once: true });
}

async function loadAdapter(http: HttpClient, facts: VllmFacts, path: string, version: string): Promise<void> {
  // Where the cache cannot be emptied, an earlier adapter of this version may be in it still.
  const name = facts.routes.has('flush') ? adapterName(version) : freshAdapterName(version);
  if ((await loadedAdapters(http)).some((loaded) => adapterVersion(loaded) === version))
    throw new Conflict(
      `${where(http)} already has an adapter of the version ${version}; give these weights another version.`,
    );
  const request = { lora_name: name, lora_path: path };
  await http.text('POST', '/v1/load_lora_adapter', request, { timeoutMs: LOAD_TIMEOUT_MS, once: true });
  facts.servedModel = name;
  // The weights below it are as they were, under a new label.
  if (facts.checkpoint) facts.checkpoint = { ...facts.checkpoint, version };
}

/** Those that the studio loaded, without the one that serves. One that is gone already is no failure. */
async function unloadAdapters(http: HttpClient, facts: VllmFacts): Promise<void> {
  if (!facts.routes.has('lora')) return;
  for (const name of await loadedAdapters(http))
    if (name !== facts.servedModel)
      await http.text('POST', '/v1/unload_lora_adapter', { lora_name: name }, { accept: [404] });
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
