/** The protocol of each kind of server. */
import type { RemoteKind } from '../../core/inference';
import { llamaServer } from './llama-server';
import { openai } from './openai';
import type { ServerProtocol } from './protocol';
import { sglang } from './sglang';
import { tensorrtLlm, tensorrtLlmWithControl } from './tensorrt-llm';
import { vllm } from './vllm';

export const PROTOCOLS: Record<RemoteKind, ServerProtocol> = {
  vllm,
  sglang,
  'tensorrt-llm': tensorrtLlm,
  'llama-server': llamaServer,
  openai,
};

/** @param controlKey signs requests for new weights, where a kind of server wants that. Without one those are not made. */
export function protocolsWith(controlKey: string | null | undefined): Record<RemoteKind, ServerProtocol> {
  return controlKey ? { ...PROTOCOLS, 'tensorrt-llm': tensorrtLlmWithControl(controlKey) } : PROTOCOLS;
}
