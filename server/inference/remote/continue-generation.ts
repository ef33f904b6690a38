/**
 * Goes on with a generation that new weights interrupted: what was sampled before is kept and is the prompt's end for
 * what comes after. Under a constraint it is begun anew, as no server takes up a grammar in the middle.
 */
import { Unavailable } from '../../core/errors';
import type { SamplingOptions } from '../backend';
import { reasonOf } from './error-sentence';
import { type GenerationPiece, joinPieces } from './generation-piece';

export interface Interruptible {
  promptIds: Int32Array;
  options: SamplingOptions;
  signal: AbortSignal | undefined;
}

export interface ServerTurns {
  /** One request to the server. Waits while it is paused from here. */
  ask(promptIds: Int32Array, options: SamplingOptions): Promise<GenerationPiece>;
  /** Whether the server says that it serves. */
  serves(): Promise<boolean>;
  /** May reject when the signal is there. */
  wait(ms: number): Promise<unknown>;
  /** Backend and address, for sentences. */
  server: string;
}

const FIRST_WAIT_MS = 50;
const LONGEST_WAIT_MS = 2_000;
/** Stopped so often without a token more, somebody stops everything for good. */
const MOST_IN_VAIN = 40;

/** Throws Unavailable (retry) when the server stops it again and again. The finish is never `aborted`. */
export async function generateThrough(
  { promptIds, options, signal }: Interruptible,
  { ask, serves, wait, server }: ServerTurns,
): Promise<GenerationPiece> {
  let sampled: GenerationPiece | null = null;
  let inVain = 0;
  for (let turn = 0; ; turn++) {
    const had: number = sampled?.ids.length ?? 0;
    const piece = await ask(
      sampled ? withPrefix(promptIds, sampled.ids) : promptIds,
      turn === 0 ? options : { ...options, maxTokens: options.maxTokens - had, seed: seedOfTurn(options.seed, turn) },
    );
    const joined: GenerationPiece = sampled ? joinPieces(sampled, piece) : piece;
    if (piece.finish !== 'aborted') return joined;
    if (joined.ids.length >= options.maxTokens && !options.constraint) return { ...joined, finish: 'length' };
    sampled = options.constraint ? null : joined;
    inVain = (sampled?.ids.length ?? 0) > had ? 0 : inVain + 1;
    if (inVain > MOST_IN_VAIN)
      throw new Unavailable(`${server} stopped a generation ${inVain} times in a row without a token of it.`, {
        retry: true,
        reached: true,
      });
    // With a back-off, for as long as the generation may wait: an update takes its time.
    for (let waits = inVain; ; waits++) {
      if (waits > 0)
        await wait(Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** Math.min(waits - 1, 10))).catch(() => {});
      if (signal?.aborted) throw reasonOf(signal);
      if (await serves()) break;
    }
  }
}

/** The same seed again would draw the same numbers for other positions. Below 2^31, which every server takes. */
function seedOfTurn(seed: number, turn: number): number {
  return (Math.abs(seed) + turn * 0x5bd1_e995) % 2 ** 31;
}

function withPrefix(promptIds: Int32Array, sampled: Int32Array): Int32Array {
  const ids = new Int32Array(promptIds.length + sampled.length);
  ids.set(promptIds);
  ids.set(sampled, promptIds.length);
  return ids;
}
