/** What a program printed, made safe to store and to show: valid Unicode without the null character. */
import type { Json } from '../core/vocabulary';

/** Bytes that are no UTF-8 become U+FFFD, the null character (which databases refuse) its picture U+2400. */
export function readableText(bytes: Uint8Array): string {
  return new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes).replaceAll('\0', '\u2400');
}

/** The same for text that came as a string: lone surrogates become U+FFFD. */
export function readable(text: string): string {
  return text.replace(/\p{Surrogate}/gu, '\ufffd').replaceAll('\0', '\u2400');
}

/**
 * Parses the JSON text a sandbox handed over. Throws when it is no JSON or nested more than DEEPEST levels: what comes
 * after (databases, the browser) walks values recursively.
 * JSON.stringify writes every lone surrogate and null character as an escape, so replacing escapes covers them all,
 * in keys too.
 */
export function readableJson(text: string): Json {
  if (depthOf(text) > DEEPEST) throw new Error(`The value is nested more than ${DEEPEST} levels.`);
  const safe = readable(text).replace(/\\(?:u([0-9a-fA-F]{4})|[^u])/g, (sequence, hex: string | undefined) => {
    if (hex === undefined) return sequence;
    const unit = Number.parseInt(hex, 16);
    if (unit === 0) return '\u2400';
    return unit >= 0xd800 && unit <= 0xdfff ? '\ufffd' : sequence;
  });
  return JSON.parse(safe) as Json;
}

const DEEPEST = 200;

function depthOf(text: string): number {
  let depth = 0;
  let deepest = 0;
  let inString = false;
  for (let i = 0; i < text.length; i++) {
    const character = text[i];
    if (inString) {
      if (character === '\\') i++;
      else if (character === '"') inString = false;
    } else if (character === '"') inString = true;
    else if (character === '[' || character === '{') deepest = Math.max(deepest, ++depth);
    else if (character === ']' || character === '}') depth--;
  }
  return deepest;
}

/** Keeps the first `limit` bytes of several streams together and counts the rest. */
export class CappedOutput {
  #used = 0;
  #dropped = 0;
  readonly #chunks: { stdout: Uint8Array[]; stderr: Uint8Array[] } = { stdout: [], stderr: [] };

  constructor(readonly limit: number) {}

  write(stream: 'stdout' | 'stderr', chunk: Uint8Array): void {
    const kept = chunk.subarray(0, Math.max(0, this.limit - this.#used));
    this.#used += kept.length;
    this.#dropped += chunk.length - kept.length;
    if (kept.length > 0) this.#chunks[stream].push(kept);
  }

  text(stream: 'stdout' | 'stderr'): string {
    return readableText(Buffer.concat(this.#chunks[stream]));
  }

  get droppedBytes(): number {
    return this.#dropped;
  }
}
