/** The chat template that comes with a model, rendered as text. */
import { Template } from '@huggingface/jinja';
import type { LlamaModel } from 'node-llama-cpp';
import { Invalid } from '../../core/errors';
import type { ChatMessage } from '../../core/events';
import type { TemplateOptions } from '../backend';

export class ChatTemplate {
  readonly #template: Template | null;
  readonly #modelName: string;
  readonly #tokens: { bos_token: string; eos_token: string };

  private constructor(template: Template | null, modelName: string, tokens: { bos_token: string; eos_token: string }) {
    this.#template = template;
    this.#modelName = modelName;
    this.#tokens = tokens;
  }

  /** Throws Invalid when the model's template cannot be read. A model without one can still complete plain text. */
  static of(model: LlamaModel): ChatTemplate {
    const source = model.fileInfo.metadata.tokenizer?.chat_template;
    const name = model.filename ?? 'this model';
    const tokens = { bos_token: model.tokens.bosString ?? '', eos_token: model.tokens.eosString ?? '' };
    if (!source) return new ChatTemplate(null, name, tokens);
    try {
      return new ChatTemplate(new Template(source), name, tokens);
    } catch (error) {
      throw new Invalid(`The chat template inside ${name} cannot be read: ${messageOf(error)}.`);
    }
  }

  /** Throws Invalid with the template's own complaint, for instance about the order of roles. */
  render(messages: ChatMessage[], { addGenerationPrompt, tools = [] }: TemplateOptions): string {
    if (!this.#template)
      throw new Invalid(`${this.#modelName} comes without a chat template; choose a model trained for conversation.`);
    try {
      return this.#template.render({
        messages,
        add_generation_prompt: addGenerationPrompt,
        ...(tools.length > 0 ? { tools: tools.map((tool) => ({ type: 'function', function: tool })) } : {}),
        ...this.#tokens,
      });
    } catch (error) {
      throw new Invalid(`The chat template of ${this.#modelName} refuses these messages: ${messageOf(error)}.`);
    }
  }
}

function messageOf(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).replace(/\.$/, '');
}
