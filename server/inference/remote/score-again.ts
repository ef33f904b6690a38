/**
 * Makes the numbers of a reply raw: what was sampled is scored at once, while the server still has the weights that
 * sampled it.
 */
import { Unavailable } from '../../core/errors';
import { reasonOf } from './error-sentence';
import type { GenerationPiece } from './generation-piece';
import type { RawScores } from './protocol';

export interface Scorer {
  /** Null when it was stopped. */
  score(completionIds: Int32Array): Promise<RawScores | null>;
  /** The label of the weights that serve, read after this call. */
  label(): Promise<string>;
  /** May reject when the signal is there. */
  wait(ms: number): Promise<unknown>;
  signal: AbortSignal | undefined;
  /** Backend and address, for sentences. */
  server: string;
}

/**
 * The piece as it is where its numbers are raw already, where more than one set of weights made it, and where other
 * weights serve by now: numbers of those would not be those of its tokens.
 */
export async function scoreAgain(piece: GenerationPiece, scorer: Scorer): Promise<GenerationPiece> {
  const { ids, logprobs, logprobKind, weightVersions } = piece;
  const complete = !logprobs.some((value) => Number.isNaN(value));
  const [made, ...others] = weightVersions;
  if ((logprobKind === 'raw' && complete) || !made || others.length > 0) return piece;
  const scores = await scoreThrough(() => scorer.score(ids), scorer);
  if (scores.logprobs.length !== ids.length || (await scorer.label()) !== made.version) return piece;
  return { ...piece, logprobs: scores.logprobs, logprobKind: 'raw' };
}

const FIRST_WAIT_MS = 50;
const LONGEST_WAIT_MS = 2_000;
/** Stopped so often in a row, somebody stops everything for good. */
const MOST_STOPS = 40;

/** Asks again when it was stopped: nothing of such an answer is of use. Throws Unavailable (retry) when that does not end. */
export async function scoreThrough(
  score: () => Promise<RawScores | null>,
  { wait, signal, server }: Pick<Scorer, 'wait' | 'signal' | 'server'>,
): Promise<RawScores> {
  for (let stops = 0; stops <= MOST_STOPS; stops++) {
    if (stops > 0) await wait(Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** Math.min(stops - 1, 10))).catch(() => {});
    if (signal?.aborted) throw reasonOf(signal);
    const scores = await score();
    if (scores) return scores;
  }
  throw new Unavailable(`${server} stopped a scoring ${MOST_STOPS + 1} times in a row.`, {
    retry: true,
    reached: true,
  });
}
