/**
 * The bytes of every token, from the vocabulary in the model file. Detokenising one token at a time would lose the
 * halves of characters that are split over tokens.
 */
import { createHash } from 'node:crypto';
import type { LlamaModel, Token } from 'node-llama-cpp';
import { Invalid } from '../../core/errors';
import type { EncodedText } from '../backend';

/** llama.cpp's token types (`tokenizer.ggml.token_type`). */
const UNKNOWN = 2;
const CONTROL = 3;
const USER_DEFINED = 4;
const BYTE = 6;

export class Vocabulary {
  readonly size: number;
  /** Tells two vocabularies apart: ids of one mean nothing in the other. */
  readonly fingerprint: string;
  /** For each byte value a token that begins with it, the shortest there is; −1 where there is none. */
  readonly tokenOfFirstByte: Int32Array;
  readonly #bytes: Uint8Array;
  readonly #ends: Uint32Array;
  readonly #endsGeneration: Uint8Array;

  private constructor(bytes: Uint8Array, ends: Uint32Array, endsGeneration: Uint8Array, fingerprint: string) {
    this.size = ends.length;
    this.fingerprint = fingerprint;
    this.#bytes = bytes;
    this.#ends = ends;
    this.#endsGeneration = endsGeneration;
    this.tokenOfFirstByte = new Int32Array(256).fill(-1);
    for (let token = 0; token < this.size; token++) {
      const own = this.bytesOf(token);
      const first = own[0];
      if (first === undefined || this.endsGeneration(token)) continue;
      const held = this.tokenOfFirstByte[first] ?? -1;
      if (held < 0 || own.length < this.bytesOf(held).length) this.tokenOfFirstByte[first] = token;
    }
  }

  /** Throws Invalid when the file has no vocabulary. */
  static of(model: LlamaModel): Vocabulary {
    const ggml = model.fileInfo.metadata.tokenizer?.ggml;
    const texts = ggml?.tokens;
    if (!ggml || !texts?.length)
      throw new Invalid(`The model file ${model.filename} holds no vocabulary, so it cannot be used for text.`);
    const types = ggml.token_type ?? [];
    const decode = decoderOf(ggml.model, model);
    const parts = texts.map((text, token) => decode(text, types[token] ?? 1, token));
    const ends = new Uint32Array(parts.length);
    let total = 0;
    for (const [token, part] of parts.entries()) {
      total += part.length;
      ends[token] = total;
    }
    const bytes = new Uint8Array(total);
    for (const [token, part] of parts.entries()) bytes.set(part, (ends[token] ?? 0) - part.length);
    const endsGeneration = Uint8Array.from(parts, (_, token) => (model.isEogToken(token as Token) ? 1 : 0));
    const fingerprint = createHash('sha256').update(bytes).update(new Uint8Array(ends.buffer)).digest('hex');
    return new Vocabulary(bytes, ends, endsGeneration, fingerprint);
  }

  bytesOf(token: number): Uint8Array {
    return this.#bytes.subarray(token > 0 ? this.#ends[token - 1] : 0, this.#ends[token]);
  }

  /** End of sequence, of turn or of message: generation ends with it. */
  endsGeneration(token: number): boolean {
    return this.#endsGeneration[token] === 1;
  }

  /** Ids with the bytes of their tokens end to end. */
  encoded(ids: Int32Array): EncodedText {
    const byteEnds = new Uint32Array(ids.length);
    let total = 0;
    for (let k = 0; k < ids.length; k++) {
      total += this.bytesOf(ids[k] ?? 0).length;
      byteEnds[k] = total;
    }
    const bytes = new Uint8Array(total);
    for (let k = 0; k < ids.length; k++) bytes.set(this.bytesOf(ids[k] ?? 0), k > 0 ? byteEnds[k - 1] : 0);
    return { ids, bytes, byteEnds };
  }

  /** Throws Invalid for ids that are no tokens of this model: the native code would read past its table. */
  check(ids: Int32Array, what: string): void {
    for (let k = 0; k < ids.length; k++) {
      const id = ids[k] ?? -1;
      if (id < 0 || id >= this.size)
        throw new Invalid(`Token ${k} of the ${what} is ${id}; this model's ids go from 0 to ${this.size - 1}.`);
    }
  }
}

type Decoder = (text: string, type: number, token: number) => Uint8Array;

/** How the texts of a vocabulary spell bytes, by `tokenizer.ggml.model`. */
function decoderOf(kind: string, model: LlamaModel): Decoder {
  const encoder = new TextEncoder();
  if (kind === 'gpt2') {
    const byteOf = byteOfBpeCharacter();
    return (text, type) => {
      if (type === CONTROL || type === USER_DEFINED || type === UNKNOWN) return encoder.encode(text);
      const out: number[] = [];
      for (const character of text) {
        const byte = byteOf.get(character);
        if (byte === undefined) out.push(...encoder.encode(character));
        else out.push(byte);
      }
      return Uint8Array.from(out);
    };
  }
  if (kind === 'llama' || kind === 't5' || kind === 'gemma4') {
    return (text, type) => {
      if (type === CONTROL || type === USER_DEFINED || type === UNKNOWN) return encoder.encode(text);
      const byte = type === BYTE ? /^<0x([0-9A-Fa-f]{2})>$/.exec(text) : null;
      if (byte) return Uint8Array.of(Number.parseInt(byte[1] ?? '0', 16));
      return encoder.encode(text.replaceAll('\u2581', ' '));
    };
  }
  // Rarer tokenizers (WordPiece, RWKV …): what llama.cpp itself writes for the token alone.
  return (_text, _type, token) => encoder.encode(model.detokenize([token as Token], true));
}

/** GPT-2's table: printable bytes stand for themselves, the others for characters from U+0100 on, in order. */
function byteOfBpeCharacter(): Map<string, number> {
  const table = new Map<string, number>();
  let next = 256;
  for (let byte = 0; byte < 256; byte++) {
    const printable = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
    table.set(String.fromCodePoint(printable ? byte : next++), byte);
  }
  return table;
}
