/** From a checked reply and the bytes of its tokens to what the harness gets: where a stop string ends it is decided here. */
import type { EncodedText, GenerationResult } from '../backend';
import { StopStrings } from '../stop-strings';
import type { GenerationPiece } from './generation-piece';

/**
 * Servers match stop strings in text that they clean up, only in what one request wrote, and some sample on past them;
 * so they are looked for in the bytes of all tokens. Tokens behind the one that completes the first are left out.
 */
export function toResult(
  piece: GenerationPiece,
  text: Pick<EncodedText, 'bytes' | 'byteEnds'>,
  stop: readonly string[],
): GenerationResult {
  const found = firstStop(piece, text, stop);
  const n = found?.tokens ?? piece.ids.length;
  const last = n === 0 ? 0 : (text.byteEnds[n - 1] as number);
  const ended: Pick<GenerationResult, 'finishReason' | 'endTokenSampled' | 'stopString'> = found
    ? { finishReason: 'stop', endTokenSampled: false, stopString: found.stop }
    : {
        finishReason: piece.finish === 'aborted' ? 'length' : piece.finish,
        endTokenSampled: piece.finish === 'eos' && piece.endTokenSampled && n > 0,
        stopString: piece.finish === 'stop' ? piece.stopString : null,
      };
  return {
    ids: piece.ids.slice(0, n),
    logprobs: piece.logprobs.slice(0, n),
    logprobKind: piece.logprobKind,
    bytes: text.bytes.slice(0, last),
    byteEnds: text.byteEnds.slice(0, n),
    weightVersions: piece.weightVersions
      .map(({ version, start, end }) => ({ version, start, end: Math.min(end, n) }))
      .filter(({ start, end }) => end > start),
    ...ended,
  };
}

/** Bytes of the text without an end-of-turn token. */
export function textBytes(result: GenerationResult): Uint8Array {
  const n = result.ids.length;
  return result.endTokenSampled ? result.bytes.subarray(0, n > 1 ? result.byteEnds[n - 2] : 0) : result.bytes;
}

function firstStop(
  { ids, finish, endTokenSampled }: GenerationPiece,
  { bytes, byteEnds }: Pick<EncodedText, 'bytes' | 'byteEnds'>,
  stop: readonly string[],
): { stop: string; tokens: number } | null {
  // The end-of-turn token ended it, whatever it is called.
  const tokens = finish === 'eos' && endTokenSampled ? ids.length - 1 : ids.length;
  const all = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (!stop.some((text) => text !== '' && all.includes(text))) return null;
  const stops = new StopStrings(stop);
  let start = 0;
  for (let k = 0; k < tokens; k++) {
    const end = byteEnds[k] as number;
    const found = stops.push(bytes.subarray(start, end));
    if (found !== null) return { stop: found, tokens: k + 1 };
    start = end;
  }
  return null;
}
