/**
 * A model's tokenizer from its own files (tokenizer.json, tokenizer_config.json, chat_template.jinja), in this process:
 * exact for byte-level BPE and for SentencePiece BPE or Unigram, the kinds that generating models have.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Tokenizer } from '@huggingface/tokenizers';
import { Invalid, NotFound } from '../../core/errors';
import type { ChatMessage } from '../../core/events';
import type { TemplateOptions } from '../backend';
import type { ChatTemplate } from '../chat-template';
import { readLocalTemplate } from './local-template';
import { type AddedToken, bytesOfVocabulary, type TokenizerJson, withSplitOfOwn } from './tokenizer-json';

export class LocalTokenizer {
  readonly folder: string;
  /** Ids that are no token of the vocabulary have none. */
  readonly #bytes: (Uint8Array | undefined)[];
  readonly #controls: ReadonlySet<number>;
  readonly #template: ChatTemplate | null;
  readonly #special: Tokenizer;
  readonly #plain: Tokenizer;

  private constructor(
    folder: string,
    json: TokenizerJson,
    config: Record<string, unknown>,
    template: ChatTemplate | null,
  ) {
    this.folder = folder;
    const own = withSplitOfOwn(json);
    this.#bytes = bytesOfVocabulary(folder, own);
    this.#template = template;
    // Runs of white space among the added tokens are text; every other one that can be spelled out must not come of text.
    this.#controls = new Set(own.added_tokens.filter(isControl).map(({ id }) => id));
    this.#special = new Tokenizer(own, config);
    const added_tokens = own.added_tokens.filter((token) => !isControl(token));
    this.#plain = new Tokenizer(
      { ...own, added_tokens, model: { ...own.model, vocab: emptyOf(own.model.vocab), merges: [] } },
      config,
    );
    // The two differ in their added tokens alone; the vocabulary is large and held once.
    this.#plain.model = this.#special.model;
  }

  /** Throws NotFound when there is no tokenizer.json, Invalid when a file is broken or of a kind that is not exact here. */
  static async open(folder: string): Promise<LocalTokenizer> {
    const json = await readJsonFile(folder, 'tokenizer.json');
    if (!json)
      throw new NotFound(
        `There is no tokenizer.json in ${folder}; give the folder that holds the model's tokenizer files.`,
      );
    const config = (await readJsonFile(folder, 'tokenizer_config.json')) ?? {};
    const template = readLocalTemplate(folder, config, await readText(folder, 'chat_template.jinja'));
    try {
      return new LocalTokenizer(folder, asTokenizer(folder, json), config, template);
    } catch (error) {
      if (error instanceof Invalid) throw error;
      throw new Invalid(`The file ${join(folder, 'tokenizer.json')} cannot be used: ${firstLine(error)}`);
    }
  }

  /** Ids of the text, none added. `special: false`: no added token is ever matched, whatever the text spells. */
  encode(text: string, special: boolean): Int32Array {
    const { ids } = (special ? this.#special : this.#plain).encode(text, { add_special_tokens: false });
    return Int32Array.from(ids);
  }

  /** Bytes the token stands for; of a special token its own text. Null for an id the vocabulary has not. */
  bytesOf(id: number): Uint8Array | null {
    return this.#bytes[id] ?? null;
  }

  /** An added token (special or not) with a text of its own, which plain text must never become. */
  isControl(id: number): boolean {
    return this.#controls.has(id);
  }

  get hasTemplate(): boolean {
    return this.#template !== null;
  }

  /** Throws Invalid when there is no template, or with the template's own complaint. */
  applyTemplate(messages: ChatMessage[], options: TemplateOptions): string {
    if (!this.#template)
      throw new Invalid(
        `The tokenizer in ${this.folder} comes without a chat template; choose a model trained for conversation.`,
      );
    return this.#template.render(messages, options);
  }
}

function isControl({ content }: AddedToken): boolean {
  return content.trim() !== '' && [...content].length > 1;
}

/** A vocabulary without entries, in the form (list or object) that the kind of model has. */
function emptyOf(vocab: unknown): unknown {
  return Array.isArray(vocab) ? vocab.slice(0, 1) : {};
}

function asTokenizer(folder: string, json: Record<string, unknown>): TokenizerJson {
  const model = json.model;
  if (typeof model !== 'object' || model === null || !('vocab' in model))
    throw new Invalid(`The file ${join(folder, 'tokenizer.json')} has no model with a vocabulary.`);
  return {
    normalizer: null,
    pre_tokenizer: null,
    post_processor: null,
    decoder: null,
    ...json,
    added_tokens: Array.isArray(json.added_tokens) ? json.added_tokens : [],
    model: model as TokenizerJson['model'],
  };
}

/** Null when there is no such file. */
async function readText(folder: string, name: string): Promise<string | null> {
  try {
    return await readFile(join(folder, name), 'utf8');
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    if (code === 'ENOENT' || code === 'ENOTDIR') return null;
    throw new Invalid(`The file ${join(folder, name)} cannot be read (${code ?? firstLine(error)}).`);
  }
}

async function readJsonFile(folder: string, name: string): Promise<Record<string, unknown> | null> {
  const text = await readText(folder, name);
  if (text === null) return null;
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
  } catch (error) {
    throw new Invalid(`The file ${join(folder, name)} is no JSON: ${firstLine(error)}`);
  }
  throw new Invalid(`The file ${join(folder, name)} is no JSON object.`);
}

function firstLine(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).split('\n')[0]?.slice(0, 300) ?? '';
}
