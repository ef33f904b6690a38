/** A model's chat template, wherever it comes from, rendered as text. */
import { Template } from '@huggingface/jinja';
import { Invalid } from '../core/errors';
import type { ChatMessage } from '../core/events';
import type { TemplateOptions } from './backend';

export interface TemplateTexts {
  plain: string;
  /** Some models have another one for messages with tools. */
  withTools?: string;
}

export class ChatTemplate {
  private constructor(
    private readonly whose: string,
    private readonly plain: Template,
    private readonly withTools: Template,
    private readonly tokens: Readonly<Record<string, string>>,
  ) {}

  /**
   * @param whose for sentences: `inside NAME`, `in FOLDER`, `of the server at URL`
   * @param tokens special tokens by the names templates write them with (`bos_token`, …)
   * Throws Invalid when a template cannot be read.
   */
  static read(
    whose: string,
    { plain, withTools }: TemplateTexts,
    tokens: Readonly<Record<string, string>>,
  ): ChatTemplate {
    const read = (text: string): Template => {
      try {
        return new Template(text);
      } catch (error) {
        throw new Invalid(`The chat template ${whose} cannot be read: ${messageOf(error)}.`);
      }
    };
    const first = read(plain);
    return new ChatTemplate(whose, first, withTools === undefined ? first : read(withTools), tokens);
  }

  /** Throws Invalid with the template's own complaint, for instance about the order of roles. */
  render(messages: ChatMessage[], { addGenerationPrompt, tools = [] }: TemplateOptions): string {
    try {
      return (tools.length > 0 ? this.withTools : this.plain).render({
        messages,
        add_generation_prompt: addGenerationPrompt,
        ...(tools.length > 0 ? { tools: tools.map((tool) => ({ type: 'function', function: tool })) } : {}),
        ...this.tokens,
      });
    } catch (error) {
      throw new Invalid(`The chat template ${this.whose} refuses these messages: ${messageOf(error)}.`);
    }
  }
}

/** What a template complains of is text of a stranger. */
function messageOf(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).replace(/\.$/, '').slice(0, 500);
}
