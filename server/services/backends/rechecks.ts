/** Checks backends again whose servers were started anew: one check of a backend at a time, whoever asks how often. */
import { isStudioError } from '../../core/errors';
import type { Logger } from '../../observability/logger';

export class Rechecks {
  readonly #running = new Set<string>();

  constructor(
    private readonly check: (name: string) => Promise<unknown>,
    private readonly logger: Logger,
  ) {}

  /** Returns at once. What cannot be checked now (its server went away again) is asked for again by its next start. */
  request(name: string): void {
    if (this.#running.has(name)) return;
    this.#running.add(name);
    this.check(name)
      .catch((error) => {
        const reason = isStudioError(error) ? { reason: error.message } : { err: error };
        this.logger.warn({ backend: name, ...reason }, 'a backend could not be checked again');
      })
      .finally(() => this.#running.delete(name));
  }
}
