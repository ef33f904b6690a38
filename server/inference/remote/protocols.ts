/** The protocol of each kind of server. */
import type { RemoteKind } from '../../core/inference';
import { llamaServer } from './llama-server';
import { openai } from './openai';
import type { ServerProtocol } from './protocol';
import { sglang } from './sglang';
import { tensorrtLlm } from './tensorrt-llm';
import { vllm } from './vllm';

export const PROTOCOLS: Record<RemoteKind, ServerProtocol> = {
  vllm,
  sglang,
  'tensorrt-llm': tensorrtLlm,
  'llama-server': llamaServer,
  openai,
};
