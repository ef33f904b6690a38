/** Typed arrays to the binary columns of token_sequences and back. Little-endian, as every machine this runs on is. */
import { Invalid } from '../../server/core/errors';
import type { TokenExtras, TokenSequence, WeightSpan } from '../../server/core/tokens/chunk';

export interface TokenColumns {
  length: number;
  generatedLength: number;
  tokenIds: Uint8Array;
  logprobs: Uint8Array;
  generationMask: Uint8Array;
  stepIndex: Uint8Array;
  segmentKind: Uint8Array;
  bytes: Uint8Array;
  byteEnds: Uint8Array;
  policyLogprobs: Uint8Array | null;
  refLogprobs: Uint8Array | null;
}

const asBytes = (part: ArrayBufferView): Uint8Array => new Uint8Array(part.buffer, part.byteOffset, part.byteLength);

/** Views, no copies. Throws Invalid when the columns are not all of one length. */
export function toTokenColumns(sequence: Omit<TokenSequence, 'index' | 'weightVersions'>): TokenColumns {
  const { ids, logprobs, mask, stepIndex, segment, bytes, byteEnds, policyLogprobs, refLogprobs } = sequence;
  const n = ids.length;
  const lengths = [logprobs, mask, stepIndex, segment, byteEnds, policyLogprobs ?? ids, refLogprobs ?? ids];
  if (lengths.some((column) => column.length !== n) || (byteEnds[n - 1] ?? 0) !== bytes.length)
    throw new Invalid('The columns of a token sequence are not all of one length.', {
      ids: n,
      columns: lengths.map((column) => column.length),
      bytes: bytes.length,
    });
  let generatedLength = 0;
  for (const masked of mask) generatedLength += masked;
  return {
    length: n,
    generatedLength,
    tokenIds: asBytes(ids),
    logprobs: asBytes(logprobs),
    generationMask: mask,
    stepIndex: asBytes(stepIndex),
    segmentKind: segment,
    bytes,
    byteEnds: asBytes(byteEnds),
    policyLogprobs: policyLogprobs && asBytes(policyLogprobs),
    refLogprobs: refLogprobs && asBytes(refLogprobs),
  };
}

/** The columns of TokenExtras, as they are stored. */
export interface ExtraColumns {
  entropy: Uint8Array | null;
  alternativesK: number | null;
  alternativeIds: Uint8Array | null;
  alternativeLogprobs: Uint8Array | null;
}

export function toExtraColumns({ entropy, alternatives }: TokenExtras): ExtraColumns {
  return {
    entropy: entropy && asBytes(entropy),
    alternativesK: alternatives?.k ?? null,
    alternativeIds: alternatives && asBytes(alternatives.ids),
    alternativeLogprobs: alternatives && asBytes(alternatives.logprobs),
  };
}

/** Copies, so that the arrays are aligned and hold on to nothing of the driver's buffers. */
export function fromTokenColumns(
  row: TokenColumns & Partial<ExtraColumns> & { sequenceIndex: number; weightVersions: WeightSpan[] },
): TokenSequence & TokenExtras {
  const four = (column: Uint8Array, each = 1): ArrayBuffer => {
    if (column.byteLength !== row.length * 4 * each)
      throw new Invalid('A stored token sequence is damaged: a column has the wrong length.', { length: row.length });
    return new Uint8Array(column).buffer;
  };
  return {
    index: row.sequenceIndex,
    weightVersions: row.weightVersions,
    ids: new Int32Array(four(row.tokenIds)),
    logprobs: new Float32Array(four(row.logprobs)),
    mask: new Uint8Array(row.generationMask),
    stepIndex: new Int32Array(four(row.stepIndex)),
    segment: new Uint8Array(row.segmentKind),
    bytes: new Uint8Array(row.bytes),
    byteEnds: new Uint32Array(four(row.byteEnds)),
    policyLogprobs: row.policyLogprobs && new Float32Array(four(row.policyLogprobs)),
    refLogprobs: row.refLogprobs && new Float32Array(four(row.refLogprobs)),
    entropy: row.entropy ? new Float32Array(four(row.entropy)) : null,
    alternatives:
      row.alternativesK && row.alternativeIds && row.alternativeLogprobs
        ? {
            k: row.alternativesK,
            ids: new Int32Array(four(row.alternativeIds, row.alternativesK)),
            logprobs: new Float32Array(four(row.alternativeLogprobs, row.alternativesK)),
          }
        : null,
  };
}
