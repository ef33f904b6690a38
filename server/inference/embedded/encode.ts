/** Text to ids, with control strings on or off, and without the space some tokenizers put in front. */
import type { LlamaModel, Token } from 'node-llama-cpp';
import type { EncodedText } from '../backend';
import type { Vocabulary } from './vocabulary';

const CONTROL = 3;
const USER_DEFINED = 4;

export class TextEncoderOfModel {
  readonly #model: LlamaModel;
  readonly #vocabulary: Vocabulary;
  /** Ids that plain text must never become, and the strings that spell them, longest first. */
  readonly #markers = new Map<number, string>();
  readonly #markerPattern: RegExp | null;

  constructor(model: LlamaModel, vocabulary: Vocabulary) {
    this.#model = model;
    this.#vocabulary = vocabulary;
    const ggml = model.fileInfo.metadata.tokenizer.ggml;
    for (const [token, type] of (ggml.token_type ?? []).entries()) {
      const text = ggml.tokens[token] ?? '';
      // Some vocabularies list runs of white space as "user defined"; those are text.
      if ((type === CONTROL || type === USER_DEFINED) && text.trim() !== '') this.#markers.set(token, text);
    }
    const strings = [...new Set(this.#markers.values())]
      .filter((text) => text.length > 1)
      .sort((a, b) => b.length - a.length);
    this.#markerPattern = strings.length ? new RegExp(strings.map(escapePattern).join('|'), 'u') : null;
  }

  encode(text: string, special: boolean): EncodedText {
    if (special) return this.#vocabulary.encoded(this.#tokenize(text, true));
    let ids = this.#tokenize(text, false);
    // llama.cpp reads "user defined" strings such as <tool_call> as one token even in plain text: cut each after its
    // first character and encode the pieces apart.
    if (ids.some((id) => this.#markers.has(id)))
      ids = Int32Array.from(this.#pieces(text).flatMap((piece) => [...this.#tokenize(piece, false)]));
    return this.#vocabulary.encoded(ids);
  }

  #pieces(text: string): string[] {
    const pieces: string[] = [];
    let rest = text;
    for (;;) {
      const found = this.#markerPattern?.exec(rest);
      if (!found) return rest === '' ? pieces : [...pieces, rest];
      const cut = found.index + ((found[0].codePointAt(0) ?? 0) > 0xffff ? 2 : 1);
      pieces.push(rest.slice(0, cut));
      rest = rest.slice(cut);
    }
  }

  #tokenize(text: string, special: boolean): Int32Array {
    const ids = Int32Array.from(this.#model.tokenize(text, special));
    const wanted = new TextEncoder().encode(text);
    if (sameBytes(this.#vocabulary.encoded(ids).bytes, wanted)) return ids;
    // SentencePiece models put a space before a text; in the middle of a conversation that space is not there.
    const trimmed = Int32Array.from(this.#model.tokenize(text, special, 'trimLeadingSpace') as Token[]);
    return sameBytes(this.#vocabulary.encoded(trimmed).bytes, wanted) ? trimmed : ids;
  }
}

function escapePattern(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&');
}

function sameBytes(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, k) => byte === b[k]);
}
