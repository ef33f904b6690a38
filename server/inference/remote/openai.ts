/**
 * Any service of chat completions that gives no token ids. Everything that comes from it is approximate: ids are the
 * bytes of the text, prompts are messages again when they are sent, and stop strings are looked for on this side, as a
 * service does not say at which one it ended.
 */
import { Invalid, isStudioError } from '../../core/errors';
import type { Constraint, SamplingOptions } from '../backend';
import type { HttpClient } from './http-client';
import { isObject } from './json-body';
import { embed } from './openai-embed';
import { decode, encode, isKnown, parse, render } from './openai-messages';
import { readReply } from './openai-reply';
import type { GenerateCall, RawGeneration, ServerFacts, ServerProtocol } from './protocol';
import { where } from './server-name';
import { countOrNull, health, notServed } from './server-probe';

/** What services call the length of their context in the list of models. */
const CONTEXT_FIELDS = ['max_model_len', 'context_length', 'context_window', 'max_context_length'];

export const openai: ServerProtocol = {
  kind: 'openai',
  describe,
  generate,
  plainTokenize: true,
  tokenize: async (_http, _facts, text, special) => encode(text, special),
  detokenize: async (_http, _facts, ids) => decode(ids),
  applyTemplate: async (_http, _facts, messages, { addGenerationPrompt }) => render(messages, addGenerationPrompt),
  health: (http) => health(http, (options) => http.getJson('/v1/models', { ...options, accept: [404, 405] })),
  embed,
  metrics: null,
  weights: () => null,
};

async function describe(
  http: HttpClient,
  { model, contextLength = null }: { model: string | null; contextLength?: number | null },
): Promise<ServerFacts> {
  // Some gateways have no list; then the name must be given.
  const { status, body } = await http.getJson('/v1/models', { accept: [404, 405] });
  const data: unknown[] = isObject(body) && Array.isArray(body.data) ? body.data : [];
  const cards = data.filter(isObject);
  const names = cards.map(({ id }) => String(id));
  if (model === null && names.length !== 1)
    throw new Invalid(
      `${where(http)} ${names.length === 0 ? 'does not list its models' : `serves ${names.length} models`}; say the name of the one that is meant.`,
    );
  const modelName = model ?? names[0] ?? '';
  if (names.length > 0 && !names.includes(modelName)) throw notServed(http, modelName, names);
  const card = cards.find(({ id }) => id === modelName) ?? {};
  const said = CONTEXT_FIELDS.map((name) => countOrNull(card[name])).find((length) => length !== null);
  return {
    modelName: modelName.slice(0, 300),
    contextLength: contextLength ?? said ?? 0,
    version: null,
    fingerprint: JSON.stringify([modelName, card.owned_by ?? null, card.root ?? null, status]),
    logprobs: 'unknown',
    routes: new Set(),
  };
}

async function generate(http: HttpClient, facts: ServerFacts, call: GenerateCall): Promise<RawGeneration> {
  const { promptIds, options, signal } = call;
  const strange = promptIds.find((id) => !isKnown(id));
  if (strange !== undefined)
    throw new Invalid(`${where(http)} takes text only, and the id ${strange} of the prompt is no byte of a text.`);
  const messages = parse(promptIds);
  if (messages.length === 0) throw new Invalid(`${where(http)} was given a prompt without a message.`);
  const response = options.constraint && { response_format: responseFormat(http, options.constraint) };
  const fields = { model: facts.modelName, messages, ...samplingFields(options), ...response };
  return readReply(http, await ask(http, fields, options, signal), options.maxTokens);
}

/** Filters that not every service knows are sent only where they are on. */
function samplingFields({ temperature, topP, topK, minP }: SamplingOptions): Record<string, unknown> {
  return {
    n: 1,
    stream: false,
    temperature,
    top_p: topP,
    ...(topK > 0 && { top_k: topK }),
    ...(minP > 0 && { min_p: minP }),
  };
}

function responseFormat(http: HttpClient, constraint: Constraint): Record<string, unknown> {
  if (constraint.kind !== 'json_schema')
    throw new Invalid(
      `${where(http)} can be held to a JSON Schema only, and not to a constraint of the kind ${constraint.kind}.`,
    );
  return { type: 'json_schema', json_schema: { name: 'answer', schema: constraint.schema, strict: true } };
}

/** Fields that some services refuse and that change nothing in what is sampled from; each is left out once it was refused. */
const DISPENSABLE = ['logprobs', 'seed', 'max_tokens'] as const;
type Dispensable = (typeof DISPENSABLE)[number];
const refusals = new WeakMap<HttpClient, Set<Dispensable>>();

async function ask(
  http: HttpClient,
  fields: Record<string, unknown>,
  { maxTokens, seed }: SamplingOptions,
  signal: AbortSignal | undefined,
): Promise<unknown> {
  const refused = refusals.get(http) ?? new Set<Dispensable>();
  refusals.set(http, refused);
  for (;;) {
    const body = {
      ...fields,
      ...(!refused.has('logprobs') && { logprobs: true }),
      ...(!refused.has('seed') && { seed: Math.abs(seed) % 2 ** 31 }),
      [refused.has('max_tokens') ? 'max_completion_tokens' : 'max_tokens']: maxTokens,
    };
    try {
      const call = { timeoutMs: null, ...(signal && { signal }) };
      return (await http.postJson('/v1/chat/completions', body, call)).body;
    } catch (error) {
      const named = refusedField(error, refused);
      if (named === null) throw error;
      refused.add(named);
    }
  }
}

function refusedField(error: unknown, already: ReadonlySet<Dispensable>): Dispensable | null {
  if (!isStudioError(error) || error.code !== 'invalid' || error.details.contextOverflow !== undefined) return null;
  const said = String(error.details.said ?? '');
  return DISPENSABLE.find((field) => !already.has(field) && new RegExp(`\\b${field}\\b`).test(said)) ?? null;
}
