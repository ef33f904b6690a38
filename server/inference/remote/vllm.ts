/** vLLM's HTTP API, version 0.12 and later. Checked against 0.32; what each route does is beside the code that uses it. */
import { Invalid } from '../../core/errors';
import type { ChatMessage } from '../../core/events';
import type { TemplateOptions } from '../backend';
import type { HttpClient } from './http-client';
import { isObject } from './json-body';
import type { ServerProtocol } from './protocol';
import { where } from './server-name';
import { health } from './server-probe';
import { describeVllm, type VllmFacts, vllmFacts } from './vllm-facts';
import { generateOnVllm } from './vllm-generate';
import { scoreOnVllm } from './vllm-score';
import { vllmWeights } from './vllm-weights';
import { wireMessages } from './wire-messages';

export const vllm: ServerProtocol = {
  kind: 'vllm',
  describe: describeVllm,
  generate: (http, facts, call) => generateOnVllm(http, vllmFacts(facts), call),
  score: (http, facts, call) => scoreOnVllm(http, vllmFacts(facts), call),
  // A control string in plain text becomes its token: there is no switch.
  plainTokenize: false,
  tokenize: (http, facts, text) => tokenize(http, { model: vllmFacts(facts).servedModel, prompt: text }),
  applyTemplate: (http, facts, messages, options) =>
    tokenize(http, { model: vllmFacts(facts).servedModel, ...templateFields(messages, options) }),
  async detokenize(http, facts, ids) {
    const { body } = await http.postJson('/detokenize', { model: vllmFacts(facts).servedModel, tokens: ids });
    if (!isObject(body) || typeof body.prompt !== 'string')
      throw new Invalid(`${where(http)} answered POST /detokenize without a text.`);
    return body.prompt;
  },
  health: (http) => health(http),
  metrics: {
    route: '/metrics',
    running: ['vllm:num_requests_running'],
    waiting: ['vllm:num_requests_waiting'],
    timeToFirstToken: ['vllm:time_to_first_token_seconds'],
    timePerOutputToken: ['vllm:inter_token_latency_seconds', 'vllm:time_per_output_token_seconds'],
    generatedTokens: ['vllm:generation_tokens_total'],
    promptTokens: ['vllm:prompt_tokens_total'],
    kvCacheUse: ['vllm:kv_cache_usage_perc', 'vllm:gpu_cache_usage_perc'],
    prefixCache: { hits: ['vllm:prefix_cache_hits_total'], queries: ['vllm:prefix_cache_queries_total'] },
  },
  weights: (facts) => vllmWeights(vllmFacts(facts)),
  embed: (http, facts, texts, signal) => embed(http, vllmFacts(facts), texts, signal),
};

async function tokenize(http: HttpClient, request: Record<string, unknown>): Promise<Int32Array> {
  const { body } = await http.postJson('/tokenize', { ...request, add_special_tokens: false });
  const tokens = isObject(body) ? body.tokens : null;
  if (!Array.isArray(tokens) || !tokens.every(Number.isInteger))
    throw new Invalid(`${where(http)} answered POST /tokenize without token ids.`);
  return Int32Array.from(tokens);
}

function templateFields(messages: ChatMessage[], { addGenerationPrompt, tools = [] }: TemplateOptions) {
  return {
    messages: wireMessages(messages),
    add_generation_prompt: addGenerationPrompt,
    // An empty list is refused.
    ...(tools.length > 0 && { tools: tools.map((tool) => ({ type: 'function', function: tool })) }),
  };
}

/** Vectors in the order of the texts; the reply's `index` says which is whose. */
async function embed(
  http: HttpClient,
  facts: VllmFacts,
  texts: string[],
  signal?: AbortSignal,
): Promise<Float32Array[]> {
  const request = { model: facts.servedModel, input: texts, encoding_format: 'float' };
  const { body } = await http.postJson('/v1/embeddings', request, { signal, timeoutMs: null });
  const data: unknown[] = isObject(body) && Array.isArray(body.data) ? body.data : [];
  const vectors: (Float32Array | undefined)[] = new Array(texts.length);
  for (const entry of data)
    if (isObject(entry) && typeof entry.index === 'number' && Array.isArray(entry.embedding))
      vectors[entry.index] = Float32Array.from(entry.embedding);
  const whole = vectors.filter((vector) => vector !== undefined);
  if (whole.length !== texts.length)
    throw new Invalid(
      `${where(http)} answered POST /v1/embeddings with ${whole.length} vectors for ${texts.length} texts.`,
    );
  return whole;
}
