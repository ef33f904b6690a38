/** The chat template inside a GGUF file. */
import type { LlamaModel } from 'node-llama-cpp';
import { ChatTemplate } from '../chat-template';

/** Null for a model without one, which can still complete plain text. Throws Invalid when it cannot be read. */
export function templateInside(model: LlamaModel): ChatTemplate | null {
  const plain = model.fileInfo.metadata.tokenizer?.chat_template;
  if (!plain) return null;
  const tokens = { bos_token: model.tokens.bosString ?? '', eos_token: model.tokens.eosString ?? '' };
  return ChatTemplate.read(`inside ${model.filename ?? 'this model'}`, { plain }, tokens);
}
