/** Adds up the time in which nothing could be served. */
export class StoppedClock {
  readonly #now: () => number;
  #totalMs = 0;
  #sinceMs: number | null = null;

  constructor(now: () => number) {
    this.#now = now;
  }

  set(stopped: boolean): void {
    if (stopped === (this.#sinceMs !== null)) return;
    if (this.#sinceMs !== null) this.#totalMs += this.#now() - this.#sinceMs;
    this.#sinceMs = stopped ? this.#now() : null;
  }

  totalMs(): number {
    return this.#totalMs + (this.#sinceMs === null ? 0 : this.#now() - this.#sinceMs);
  }
}
