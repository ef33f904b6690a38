/** Holds requests back while a server is paused or takes new weights, and counts those that are with it. */
import { reasonOf } from './error-sentence';

export class ServingGate {
  #closed: string | null = null;
  #inside = 0;
  readonly #waiting = new Set<() => void>();
  readonly #drained = new Set<() => void>();

  /** Why requests wait, as a sentence; null when they do not. */
  get closed(): string | null {
    return this.#closed;
  }

  close(reason: string): void {
    this.#closed = reason;
  }

  open(): void {
    this.#closed = null;
    for (const go of this.#waiting) go();
    this.#waiting.clear();
  }

  /** Resolves when it is open. Throws the signal's reason. */
  async passed(signal?: AbortSignal): Promise<void> {
    while (this.#closed !== null) await untilAborted(new Promise<void>((go) => this.#waiting.add(go)), signal);
    if (signal?.aborted) throw reasonOf(signal);
  }

  /** Counts the work as one request with the server. */
  async run<T>(work: () => Promise<T>): Promise<T> {
    this.#inside++;
    try {
      return await work();
    } finally {
      this.#inside--;
      if (this.#inside === 0) {
        for (const done of this.#drained) done();
        this.#drained.clear();
      }
    }
  }

  /** True when no request is with the server any more, false when one still is after `mostMs`. */
  async drained(mostMs: number | null = null): Promise<boolean> {
    if (this.#inside === 0) return true;
    return new Promise<boolean>((resolve) => {
      const done = () => {
        if (timer !== null) clearTimeout(timer);
        resolve(true);
      };
      const giveUp = () => {
        this.#drained.delete(done);
        resolve(false);
      };
      const timer = mostMs === null ? null : setTimeout(giveUp, mostMs);
      this.#drained.add(done);
    });
  }
}

/** The promise, or the signal's reason as soon as that is there. */
export function untilAborted<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (!signal) return promise;
  return new Promise<T>((resolve, reject) => {
    const onAbort = () => reject(reasonOf(signal));
    if (signal.aborted) onAbort();
    signal.addEventListener('abort', onAbort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort));
  });
}
