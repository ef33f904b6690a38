/**
 * Which of the context's sequences serves which request. A sequence keeps the tokens it has evaluated; a request that
 * continues them evaluates only what is new. Requests beyond the number of sequences wait in the order they came.
 */

export interface Sequence {
  readonly id: number;
  /** Tokens evaluated into this sequence, in order. */
  held: number[];
  /** Affinity key of the last request; null when the sequence was never used. */
  key: string | null;
  /** Grows with each use; the least recently used sequence has the smallest. */
  lastUse: number;
  busy: boolean;
}

export class SequencePool {
  readonly sequences: Sequence[];
  #uses = 0;

  constructor(count: number) {
    this.sequences = Array.from({ length: count }, (_, id) => ({ id, held: [], key: null, lastUse: 0, busy: false }));
  }

  /**
   * A free sequence for a prompt, marked busy, or null when all are busy. The one this key used last comes first;
   * otherwise the one that saves most: tokens shared with the prompt, less tokens that its own trajectory would have
   * to evaluate again; of equals the least recently used.
   */
  take(key: string, prompt: Int32Array): Sequence | null {
    const free = this.sequences.filter((sequence) => !sequence.busy);
    if (free.length === 0) return null;
    const worth = (sequence: Sequence) => {
      const shared = commonPrefix(sequence.held, prompt);
      return sequence.key === key ? shared : 2 * shared - sequence.held.length;
    };
    const own = free.filter((sequence) => sequence.key === key && commonPrefix(sequence.held, prompt) > 0);
    const best = (own.length ? own : free)
      .map((sequence) => ({ sequence, worth: worth(sequence) }))
      .reduce((a, b) =>
        b.worth > a.worth || (b.worth === a.worth && b.sequence.lastUse < a.sequence.lastUse) ? b : a,
      );
    best.sequence.busy = true;
    best.sequence.key = key;
    best.sequence.lastUse = ++this.#uses;
    return best.sequence;
  }

  release(sequence: Sequence): void {
    sequence.busy = false;
  }
}

/** Number of leading tokens two lists share. */
export function commonPrefix(a: ArrayLike<number>, b: ArrayLike<number>): number {
  const shorter = Math.min(a.length, b.length);
  let k = 0;
  while (k < shorter && a[k] === b[k]) k++;
  return k;
}
