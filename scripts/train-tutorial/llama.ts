/** llama.cpp in this process: the tokenizer and the sampler that also serve the model. */
import { getLlama, type Llama, LlamaLogLevel } from 'node-llama-cpp';
import type { Encode } from './conversation';

export function openLlama(): Promise<Llama> {
  return getLlama({ gpu: false, build: 'never', logLevel: LlamaLogLevel.error, maxThreads: 1 });
}

/** The tokenizer of a GGUF file. Repeated texts are remembered: demonstrations are made of few different pieces. */
export async function openTokenizer(
  llama: Llama,
  modelPath: string,
): Promise<{ encode: Encode; close(): Promise<void> }> {
  const model = await llama.loadModel({ modelPath, vocabOnly: true });
  const known = new Map<string, readonly number[]>();
  return {
    encode: (text, special) => {
      const key = `${special ? 1 : 0}${text}`;
      const ids = known.get(key) ?? model.tokenize(text, special);
      known.set(key, ids);
      return ids;
    },
    close: () => model.dispose(),
  };
}
