/**
 * Text to ids and ids to bytes for a server that is spoken to over HTTP: from its own routes, or from the model's
 * tokenizer files in this process where a folder of them is given. What comes out is exact or refused: the bytes of the
 * ids are the bytes of the text.
 */
import { Invalid } from '../../core/errors';
import type { ChatMessage } from '../../core/events';
import type { EncodedText, TemplateOptions } from '../backend';
import { cut, hasControlShape } from './control-strings';
import type { HttpClient } from './http-client';
import type { LocalTokenizer } from './local-tokenizer';
import type { ServerFacts, ServerProtocol } from './protocol';
import { where } from './server-name';
import { quoted } from './server-words';
import { sideBySide } from './side-by-side';
import { TokenBytes } from './token-bytes';

export interface TokenTextOptions {
  protocol: ServerProtocol;
  http: HttpClient;
  facts: ServerFacts;
  /** Of the same model; null when only the server knows its tokenizer. */
  localTokenizer: LocalTokenizer | null;
}

/** Texts behind which a tokenizer is asked that puts a blank in front of every text; their ids are taken off again. */
const ANCHORS = ['\n', 'a', '0', ')'];
/** A text that comes apart into more different pieces than this is not worth the requests. */
const MAX_PIECES = 20_000;
const NONE: ReadonlySet<string> = new Set();

export class TokenText {
  readonly #options: TokenTextOptions;
  readonly #who: string;
  readonly #bytes: TokenBytes;
  readonly #ask: (asked: { text: string; special: boolean }) => Promise<Int32Array>;
  /** Behind an anchor at once: a tokenizer puts blanks in front of all texts or of none. */
  #behind = false;

