/**
 * A TokenChunk as bytes: what an event stores and what the browser gets, never JSON arrays.
 *
 * Layout, little-endian: u32 magic 'TOK1', u32 token count n, u32 byte count b, u32 flags, then
 * i32[n] ids, f32[n] logprobs, i32[n] step index, u32[n] byte ends, [f32[n] policy], [f32[n] ref],
 * u8[n] mask, u8[n] segment, u8[b] bytes. Every four-byte section starts on a four-byte boundary.
 */
import { Invalid } from '../errors';
import type { TokenChunk } from './chunk';

const MAGIC = 0x314b4f54;
const HEADER_BYTES = 16;
const HAS_POLICY = 1;
const HAS_REF = 2;

export interface WireTokens extends TokenChunk {
  policyLogprobs: Float32Array | null;
  refLogprobs: Float32Array | null;
}

export function encodeTokens(
  chunk: TokenChunk & Partial<Pick<WireTokens, 'policyLogprobs' | 'refLogprobs'>>,
): Uint8Array {
  const n = chunk.ids.length;
  const { policyLogprobs: policy = null, refLogprobs: ref = null } = chunk;
  const wide = 4 + (policy ? 1 : 0) + (ref ? 1 : 0);
  const out = new Uint8Array(HEADER_BYTES + n * (wide * 4 + 2) + chunk.bytes.length);
  new Uint32Array(out.buffer, 0, 4).set([
    MAGIC,
    n,
    chunk.bytes.length,
    (policy ? HAS_POLICY : 0) | (ref ? HAS_REF : 0),
  ]);
  let at = HEADER_BYTES;
  const put = (part: ArrayBufferView): void => {
    out.set(new Uint8Array(part.buffer, part.byteOffset, part.byteLength), at);
    at += part.byteLength;
  };
  put(chunk.ids);
  put(chunk.logprobs);
  put(chunk.stepIndex);
  put(chunk.byteEnds);
  if (policy) put(policy);
  if (ref) put(ref);
  put(chunk.mask);
  put(chunk.segment);
  put(chunk.bytes);
  return out;
}

/** Views into `wire` where its alignment allows, else a copy. Throws Invalid when the bytes are not this layout. */
export function decodeTokens(wire: Uint8Array | ArrayBuffer): WireTokens {
  let source = wire instanceof Uint8Array ? wire : new Uint8Array(wire);
  if (source.byteOffset % 4 !== 0) source = source.slice();
  if (source.byteLength < HEADER_BYTES) throw new Invalid('The token data is shorter than its header.');
  const head = new Uint32Array(source.buffer, source.byteOffset, 4);
  const [magic = 0, n = 0, byteCount = 0, flags = 0] = head;
  const wide = 4 + (flags & HAS_POLICY ? 1 : 0) + (flags & HAS_REF ? 1 : 0);
  if (magic !== MAGIC || source.byteLength !== HEADER_BYTES + n * (wide * 4 + 2) + byteCount)
    throw new Invalid('The token data is damaged: its length does not match its header.', {
      n,
      byteCount,
      size: source.byteLength,
    });
  let at = source.byteOffset + HEADER_BYTES;
  const take = (size: number): number => {
    const start = at;
    at += size;
    return start;
  };
  const buffer = source.buffer as ArrayBuffer;
  return {
    ids: new Int32Array(buffer, take(n * 4), n),
    logprobs: new Float32Array(buffer, take(n * 4), n),
    stepIndex: new Int32Array(buffer, take(n * 4), n),
    byteEnds: new Uint32Array(buffer, take(n * 4), n),
    policyLogprobs: flags & HAS_POLICY ? new Float32Array(buffer, take(n * 4), n) : null,
    refLogprobs: flags & HAS_REF ? new Float32Array(buffer, take(n * 4), n) : null,
    mask: new Uint8Array(buffer, take(n), n),
    segment: new Uint8Array(buffer, take(n), n),
    bytes: new Uint8Array(buffer, take(byteCount), byteCount),
  };
}
