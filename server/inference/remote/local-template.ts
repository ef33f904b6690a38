/** The chat template that comes in the files of a Hugging Face model. */
import { join } from 'node:path';
import { Template } from '@huggingface/jinja';
import { Invalid } from '../../core/errors';
import type { ChatMessage } from '../../core/events';
import type { TemplateOptions } from '../backend';

/** Special tokens that templates write by these names. */
const TOKEN_NAMES = ['bos_token', 'eos_token', 'unk_token', 'pad_token', 'sep_token', 'cls_token'] as const;

export class LocalTemplate {
  readonly #folder: string;
  readonly #plain: Template;
  readonly #withTools: Template;
  readonly #tokens: Record<string, string>;

  private constructor(folder: string, plain: Template, withTools: Template, tokens: Record<string, string>) {
    this.#folder = folder;
    this.#plain = plain;
    this.#withTools = withTools;
    this.#tokens = tokens;
  }

  /**
   * `file` is the text of chat_template.jinja, which goes before what the config says; the config has one template or
   * several by name, of which `tool_use` is for messages with tools. Null when there is none.
   * Throws Invalid when a template cannot be read.
   */
  static of(folder: string, config: Record<string, unknown>, file: string | null): LocalTemplate | null {
    const named = new Map<string, string>();
    if (file !== null) named.set('default', file);
    else if (typeof config.chat_template === 'string') named.set('default', config.chat_template);
    else if (Array.isArray(config.chat_template))
      for (const { name, template } of config.chat_template) named.set(String(name), String(template));
    const source = named.get('default');
    if (source === undefined) return null;
    const read = (text: string) => {
      try {
        return new Template(text);
      } catch (error) {
        throw new Invalid(
          `The chat template in ${join(folder, file === null ? 'tokenizer_config.json' : 'chat_template.jinja')} cannot be read: ${messageOf(error)}.`,
        );
      }
    };
    const plain = read(source);
    const withTools = named.get('tool_use');
    const tokens = Object.fromEntries(TOKEN_NAMES.map((name) => [name, tokenText(config[name])]));
    return new LocalTemplate(folder, plain, withTools === undefined ? plain : read(withTools), tokens);
  }

  /** Throws Invalid with the template's own complaint, for instance about the order of roles. */
  render(messages: ChatMessage[], { addGenerationPrompt, tools = [] }: TemplateOptions): string {
    try {
      return (tools.length > 0 ? this.#withTools : this.#plain).render({
        messages,
        add_generation_prompt: addGenerationPrompt,
        ...(tools.length > 0 ? { tools: tools.map((tool) => ({ type: 'function', function: tool })) } : {}),
        ...this.#tokens,
      });
    } catch (error) {
      throw new Invalid(`The chat template in ${this.#folder} refuses these messages: ${messageOf(error)}.`);
    }
  }
}

/** A special token is named by its text or by an object that holds it. */
function tokenText(value: unknown): string {
  if (typeof value === 'string') return value;
  const content = typeof value === 'object' && value !== null && 'content' in value ? value.content : '';
  return typeof content === 'string' ? content : '';
}

function messageOf(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).replace(/\.$/, '').slice(0, 500);
}
