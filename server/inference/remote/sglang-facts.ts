/** What an SGLang server says of itself. */

import { Invalid } from '../../core/errors';
import type { HttpClient } from './http-client';
import { isObject } from './json-body';
import type { ServerFacts } from './protocol';
import { where } from './server-name';
import { countOrNull, firstOf, isMounted, modelCards, notServed, readIds, textOrNull } from './server-probe';

export type SglangRoute = 'weight-label' | 'pause' | 'load' | 'tokenize' | 'seed';

export interface SglangFacts extends ServerFacts {
  readonly routes: ReadonlySet<SglangRoute>;
  /** Ids that `/tokenize` puts before every text, whatever it is asked. */
  readonly textPrefix: Int32Array;
  /** Of the last generation: what a cache that was not emptied would know. */
  lastPrompt: Int32Array | null;
}

/** The older names came first and are still there. */
export const MODEL_INFO = ['/model_info', '/get_model_info'];
const SERVER_INFO = ['/server_info', '/get_server_info'];

/** The server's word for weights that were never labelled. */
export const UNLABELLED = 'default';

/** Every fact that SGLang's protocol is given was made by its own `describe`. */
export const sglangFacts = (facts: ServerFacts): SglangFacts => facts as SglangFacts;

/** Throws Invalid when the models' owner is not SGLang, NotFound when the wanted one is not served. */
export async function describeSglang(http: HttpClient, wanted: { model: string | null }): Promise<SglangFacts> {
  const [card = {}] = await modelCards(http, 'sglang', 'SGLang');
  const [model, server] = await Promise.all([firstOf(http, MODEL_INFO), firstOf(http, SERVER_INFO)]);
  const label = textOrNull(model.weight_version);
  const modelName = String(card.id);
  // An update from a folder gives the server the folder's name; generation takes no name at all.
  const named = [modelName, textOrNull(card.root), textOrNull(model.model_path)];
  const original = label === null || label === UNLABELLED;
  if (wanted.model !== null && original && !named.includes(wanted.model))
    throw notServed(http, wanted.model, [modelName]);
  const contextLength = countOrNull(card.max_model_len) ?? countOrNull(server.context_length);
  if (contextLength === null)
    throw new Invalid(
      `${where(http)} does not say how long its context is (max_model_len is missing in GET /v1/models); a newer SGLang does.`,
    );
  const routes = await findRoutes(http);
  if (label !== null) routes.add('weight-label');
  // Otherwise the seed is taken and not heeded, and an older server refuses the field.
  if (server.enable_deterministic_inference === true) routes.add('seed');
  const version = textOrNull(server.version);
  // Drawn at every start unless the command line gives one.
  const { random_seed: seed, port } = server;
  return {
    modelName: wanted.model ?? modelName,
    contextLength,
    version,
    fingerprint: ['sglang', version, model.tokenizer_path, contextLength, seed, port].join(' '),
    // At temperature 1: the logits are divided by the temperature before, and filters come after.
    logprobs: 'raw',
    routes,
    textPrefix: routes.has('tokenize') ? await textPrefix(http) : new Int32Array(),
    lastPrompt: null,
  };
}

async function findRoutes(http: HttpClient): Promise<Set<SglangRoute>> {
  const [tokenize, load, stop, go] = await Promise.all([
    isMounted(http, '/tokenize'),
    isMounted(http, '/update_weights_from_disk'),
    isMounted(http, '/pause_generation'),
    isMounted(http, '/continue_generation'),
  ]);
  const routes = new Set<SglangRoute>();
  if (tokenize) routes.add('tokenize');
  if (load) routes.add('load');
  if (stop && go) routes.add('pause');
  return routes;
}

/** Newer servers tokenise as for generation, with the token that begins a text, also when told not to. */
async function textPrefix(http: HttpClient): Promise<Int32Array> {
  const { status, body } = await http.postJson(
    '/tokenize',
    { prompt: '', add_special_tokens: false },
    { accept: [400] },
  );
  return (status < 300 && isObject(body) ? readIds(body.tokens) : null) ?? new Int32Array();
}