  private constructor(options: TokenTextOptions) {
    const { protocol, http, facts, localTokenizer } = options;
    this.#options = options;
    this.#who = where(http);
    this.#ask = localTokenizer
      ? async ({ text, special }) => localTokenizer.encode(text, special)
      : sideBySide(
          async ({ text, special }) => (await protocol.tokenize?.(http, facts, text, special)) ?? this.#cannot(),
        );
    this.#bytes = new TokenBytes({
      who: this.#who,
      encode: (text) => this.#ask({ text, special: false }),
      decode: async (ids) => (await protocol.detokenize?.(http, facts, ids)) ?? this.#cannot(),
    });
  }

  /** Throws Invalid when the server has no route from text to ids and no tokenizer folder was given. */
  static open(options: TokenTextOptions): TokenText {
    const tokens = new TokenText(options);
    if (!options.localTokenizer && !options.protocol.tokenize) tokens.#cannot();
    return tokens;
  }

  /** Bytes of each id end to end. `known`: what a reply itself said exactly. Throws Invalid for an id that has no text to be found. */
  async bytesOf(ids: Int32Array, known: readonly (Uint8Array | null)[] | null = null): Promise<EncodedText> {
    for (let k = 0; known && k < ids.length; k++) {
      const bytes = known[k];
      // Servers that keep special tokens out of their text give nothing for them.
      if (bytes?.length) this.#bytes.learn(ids[k] ?? 0, bytes);
    }
    const { localTokenizer } = this.#options;
    // An id between the vocabulary's end and the model's (rows kept for later) has no text.
    if (localTokenizer) for (const id of ids) this.#bytes.learn(id, localTokenizer.bytesOf(id) ?? new Uint8Array());
    else await this.#bytes.lookUp(ids);
    const byteEnds = new Uint32Array(ids.length);
    let total = 0;
    for (let k = 0; k < ids.length; k++) {
      total += this.#bytes.get(ids[k] ?? 0).length;
      byteEnds[k] = total;
    }
    const bytes = new Uint8Array(total);
    for (let k = 0; k < ids.length; k++) bytes.set(this.#bytes.get(ids[k] ?? 0), byteEnds[k - 1] ?? 0);
    return { ids, bytes, byteEnds };
  }

  /**
   * Ids whose bytes are those of the text (half surrogates are U+FFFD, as everywhere in UTF-8). `special: false`: no
   * token of the result is a control token, whatever the text holds. Throws Invalid when the tokenizer cannot say the text.
   */
  async encode(text: string, { special }: { special: boolean }): Promise<EncodedText> {
    const ids: number[] = [];
    const done = new Map<string, Int32Array>();
    let pieces = [fromUtf8(new TextEncoder().encode(text))];
    while (pieces.length > 0) {
      const open = [...new Set(pieces)].filter((piece) => piece !== '' && !done.has(piece));
      if (open.length === 0) break;
      if (open.length > MAX_PIECES) throw this.#mismatch(text, null);
      const cuts = new Map<string, string[]>();
      await Promise.all(
        open.map(async (piece) => {
          const result = await this.#encodePiece(piece, special);
          if (result.ids) done.set(piece, result.ids);
          else cuts.set(piece, result.pieces);
        }),
      );
      pieces = pieces.flatMap((piece) => cuts.get(piece) ?? [piece]);
    }
    for (const piece of pieces) for (const id of done.get(piece) ?? []) ids.push(id);
    return this.bytesOf(Int32Array.from(ids));
  }

  /** The conversation as the model's template writes it. Throws Invalid when there is no template or it refuses. */
  async applyTemplate(messages: ChatMessage[], options: TemplateOptions): Promise<string> {
    const { protocol, http, facts, localTokenizer } = this.#options;
    if (localTokenizer?.hasTemplate) return localTokenizer.applyTemplate(messages, options);
    const rendered = await protocol.applyTemplate?.(http, facts, messages, options);
    if (rendered === undefined)
      throw new Invalid(
        `${this.#who} has no route that renders a chat template; give the folder with the model's tokenizer files.`,
      );
    return typeof rendered === 'string' ? rendered : fromUtf8((await this.bytesOf(rendered)).bytes);
  }

  /** The ids of a piece, or the smaller pieces that have to be encoded apart. */
  async #encodePiece(
    text: string,
    special: boolean,
  ): Promise<{ ids: Int32Array; pieces?: never } | { ids: null; pieces: string[] }> {
    const { ids, said } = await this.#exact(text, special);
    const controls = special ? NONE : this.#controlsIn(ids);
    if (said === text && controls.size === 0) return { ids };
    const pieces = cut(text, controls, special);
    if (pieces) return { ids: null, pieces };
    const spelled = await this.#spell(text);
    if (!spelled) throw this.#mismatch(text, said);
    return { ids: spelled };
  }

  /** Ids and what they say; behind an anchor where the tokenizer puts a blank in front. */
  async #exact(text: string, special: boolean): Promise<{ ids: Int32Array; said: string }> {
    const first = this.#behind ? null : await this.#read(await this.#ask({ text, special }));
    // Only a blank in front is healed by an anchor.
    if (first && (first.said === text || first.said.trimStart() !== text.trimStart())) return first;
    for (const anchor of ANCHORS) {
      const [front, all] = await Promise.all([
        this.#ask({ text: anchor, special }),
        this.#ask({ text: anchor + text, special }),
      ]);
      if (!front.every((id, k) => all[k] === id)) continue;
      const behind = await this.#read(all.slice(front.length));
      if (behind.said !== text) continue;
      this.#behind ||= first?.said === ` ${text}`;
      return behind;
    }
    return first ?? this.#read(await this.#ask({ text, special }));
  }

  async #read(ids: Int32Array): Promise<{ ids: Int32Array; said: string }> {
    return { ids, said: fromUtf8((await this.bytesOf(ids)).bytes) };
  }

  #controlsIn(ids: Int32Array): Set<string> {
    const controls = new Set<string>();
    const { localTokenizer } = this.#options;
    for (const id of ids) {
      const text = fromUtf8(this.#bytes.get(id));
      if (localTokenizer ? localTokenizer.isControl(id) : hasControlShape(text)) controls.add(text);
    }
    return controls;
  }

  /**
   * A character that the tokenizer turns into another one (the Ohm sign into Omega): put together from tokens of single
   * bytes and of beginnings of characters. Null when it cannot be.
   */
  async #spell(character: string): Promise<Int32Array | null> {
    const wanted = new TextEncoder().encode(character);
    const texts = relatives(character.codePointAt(0) ?? 0, wanted);
    const parts = new Map<string, number>();
    for (const { ids } of await Promise.all(texts.map((text) => this.#exact(text, false))))
      for (const id of ids) parts.set(String(this.#bytes.get(id)), id);
    const paths: (number[] | null)[] = [[]];
    for (let end = 1; end <= wanted.length; end++) {
      paths[end] = null;
      for (let start = 0; start < end && !paths[end]; start++) {
        const id = parts.get(String(wanted.slice(start, end)));
        const path = paths[start];
        if (id !== undefined && path) paths[end] = [...path, id];
      }
    }
    const path = paths[wanted.length];
    return path ? Int32Array.from(path) : null;
  }

  #mismatch(text: string, said: string | null): Invalid {
    const wanted = quoted(text, 80);
    return new Invalid(
      said === null
        ? `${this.#who} does not turn the text ${wanted} into ids that say the same; a tokenizer of another kind is needed.`
        : `${this.#who} turns the text ${wanted} into ids that say ${quoted(said, 80)}, so the model would read something else. Take the text out, or give the folder with the model's tokenizer files.`,
      { text: text.slice(0, 80), said: said?.slice(0, 80) },
    );
  }

  #cannot(): never {
    throw new Invalid(
      `${this.#who} has no route that turns text into ids and back; give the folder with the model's tokenizer files.`,
    );
  }
}

/** Characters that share bytes with this one, near to it or rare, so that tokens of single bytes are among theirs. */
function relatives(code: number, bytes: Uint8Array): string[] {
  const codes = Array.from({ length: 7 }, (_, k) => code ^ (k + 1));
  if (bytes.length === 3) for (const rest of [0x3c0, 0x7c0, 0x8c0, 0xfc0]) codes.push((code & 0xf000) | rest);
  if (bytes.length === 4) codes.push((code & 0x1c0000) | 0x3f000);
  for (const byte of bytes)
    if (byte >> 6 === 2) for (const shift of [0, 6, 12]) codes.push(0xc0000 | ((byte & 0x3f) << shift));
  const isCharacter = (each: number) => each <= 0x10ffff && (each < 0xd800 || each > 0xdfff);
  return codes.filter(isCharacter).map((each) => String.fromCodePoint(each));
}

/** Every byte that is part of no character reads as U+FFFD; a byte order mark is a character like any other. */
function fromUtf8(bytes: Uint8Array): string {
  return new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes);
}
