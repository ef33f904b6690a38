/** Puts a token sequence together from the chunks that events bring. */
import { Invalid } from '../errors';
import type { TokenChunk, TokenSequence, WeightSpan } from './chunk';

/**
 * Keeps the chunks it is handed, unchanged, and copies every column once, in `finish`: do not write into a chunk after
 * appending it. A generation that was aborted is never appended; its retry is appended whole.
 */
export class SequenceBuilder {
  readonly index: number;
  readonly #parts: TokenChunk[] = [];
  readonly #weights: WeightSpan[] = [];
  #length = 0;
  #byteLength = 0;

  /** @param index position of the sequence in its trajectory, from 0 */
  constructor(index = 0) {
    this.index = index;
  }

  /** Tokens so far, sampled or not. */
  get length(): number {
    return this.#length;
  }

  /** `generated` counts mask 1. Neither is called "length" alone where people read it. */
  get lengths(): { total: number; generated: number } {
    let generated = 0;
    for (const { mask } of this.#parts) for (let k = 0; k < mask.length; k++) generated += mask[k] as number;
    return { total: this.#length, generated };
  }

  /** Throws Invalid, and takes nothing, when the columns are not of one length or do not fit the bytes. */
  append(chunk: TokenChunk): void {
    const n = chunk.ids.length;
    const { logprobs, mask, stepIndex, segment, byteEnds, bytes } = chunk;
    const sameLength =
      logprobs.length === n &&
      mask.length === n &&
      stepIndex.length === n &&
      segment.length === n &&
      byteEnds.length === n;
    if (!sameLength || (byteEnds[n - 1] ?? 0) !== bytes.length) refuse(chunk);
    if (n === 0) return;
    this.#parts.push(chunk);
    this.#length += n;
    this.#byteLength += bytes.length;
  }

  /** Names the weights of tokens already appended; positions in this sequence, in order, without overlap. */
  appendWeights({ version, start, end }: WeightSpan): void {
    const last = this.#weights.at(-1);
    if (start < (last?.end ?? 0) || end < start || end > this.#length)
      throw new Invalid(
        `Weight version ${version} cannot cover tokens ${start} to ${end} of ${this.#length}: out of order or out of range.`,
      );
    if (start === end) return;
    if (last && last.version === version && last.end === start) last.end = end;
    else this.#weights.push({ version, start, end });
  }

  /** All token ids, a copy: the prompt of the next generation. Shape [length]. */
  ids(): Int32Array {
    const ids = new Int32Array(this.#length);
    let at = 0;
    for (const part of this.#parts) {
      ids.set(part.ids, at);
      at += part.ids.length;
    }
    return ids;
  }

  /** Bytes of the last token; none when there is no token. */
  lastTokenBytes(): Uint8Array {
    const last = this.#parts.at(-1);
    if (!last) return new Uint8Array(0);
    return last.bytes.subarray(last.byteEnds[last.byteEnds.length - 2] ?? 0);
  }

  /** The sequence so far. A single chunk is not copied. May be called again after more was appended. */
  finish(): TokenSequence {
    const [only] = this.#parts;
    const columns = only && this.#parts.length === 1 ? only : this.#join();
    const { ids, logprobs, mask, stepIndex, segment, bytes, byteEnds } = columns;
    const weightVersions = this.#weights.map((span) => ({ ...span }));
    return {
      index: this.index,
      ids,
      logprobs,
      mask,
      stepIndex,
      segment,
      bytes,
      byteEnds,
      weightVersions,
      policyLogprobs: null,
      refLogprobs: null,
    };
  }

  #join(): TokenChunk {
    const joined = emptyChunk(this.#length, this.#byteLength);
    let at = 0;
    let byteAt = 0;
    for (const part of this.#parts) {
      joined.ids.set(part.ids, at);
      joined.logprobs.set(part.logprobs, at);
      joined.mask.set(part.mask, at);
      joined.stepIndex.set(part.stepIndex, at);
      joined.segment.set(part.segment, at);
      joined.bytes.set(part.bytes, byteAt);
      shiftInto(joined.byteEnds, at, part.byteEnds, byteAt);
      at += part.ids.length;
      byteAt += part.bytes.length;
    }
    return joined;
  }
}

/** All columns in one buffer, in the order of core/tokens/wire: one allocation instead of seven. */
function emptyChunk(n: number, byteLength: number): TokenChunk {
  const buffer = new ArrayBuffer(18 * n + byteLength);
  return {
    ids: new Int32Array(buffer, 0, n),
    logprobs: new Float32Array(buffer, 4 * n, n),
    stepIndex: new Int32Array(buffer, 8 * n, n),
    byteEnds: new Uint32Array(buffer, 12 * n, n),
    mask: new Uint8Array(buffer, 16 * n, n),
    segment: new Uint8Array(buffer, 17 * n, n),
    bytes: new Uint8Array(buffer, 18 * n, byteLength),
  };
}

function refuse({ ids, logprobs, mask, stepIndex, segment, byteEnds, bytes }: TokenChunk): never {
  throw new Invalid(
    `A chunk of ${ids.length} tokens has columns of other lengths: logprobs ${logprobs.length}, mask ${mask.length}, step index ${stepIndex.length}, ` +
      `segment ${segment.length}, byte ends ${byteEnds.length} (the last at ${byteEnds[ids.length - 1] ?? 0} of ${bytes.length} bytes).`,
  );
}

function shiftInto(target: Uint32Array, at: number, source: Uint32Array, by: number): void {
  for (let k = 0; k < source.length; k++) target[at + k] = (source[k] as number) + by;
}
