/** What a vLLM server says of itself, and the two things it does not say: which adapter and which checkpoint serve now. */
import { randomBytes } from 'node:crypto';
import { Invalid } from '../../core/errors';
import type { LogprobKind } from '../../core/vocabulary';
import type { HttpClient } from './http-client';
import { isObject } from './json-body';
import type { ServerFacts } from './protocol';
import { where } from './server-name';
import { modelCards, notServed, textOrNull } from './server-probe';

export type VllmRoute =
  | 'tokens-in-tokens-out'
  | 'weight-label'
  | 'pause'
  | 'reload'
  | 'flush'
  | 'lora'
  | 'tokenize'
  | 'embeddings';

export interface VllmFacts extends ServerFacts {
  readonly routes: ReadonlySet<VllmRoute>;
  /** Sent as `model`: the base model's name, or that of the adapter that serves. Changed by a weight update. */
  servedModel: string;
  /** Folder of the base weights, as the server sees it, while `version` is the label; null when nobody here knows. Changed by an update. */
  checkpoint: { path: string; version: string } | null;
  /** `cuda`, `cpu` or the like; null where the server does not tell. */
  device: string | null;
  /** Started with --enable-lora; false where the server does not tell. */
  loraEnabled: boolean;
}

/** The server's word for weights that were never labelled. */
export const UNLABELLED = 'default';

/** Adapters that the studio loads have this before their version, so that a name says whose weights answered. */
const ADAPTER_NAME = /^studio(?:\.[0-9a-f]{12})?:(.*)$/s;
export const adapterName = (version: string): string => `studio:${version}`;
/** One that no adapter has ever had, of the same version or another. */
export const freshAdapterName = (version: string): string => `studio.${randomBytes(6).toString('hex')}:${version}`;
/** The version of an adapter that the studio loaded; null for every other model. */
export const adapterVersion = (model: string): string | null => ADAPTER_NAME.exec(model)?.[1] ?? null;

/** Every fact that vLLM's protocol is given was made by its own `describe`. */
export const vllmFacts = (facts: ServerFacts): VllmFacts => facts as VllmFacts;

export interface ServedModel {
  id: string;
  root: string | null;
  /** Null for a base model. */
  parent: string | null;
  contextLength: number | null;
}

/** Throws Invalid when the models' owner is not vLLM, NotFound when the wanted one is not served. */
export async function describeVllm(http: HttpClient, wanted: { model: string | null }): Promise<VllmFacts> {
  const models = await readModels(http);
  const model = chooseModel(http, models, wanted.model);
  const base = models.find((other) => other.id === model.parent) ?? model;
  const contextLength = model.contextLength ?? base.contextLength;
  if (contextLength === null)
    throw new Invalid(
      `${where(http)} does not say how long its context is (max_model_len is missing in GET /v1/models); a newer vLLM does.`,
    );
  const [version, label, info, startedAt, routes] = await Promise.all([
    fieldOf(http, '/version', 'version'),
    fieldOf(http, '/weight_info', 'weight_version'),
    serverInfo(http),
    processStart(http),
    findRoutes(http),
  ]);
  if (label !== null) routes.add('weight-label');
  return {
    modelName: model.id,
    contextLength,
    version,
    fingerprint: ['vllm', version, model.id, model.root, contextLength, startedAt].join(' '),
    logprobs: info ? kindOfMode(info.model.logprobs_mode) : await probeLogprobKind(http, model.id),
    routes,
    device: info?.device ?? null,
    loraEnabled: info?.loraEnabled ?? false,
    servedModel: adapterThatServes(models, model, label) ?? model.id,
    checkpoint: label === UNLABELLED && base.root !== null ? { path: base.root, version: label } : null,
  };
}

async function readModels(http: HttpClient): Promise<ServedModel[]> {
  return (await modelCards(http, 'vllm', 'vLLM')).map((card) => ({
    id: String(card.id),
    root: textOrNull(card.root),
    parent: textOrNull(card.parent),
    contextLength: typeof card.max_model_len === 'number' ? card.max_model_len : null,
  }));
}

function chooseModel(http: HttpClient, models: ServedModel[], wanted: string | null): ServedModel {
  const found = wanted === null ? models.find(({ parent }) => parent === null) : models.find(({ id }) => id === wanted);
  if (found) return found;
  throw notServed(
    http,
    wanted ?? '',
    models.map(({ id }) => id),
  );
}

