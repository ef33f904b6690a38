/** Token data out of pieces of text, for tests and measurements. */
import type { WireTokens } from '../../server/core/tokens/wire';
import { type SegmentKind, segmentCode } from '../../server/core/vocabulary';

export interface Piece {
  bytes: Uint8Array | string;
  segment?: SegmentKind;
  step?: number;
}

export function tokensOf(pieces: readonly (Piece | string)[]): WireTokens {
  const all = pieces.map((piece) => (typeof piece === 'string' ? { bytes: piece } : piece));
  const encoded = all.map(({ bytes }) => (typeof bytes === 'string' ? new TextEncoder().encode(bytes) : bytes));
  const n = all.length;
  const bytes = new Uint8Array(encoded.reduce((sum, part) => sum + part.length, 0));
  const byteEnds = new Uint32Array(n);
  let at = 0;
  encoded.forEach((part, i) => {
    bytes.set(part, at);
    at += part.length;
    byteEnds[i] = at;
  });
  return {
    ids: Int32Array.from(all, (_, i) => i),
    logprobs: new Float32Array(n).fill(Number.NaN),
    mask: new Uint8Array(n),
    stepIndex: Int32Array.from(all, (piece) => piece.step ?? -1),
    segment: Uint8Array.from(all, (piece) => segmentCode(piece.segment ?? 'user')),
    bytes,
    byteEnds,
    policyLogprobs: null,
    refLogprobs: null,
    entropy: null,
    alternatives: null,
  };
}
