/** llama.cpp's own server (`llama-server`): one model, or one of several behind its router. */
import { createHash } from 'node:crypto';
import { Invalid } from '../../core/errors';
import type { ChatMessage } from '../../core/events';
import type { TemplateOptions } from '../backend';
import { ChatTemplate } from '../chat-template';
import type { HttpClient } from './http-client';
import { isObject } from './json-body';
import { generate } from './llama-server-generate';
import { adaptersOf, loraWeights } from './llama-server-lora';
import { score } from './llama-server-score';
import { ofModel } from './llama-server-wire';
import { templateTokens } from './local-template';
import { embed } from './openai-embed';
import type { ServerFacts, ServerProtocol } from './protocol';
import { where } from './server-name';
import { broken, health, modelCards, notServed, readIds, textOrNull } from './server-probe';
import { plain } from './server-words';

export const llamaServer: ServerProtocol = {
  kind: 'llama-server',
  describe,
  generate,
  score,
  // Strings that a vocabulary lists as "user defined" become their token even in plain text.
  plainTokenize: false,
  tokenize,
  detokenize,
  applyTemplate,
  health: (http) => health(http, (options) => http.getJson('/health', options)),
  embed,
  weights: loraWeights,
  metrics: {
    route: '/metrics',
    running: ['llamacpp:requests_processing'],
    waiting: ['llamacpp:requests_deferred'],
    timeToFirstToken: [],
    timePerOutputToken: [],
    generatedTokens: ['llamacpp:tokens_predicted_total'],
    promptTokens: ['llamacpp:prompt_tokens_total'],
    kvCacheUse: ['llamacpp:kv_cache_usage_ratio'],
    prefixCache: null,
  },
};

async function describe(http: HttpClient, { model }: { model: string | null }): Promise<ServerFacts> {
  const modelName = chooseModel(http, await modelCards(http, 'llamacpp', 'llama-server'), model);
  const props = objectOf((await http.getJson(ofModel('/props', { modelName }))).body);
  const defaults = objectOf(props.default_generation_settings);
  const contextLength = Number(defaults.n_ctx);
  if (!Number.isInteger(contextLength) || contextLength < 1)
    throw new Invalid(`${where(http)} does not say how long its context is; take a newer build of llama-server.`);
  const slots = Number(props.total_slots);
  const version = textOrNull(props.build_info)?.slice(0, 200) ?? null;
  const routes = new Set<string>();
  if ((await adaptersOf(http, { modelName })).length > 0) routes.add('lora');
  if (await offersEmbeddings(http, modelName)) routes.add('embeddings');
  const facts: ServerFacts = {
    modelName,
    contextLength,
    version,
    // The media marker is drawn anew at every start.
    fingerprint: createHash('sha256')
      .update(JSON.stringify([modelName, props.model_path, version, contextLength, slots, props.media_marker]))
      .update(String(props.chat_template))
      .digest('hex'),
    logprobs: 'raw',
    ...(Number.isInteger(slots) && slots > 0 && { slots }),
    routes,
  };
  return facts;
}

/** Throws NotFound when the wanted one is not served, Invalid when several are and none is wanted. */
function chooseModel(http: HttpClient, served: Record<string, unknown>[], wanted: string | null): string {
  const names = served.map(({ id }) => String(id).slice(0, 300));
  const found = served.findIndex(
    ({ id, aliases }) => id === wanted || (Array.isArray(aliases) && wanted !== null && aliases.includes(wanted)),
  );
  const chosen = wanted === null ? (names.length === 1 ? names[0] : undefined) : names[found];
  if (chosen !== undefined) return chosen;
  if (wanted !== null) throw notServed(http, wanted, names);
  const listed = names.slice(0, 10).map((name) => plain(name.slice(0, 80)));
  throw new Invalid(`${where(http)} serves several models; say which one is meant: ${listed.join(', ')}.`);
}

async function offersEmbeddings(http: HttpClient, modelName: string): Promise<boolean> {
  const { status } = await http.postJson(
    '/v1/embeddings',
    { model: modelName, input: 'a' },
    { accept: [400, 404, 500, 501] },
  );
  return status === 200;
}

async function tokenize(http: HttpClient, facts: ServerFacts, text: string, special: boolean): Promise<Int32Array> {
  const fields = { model: facts.modelName, content: text, add_special: false, parse_special: special };
  const ids = readIds(objectOf((await http.postJson('/tokenize', fields)).body).tokens);
  if (!ids) throw broken(http, '/tokenize', 'it holds no token ids');
  return ids;
}

async function detokenize(http: HttpClient, facts: ServerFacts, ids: Int32Array): Promise<string> {
  const { content } = objectOf((await http.postJson('/detokenize', { model: facts.modelName, tokens: ids })).body);
  if (typeof content !== 'string') throw broken(http, '/detokenize', 'it holds no text');
  return content;
}

const templates = new WeakMap<ServerFacts, Promise<ChatTemplate>>();

/**
 * Renders the template that the server gives in `/props`. Its own `/apply-template` writes prompts for itself: it takes
 * the beginning-of-text token away (it adds one to every text), leaves a last assistant message open, and moves system
 * messages for models that know none.
 */
async function applyTemplate(
  http: HttpClient,
  facts: ServerFacts,
  messages: ChatMessage[],
  options: TemplateOptions,
): Promise<string> {
  const held = templates.get(facts) ?? readTemplate(http, facts);
  templates.set(facts, held);
  held.catch(() => templates.delete(facts));
  return (await held).render(messages, options);
}

async function readTemplate(http: HttpClient, facts: ServerFacts): Promise<ChatTemplate> {
  const props = objectOf((await http.getJson(ofModel('/props', facts))).body);
  const { chat_template: plain, chat_template_tool_use: tools } = props;
  const withTools = typeof tools === 'string' && tools !== '' ? tools : undefined;
  if (typeof plain === 'string' && plain !== '')
    return ChatTemplate.read(`of the server at ${http.url}`, { plain, withTools }, templateTokens(props));
  throw new Invalid(`${where(http)} serves a model without a chat template; choose one trained for conversation.`);
}

function objectOf(value: unknown): Record<string, unknown> {
  return isObject(value) ? value : {};
}
