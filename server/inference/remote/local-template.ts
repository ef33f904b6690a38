/** The chat template that comes in the files of a Hugging Face model. */
import { join } from 'node:path';
import { ChatTemplate } from '../chat-template';

/** Special tokens that templates write by these names. */
const TOKEN_NAMES = ['bos_token', 'eos_token', 'unk_token', 'pad_token', 'sep_token', 'cls_token'] as const;

/**
 * @param config what tokenizer_config.json holds: one template, or several by name, of which `tool_use` is for messages
 * with tools
 * @param file the text of chat_template.jinja, which goes before what the config says; null where there is none
 * Null when there is no template. Throws Invalid when it cannot be read.
 */
export function readLocalTemplate(
  folder: string,
  config: Record<string, unknown>,
  file: string | null,
): ChatTemplate | null {
  const named = new Map<string, string>();
  if (file !== null) named.set('default', file);
  else if (typeof config.chat_template === 'string') named.set('default', config.chat_template);
  else if (Array.isArray(config.chat_template))
    for (const { name, template } of config.chat_template) named.set(String(name), String(template));
  const plain = named.get('default');
  if (plain === undefined) return null;
  const whose = `in ${join(folder, file === null ? 'tokenizer_config.json' : 'chat_template.jinja')}`;
  return ChatTemplate.read(whose, { plain, withTools: named.get('tool_use') }, templateTokens(config));
}

/** The special tokens of a tokenizer's config by the names templates know them by; '' where there is none. */
export function templateTokens(config: Record<string, unknown>): Record<string, string> {
  return Object.fromEntries(TOKEN_NAMES.map((name) => [name, tokenText(config[name])]));
}

/** A special token is named by its text or by an object that holds it. */
function tokenText(value: unknown): string {
  if (typeof value === 'string') return value;
  const content = typeof value === 'object' && value !== null && 'content' in value ? value.content : '';
  return typeof content === 'string' ? content : '';
}
