/**
 * A TokenChunk as bytes: what an event stores and what the browser gets, never JSON arrays.
 *
 * Layout, little-endian: u32 magic 'TOK1', u32 token count n, u32 byte count b, u32 flags, then
 * i32[n] ids, f32[n] logprobs, i32[n] step index, u32[n] byte ends, [f32[n] policy], [f32[n] ref], [f32[n] entropy],
 * [u32 k, i32[n·k] alternative ids, f32[n·k] their logprobs], u8[n] mask, u8[n] segment, u8[b] bytes. What is in brackets
 * is there when its flag is. Every four-byte section starts on a four-byte boundary.
 */
import { Invalid } from '../errors';
import type { TokenChunk, TokenExtras } from './chunk';

const MAGIC = 0x314b4f54;
const HEADER_BYTES = 16;
const HAS_POLICY = 1;
const HAS_REF = 2;
const HAS_ENTROPY = 4;
const HAS_ALTERNATIVES = 8;
const KNOWN_FLAGS = HAS_POLICY | HAS_REF | HAS_ENTROPY | HAS_ALTERNATIVES;

/** Without scores its extras are null. */
export interface WireTokens extends TokenChunk, TokenExtras {
  policyLogprobs: Float32Array | null;
  refLogprobs: Float32Array | null;
}

type Optional = 'policyLogprobs' | 'refLogprobs' | 'entropy' | 'alternatives';

export function encodeTokens(chunk: TokenChunk & Partial<Pick<WireTokens, Optional>>): Uint8Array {
  const n = chunk.ids.length;
  const { policyLogprobs: policy = null, refLogprobs: ref = null, entropy = null, alternatives = null } = chunk;
  const flags =
    (policy ? HAS_POLICY : 0) |
    (ref ? HAS_REF : 0) |
    (entropy ? HAS_ENTROPY : 0) |
    (alternatives ? HAS_ALTERNATIVES : 0);
  const out = new Uint8Array(sizeOf(n, chunk.bytes.length, flags, alternatives?.k ?? 0));
  new Uint32Array(out.buffer, 0, 4).set([MAGIC, n, chunk.bytes.length, flags]);
  let at = HEADER_BYTES;
  const put = (part: ArrayBufferView | null): void => {
    if (!part) return;
    out.set(new Uint8Array(part.buffer, part.byteOffset, part.byteLength), at);
    at += part.byteLength;
  };
  for (const column of [chunk.ids, chunk.logprobs, chunk.stepIndex, chunk.byteEnds, policy, ref, entropy]) put(column);
  if (alternatives) {
    put(Uint32Array.of(alternatives.k));
    put(alternatives.ids);
    put(alternatives.logprobs);
  }
  for (const column of [chunk.mask, chunk.segment, chunk.bytes]) put(column);
  return out;
}

/** Views into `wire` where its alignment allows, else a copy. Throws Invalid when the bytes are not this layout. */
export function decodeTokens(wire: Uint8Array | ArrayBuffer): WireTokens {
  let source = wire instanceof Uint8Array ? wire : new Uint8Array(wire);
  if (source.byteOffset % 4 !== 0) source = source.slice();
  if (source.byteLength < HEADER_BYTES) throw new Invalid('The token data is shorter than its header.');
  const buffer = source.buffer as ArrayBuffer;
  const [magic = 0, n = 0, byteCount = 0, flags = 0] = new Uint32Array(buffer, source.byteOffset, 4);
  let at = source.byteOffset + HEADER_BYTES;
  const take = (size: number): number => {
    const start = at;
    at += size;
    return start;
  };
  const kAt = at + n * (4 * columnsBefore(flags));
  const hasK = (flags & HAS_ALTERNATIVES) !== 0 && kAt + 4 <= source.byteOffset + source.byteLength;
  const k = hasK ? (new Uint32Array(buffer, kAt, 1)[0] as number) : 0;
  if (magic !== MAGIC || (flags & ~KNOWN_FLAGS) !== 0 || source.byteLength !== sizeOf(n, byteCount, flags, k))
    throw new Invalid('The token data is damaged: its length does not match its header.', {
      n,
      byteCount,
      size: source.byteLength,
    });
  const floats = (length: number): Float32Array => new Float32Array(buffer, take(length * 4), length);
  const integers = (length: number): Int32Array => new Int32Array(buffer, take(length * 4), length);
  return {
    ids: integers(n),
    logprobs: floats(n),
    stepIndex: integers(n),
    byteEnds: new Uint32Array(buffer, take(n * 4), n),
    policyLogprobs: flags & HAS_POLICY ? floats(n) : null,
    refLogprobs: flags & HAS_REF ? floats(n) : null,
    entropy: flags & HAS_ENTROPY ? floats(n) : null,
    alternatives:
      flags & HAS_ALTERNATIVES ? { k: integers(1)[0] as number, ids: integers(n * k), logprobs: floats(n * k) } : null,
    mask: new Uint8Array(buffer, take(n), n),
    segment: new Uint8Array(buffer, take(n), n),
    bytes: new Uint8Array(buffer, take(byteCount), byteCount),
  };
}

/** Four-byte columns before the alternatives. */
function columnsBefore(flags: number): number {
  return 4 + (flags & HAS_POLICY ? 1 : 0) + (flags & HAS_REF ? 1 : 0) + (flags & HAS_ENTROPY ? 1 : 0);
}

function sizeOf(n: number, byteCount: number, flags: number, k: number): number {
  const alternatives = flags & HAS_ALTERNATIVES ? 4 + 8 * n * k : 0;
  return HEADER_BYTES + n * (4 * columnsBefore(flags) + 2) + alternatives + byteCount;
}
