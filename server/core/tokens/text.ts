/** The text of tokens for display. A character may be split over tokens, so bytes are decoded across them. */
import type { TokenChunk } from './chunk';

/**
 * Cells in token order: a cell is one token, or the few tokens that share characters. Typed arrays and one string, so
 * that a million tokens cost a few arrays and no objects.
 */
export interface TokenTexts {
  /** Number of cells. */
  count: number;
  /** Cell c covers tokens tokenStarts[c] to tokenStarts[c + 1] (exclusive). Shape [count + 1]. */
  tokenStarts: Uint32Array;
  /** All cells' text end to end. U+FFFD appears only where the bytes themselves spell it. */
  text: string;
  /** Cell c is text.slice(textStarts[c], textStarts[c + 1]), in UTF-16 units. Shape [count + 1]. */
  textStarts: Uint32Array;
  /** Where in `text` a byte that is no UTF-8 is written as four characters, \xNN. In order. */
  escapeStarts: Uint32Array;
}

const ESCAPE_UNITS = 4;

export function tokenTexts({ bytes, byteEnds }: Pick<TokenChunk, 'bytes' | 'byteEnds'>): TokenTexts {
  const n = byteEnds.length;
  const size = n === 0 ? 0 : (byteEnds[n - 1] as number);
  const tokenStarts = new Uint32Array(n + 1);
  const textStarts = new Uint32Array(n + 1);
  const invalidBytes: number[] = [];
  const escapeStarts: number[] = [];
  let count = 0;
  let token = 0;
  let units = 0;
  let at = 0;
  for (;;) {
    while (token < n && byteEnds[token] === at) {
      token++;
      count++;
      tokenStarts[count] = token;
      textStarts[count] = units;
    }
    if (at >= size) break;
    const length = characterLength(bytes, at, size);
    if (length === 0) {
      invalidBytes.push(at);
      escapeStarts.push(units);
      units += ESCAPE_UNITS;
      at++;
    } else {
      units += length === 4 ? 2 : 1;
      at += length;
      // Tokens that end inside this character share the cell of the token that ends it.
      while (token < n && (byteEnds[token] as number) < at) token++;
    }
  }
  return {
    count,
    tokenStarts: tokenStarts.subarray(0, count + 1),
    text: decode(bytes, size, invalidBytes),
    textStarts: textStarts.subarray(0, count + 1),
    escapeStarts: Uint32Array.from(escapeStarts),
  };
}

/** Bytes of the character at `at`; 0 where they are no UTF-8 (a stray, overlong, surrogate or unfinished sequence). */
function characterLength(bytes: Uint8Array, at: number, size: number): number {
  const first = bytes[at] as number;
  if (first < 0x80) return 1;
  if (first < 0xc2 || first > 0xf4) return 0;
  const length = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  if (at + length > size) return 0;
  const second = bytes[at + 1] as number;
  const low = first === 0xe0 ? 0xa0 : first === 0xf0 ? 0x90 : 0x80;
  const high = first === 0xed ? 0x9f : first === 0xf4 ? 0x8f : 0xbf;
  if (second < low || second > high) return 0;
  for (let k = 2; k < length; k++) if (((bytes[at + k] as number) & 0xc0) !== 0x80) return 0;
  return length;
}

function decode(bytes: Uint8Array, size: number, invalid: readonly number[]): string {
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  if (invalid.length === 0) return decoder.decode(bytes.subarray(0, size));
  const parts: string[] = [];
  let at = 0;
  for (const position of invalid) {
    if (position > at) parts.push(decoder.decode(bytes.subarray(at, position)));
    parts.push(`\\x${(bytes[position] as number).toString(16).padStart(2, '0')}`);
    at = position + 1;
  }
  if (at < size) parts.push(decoder.decode(bytes.subarray(at, size)));
  return parts.join('');
}
