/** Whether a backend means the same by a token id as the one that sampled: scores under another vocabulary mean nothing. */
import { Invalid } from '../../core/errors';
import type { TokenSequence } from '../../core/tokens/chunk';
import { SEGMENT_KINDS } from '../../core/vocabulary';
import type { EncodedText } from '../../inference/backend';

/** Text that a person, task or tool wrote: no control tokens in it, which each engine writes in its own way. */
const PLAIN = new Set(['system', 'user', 'observation'].map((kind) => SEGMENT_KINDS.indexOf(kind as 'user')));
/** Enough to tell vocabularies apart. */
const MOST_TOKENS = 512;
const SPACE = 0x20;

/** The longest stretch of plain text among the sequence's first tokens; empty when there is none. */
export function plainText({ segment, bytes, byteEnds }: Pick<TokenSequence, 'segment' | 'bytes' | 'byteEnds'>): string {
  const n = Math.min(segment.length, MOST_TOKENS);
  let longest = { from: 0, to: 0 };
  for (let from = 0; from < n; from++) {
    let to = from;
    while (to < n && PLAIN.has(segment[to] as number)) to++;
    const stretch = { from: byteEnds[from - 1] ?? 0, to: byteEnds[to - 1] ?? 0 };
    if (to > from && stretch.to - stretch.from > longest.to - longest.from) longest = stretch;
    from = to;
  }
  return new TextDecoder().decode(bytes.subarray(longest.from, longest.to));
}

/**
 * Throws Invalid when the encoding of the sequence's own text gives an id other bytes than the sequence has for it, or
 * hardly any of its ids.
 */
export function requireSameVocabulary(
  backendName: string,
  sequence: Pick<TokenSequence, 'ids' | 'bytes' | 'byteEnds'>,
  encoded: EncodedText,
): void {
  const known = new Map<number, string>();
  sequence.ids.forEach((id, k) => {
    known.set(id, bytesOf(sequence, k));
  });
  let shared = 0;
  for (let k = 0; k < encoded.ids.length; k++) {
    const bytes = known.get(encoded.ids[k] as number);
    if (bytes === undefined) continue;
    if (bytes !== bytesOf(encoded, k)) refuse(backendName, `the token ${encoded.ids[k]} is other text there`);
    shared++;
  }
  if (encoded.ids.length > 8 && shared < encoded.ids.length / 2)
    refuse(backendName, 'it encodes the text of the run with other tokens');
}

function refuse(backendName: string, why: string): never {
  throw new Invalid(
    `The backend ${backendName} cannot score this run: its vocabulary is not the one that sampled (${why}). Take a model with the same tokenizer.`,
  );
}

/** Without a leading space: some engines write it in the first token of a text and others do not. */
function bytesOf({ bytes, byteEnds }: Pick<EncodedText, 'bytes' | 'byteEnds'>, k: number): string {
  const own = bytes.subarray(byteEnds[k - 1] ?? 0, byteEnds[k]);
  return (own[0] === SPACE ? own.subarray(1) : own).join();
}
