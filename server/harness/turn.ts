/** Turns what a backend sampled into the log's form: which token belongs to which part of the turn. */
import type { ActionFormat, ParsedTurn } from '../core/actions/format';
import { Invalid } from '../core/errors';
import type { TokenChunk } from '../core/tokens/chunk';
import { segmentCode } from '../core/vocabulary';
import type { GenerationResult } from '../inference/backend';

export interface SampledTurn {
  chunk: TokenChunk;
  /** The turn's text, the stop string and end-of-turn token left out. */
  text: string;
  parsed: ParsedTurn;
}

const encoder = new TextEncoder();

/** A character that the end of the turn cut off is left out: its bytes are in the tokens, and U+FFFD was not written by the model. */
function textOf(bytes: Uint8Array): string {
  return new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes, { stream: true });
}

/**
 * Throws Invalid for an answer no log can be folded from, and for a number that is no log-probability.
 * @param where names the trajectory in these errors
 * @param everyTokenScored the backend can score, so a token without a number is an error too
 */
export function readSampledTurn(
  result: GenerationResult,
  form: { format: ActionFormat; startsInThought: boolean },
  stepNumber: number,
  firstPosition: number,
  where: string,
  everyTokenScored: boolean,
): SampledTurn {
  checkShape(result, where);
  checkLogprobs(result, firstPosition, where, everyTokenScored);
  const turnEnd = endOfTurnBytes(result);
  const { finishReason, stopString } = result;
  const parsed = form.format.parse(result.bytes.subarray(0, turnEnd), {
    finishReason,
    stopString,
    startsInThought: form.startsInThought,
  });
  const n = result.ids.length;
  const chunk: TokenChunk = {
    ids: result.ids,
    logprobs: result.logprobs,
    mask: new Uint8Array(n).fill(1),
    stepIndex: new Int32Array(n).fill(stepNumber),
    segment: new Uint8Array(n),
    bytes: result.bytes,
    byteEnds: result.byteEnds,
  };
  let segment = 0;
  for (let i = 0; i < n; i++) {
    const firstByte = i === 0 ? 0 : (result.byteEnds[i - 1] as number);
    while (segment < parsed.segments.length - 1 && firstByte >= (parsed.segments[segment]?.end ?? 0)) segment++;
    chunk.segment[i] = segmentCode(
      firstByte >= turnEnd && turnEnd < result.bytes.length ? 'stop' : (parsed.segments[segment]?.kind ?? 'thought'),
    );
  }
  return { chunk, text: textOf(result.bytes.subarray(0, turnEnd)), parsed };
}

/** Where the turn's own bytes end: before the stop string, or before the end-of-turn token. */
function endOfTurnBytes(result: GenerationResult): number {
  const { bytes, byteEnds, ids, stopString, endTokenSampled } = result;
  if (stopString !== null) {
    // The first one: the engine stopped there, and its last token may hold the stop string again.
    const found = indexOfBytes(bytes, encoder.encode(stopString));
    return found === -1 ? bytes.length : found;
  }
  if (endTokenSampled && ids.length > 0) return ids.length > 1 ? (byteEnds[ids.length - 2] as number) : 0;
  return bytes.length;
}

function indexOfBytes(haystack: Uint8Array, needle: Uint8Array): number {
  outer: for (let at = 0; at + needle.length <= haystack.length; at++) {
    for (let i = 0; i < needle.length; i++) if (haystack[at + i] !== needle[i]) continue outer;
    return at;
  }
  return -1;
}

/** Before anything is durable: a chunk that cannot be appended would make the log unreadable for good. */
function checkShape({ ids, logprobs, bytes, byteEnds, weightVersions }: GenerationResult, where: string): void {
  const n = ids.length;
  if (logprobs.length !== n || byteEnds.length !== n)
    throw new Invalid(
      `The backend returned ${n} tokens but ${logprobs.length} log-probabilities and ${byteEnds.length} texts for ${where}.`,
    );
  let at = 0;
  for (const end of byteEnds) {
    if (end < at) throw new Invalid(`The backend returned tokens whose texts overlap for ${where}.`);
    at = end;
  }
  if (at !== bytes.length)
    throw new Invalid(`The backend returned ${bytes.length} bytes for tokens of ${at} bytes for ${where}.`);
  at = 0;
  for (const { version, start, end } of weightVersions) {
    if (start < at || end < start || end > n)
      throw new Invalid(`The backend says weights ${version} made tokens ${start} to ${end} of ${n} for ${where}.`);
    at = end;
  }
}

/** The boundary where a number that is no log-probability is refused. */
function checkLogprobs({ logprobs }: GenerationResult, firstPosition: number, where: string, every: boolean): void {
  for (let i = 0; i < logprobs.length; i++) {
    const value = logprobs[i] as number;
    if (Number.isNaN(value) && !every) continue;
    // -9999 and the lowest float are how servers spell minus infinity; a sampled token cannot have it.
    if (!(value <= 1e-4 && value > -9000))
      throw new Invalid(
        `The log-probability ${value} at token ${firstPosition + i} of ${where} is none: a sampled token has a finite value of at most 0.`,
        {
          position: firstPosition + i,
          value,
        },
      );
  }
}