/** After a restart of the studio: the label of the weights, or else the order of loading, says which of our adapters serves. */
function adapterThatServes(models: ServedModel[], model: ServedModel, label: string | null): string | null {
  const ours = models.filter(({ id, parent }) => parent === model.id && adapterVersion(id) !== null);
  const found = label === null ? ours.at(-1) : ours.find(({ id }) => adapterVersion(id) === label);
  return found?.id ?? null;
}

async function fieldOf(http: HttpClient, path: string, field: string): Promise<string | null> {
  const { body } = await http.getJson(path, { accept: [404] });
  const value = isObject(body) ? body[field] : undefined;
  return typeof value === 'string' ? value : null;
}

interface ServerInfo {
  model: Record<string, unknown>;
  device: string | null;
  loraEnabled: boolean;
}

/** Only a server in development mode tells its settings. */
async function serverInfo(http: HttpClient): Promise<ServerInfo | null> {
  const { body } = await http.getJson('/server_info?config_format=json', { accept: [404, 422] });
  const config = isObject(body) ? body.vllm_config : null;
  if (!isObject(config) || !isObject(config.model_config)) return null;
  const { device_type, device = device_type } = isObject(config.device_config) ? config.device_config : {};
  return {
    model: config.model_config,
    device: typeof device === 'string' ? device : null,
    loraEnabled: isObject(config.lora_config),
  };
}

async function processStart(http: HttpClient): Promise<string> {
  const { body } = await http.text('GET', '/metrics', undefined, { accept: [404] });
  return /^process_start_time_seconds (\S+)/m.exec(body)?.[1] ?? '';
}

async function findRoutes(http: HttpClient): Promise<Set<VllmRoute>> {
  const routes: [VllmRoute, path: string][] = [
    ['pause', '/pause'],
    ['reload', '/collective_rpc'],
    ['flush', '/reset_prefix_cache'],
    ['lora', '/v1/load_lora_adapter'],
    ['tokenize', '/tokenize'],
    ['embeddings', '/v1/embeddings'],
  ];
  const [generates, ...others] = await Promise.all([
    takesTokens(http),
    ...routes.map(async ([route, path]) => ((await isMounted(http, path)) ? route : null)),
  ]);
  const found = others.filter((route) => route !== null);
  return new Set(generates ? ['tokens-in-tokens-out', ...found] : found);
}

/** A route that wants POST answers GET with 405; asking so changes nothing on the server. */
async function isMounted(http: HttpClient, path: string): Promise<boolean> {
  const { status } = await http.text('GET', path, undefined, { accept: [400, 401, 403, 404, 405, 422] });
  return status === 405;
}

/** Without --enable-scale-out the route is there and answers 403; with it, an empty request is 400. */
async function takesTokens(http: HttpClient): Promise<boolean> {
  const { status } = await http.postJson('/inference/v1/generate', {}, { accept: [400, 403, 404, 405, 422] });
  return status === 400 || status === 422;
}

function kindOfMode(mode: unknown): LogprobKind {
  return mode === 'raw_logprobs' ? 'raw' : mode === 'processed_logprobs' ? 'sampled' : 'unknown';
}

/**
 * Two tokens, each forced as the only one allowed: numbers from after the mask are 0 for both, raw ones cannot be, and
 * logits may be above 0.
 */
async function probeLogprobKind(http: HttpClient, model: string): Promise<LogprobKind> {
  const numbers = await Promise.all(
    [0, 1].map(async (token) => {
      const request = {
        model,
        prompt: [token],
        max_tokens: 1,
        temperature: 1,
        logprobs: 0,
        allowed_token_ids: [token],
        ignore_eos: true,
      };
      // A server of embeddings has no such route.
      const { body } = await http.postJson('/v1/completions', request, { accept: [404] });
      const choice = isObject(body) && Array.isArray(body.choices) ? body.choices[0] : null;
      const logprobs = isObject(choice) && isObject(choice.logprobs) ? choice.logprobs.token_logprobs : null;
      return Array.isArray(logprobs) ? Number(logprobs[0] ?? Number.NaN) : Number.NaN;
    }),
  );
  if (!numbers.every((value) => value <= 1e-6)) return 'unknown';
  return numbers.every((value) => value > -1e-6) ? 'sampled' : 'raw';
}
