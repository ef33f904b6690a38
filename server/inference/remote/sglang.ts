/** SGLang's HTTP API, about version 0.5: its own `/generate` for ids in and out, the rest beside. Written from its public source. */
import { Invalid } from '../../core/errors';
import type { ChatMessage } from '../../core/events';
import type { TemplateOptions } from '../backend';
import type { HttpClient } from './http-client';
import { isObject } from './json-body';
import type { ServerProtocol } from './protocol';
import { where } from './server-name';
import { broken, health, readIds } from './server-probe';
import { describeSglang, sglangFacts } from './sglang-facts';
import { generateOnSglang, scoreOnSglang } from './sglang-generate';
import { sglangWeights } from './sglang-weights';
import { wireMessages } from './wire-messages';

export const sglang: ServerProtocol = {
  kind: 'sglang',
  describe: describeSglang,
  generate: (http, facts, call) => generateOnSglang(http, sglangFacts(facts), call),
  score: (http, facts, call) => scoreOnSglang(http, facts, call),
  // A control string in plain text becomes its token: there is no switch.
  plainTokenize: false,
  async tokenize(http, facts, text) {
    const { textPrefix } = sglangFacts(facts);
    const ids = await tokens(http, { prompt: text, add_special_tokens: false });
    return textPrefix.every((id, k) => ids[k] === id) ? ids.subarray(textPrefix.length) : ids;
  },
  async detokenize(http, _facts, ids) {
    const { body } = await http.postJson('/detokenize', { tokens: ids, skip_special_tokens: false });
    if (!isObject(body) || typeof body.text !== 'string') throw broken(http, '/detokenize', 'it has no text');
    return body.text;
  },
  applyTemplate,
  // Not /health_generate, which samples a token.
  health: (http) => health(http),
  metrics: {
    route: '/metrics',
    running: ['sglang:num_running_reqs'],
    waiting: ['sglang:num_queue_reqs'],
    timeToFirstToken: ['sglang:time_to_first_token_seconds'],
    timePerOutputToken: ['sglang:inter_token_latency_seconds', 'sglang:time_per_output_token_seconds'],
    generatedTokens: ['sglang:generation_tokens_total'],
    promptTokens: ['sglang:prompt_tokens_total'],
    kvCacheUse: ['sglang:token_usage'],
    prefixCache: { rate: ['sglang:cache_hit_rate'] },
  },
  weights: (facts) => sglangWeights(sglangFacts(facts)),
};

async function tokens(http: HttpClient, request: Record<string, unknown>): Promise<Int32Array> {
  const { body } = await http.postJson('/tokenize', request);
  const ids = isObject(body) ? readIds(body.tokens) : null;
  if (!ids) throw broken(http, '/tokenize', 'it has no token ids');
  return ids;
}

/** As ids, and always with the beginning of an answer behind: the route has no switch for that. */
async function applyTemplate(
  http: HttpClient,
  _facts: unknown,
  messages: ChatMessage[],
  { addGenerationPrompt, tools = [] }: TemplateOptions,
): Promise<Int32Array> {
  if (!addGenerationPrompt)
    throw new Invalid(
      `${where(http)} renders its chat template only up to where an answer begins; for anything else give the folder with the model's tokenizer files.`,
    );
  const described = tools.map((tool) => ({ type: 'function', function: tool }));
  return tokens(http, { messages: wireMessages(messages), ...(described.length > 0 && { tools: described }) });
}
