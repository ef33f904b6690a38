/** trtllm-serve's HTTP API, about version 1.2. It has no routes for its tokenizer: that comes from a folder. Written from its public source. */
import type { ServerProtocol } from './protocol';
import { health } from './server-probe';
import { describeTensorrt, tensorrtFacts } from './tensorrt-llm-facts';
import { generateOnTensorrt } from './tensorrt-llm-generate';
import { tensorrtWeights } from './tensorrt-llm-weights';

export const tensorrtLlm: ServerProtocol = {
  kind: 'tensorrt-llm',
  describe: describeTensorrt,
  generate: (http, facts, call) => generateOnTensorrt(http, tensorrtFacts(facts), call),
  plainTokenize: false,
  health: (http) => health(http),
  metrics: {
    route: '/prometheus/metrics',
    running: ['trtllm_num_requests_running'],
    waiting: ['trtllm_num_requests_waiting'],
    timeToFirstToken: ['trtllm_time_to_first_token_seconds'],
    timePerOutputToken: ['trtllm_time_per_output_token_seconds'],
    generatedTokens: ['trtllm_generation_tokens_total'],
    promptTokens: ['trtllm_prompt_tokens_total'],
    kvCacheUse: ['trtllm_kv_cache_utilization'],
    prefixCache: { hits: ['trtllm_prompt_cached_tokens_total'], queries: ['trtllm_prompt_tokens_total'] },
  },
  // Without the key its routes for a trainer cannot be called.
  weights: () => null,
};

/** With the key that the server was given for its routes for a trainer. */
export function tensorrtLlmWithControl(controlKey: string): ServerProtocol {
  return { ...tensorrtLlm, weights: (facts) => tensorrtWeights(tensorrtFacts(facts), controlKey) };
}
