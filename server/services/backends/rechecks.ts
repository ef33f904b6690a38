/** Checks backends again whose servers were started anew: one check of a backend at a time, whoever asks how often. */
import { Conflict, isStudioError } from '../../core/errors';
import type { Logger } from '../../observability/logger';

const LATER_MS = 60_000;

export class Rechecks {
  readonly #running = new Set<string>();
  readonly #stopping = new AbortController();

  /** @param laterMs until one is tried again that could not be checked as it is (it is paused) */
  constructor(
    private readonly check: (name: string, signal: AbortSignal) => Promise<unknown>,
    private readonly logger: Logger,
    private readonly laterMs = LATER_MS,
  ) {}

  /** Returns at once. What cannot be checked now (its server went away again) is asked for again by its next start. */
  request(name: string): void {
    const { signal } = this.#stopping;
    if (signal.aborted || this.#running.has(name)) return;
    this.#running.add(name);
    this.check(name, signal)
      .catch((error) => {
        if (signal.aborted) return;
        const reason = isStudioError(error) ? { reason: error.message } : { err: error };
        this.logger.warn({ backend: name, ...reason }, 'a backend could not be checked again');
        if (error instanceof Conflict) setTimeout(() => this.request(name), this.laterMs).unref();
      })
      .finally(() => this.#running.delete(name));
  }

  /** The studio ends: it waits for no check, and what one stumbles over from now on is nobody's news. */
  stop(): void {
    this.#stopping.abort();
  }
}
