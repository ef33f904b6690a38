/** Small questions (text to ids, templates, vectors) that any server can answer, also while generations are held. */
import type { InferenceBackend } from '../backend';
import type { Dispatcher } from './dispatcher';
import { isRepeatable, wasReached } from './failures';
import type { Replica } from './replica';

const TRIES = 4;

export class AnyServer {
  readonly #replicas: readonly Replica[];
  readonly #dispatcher: Dispatcher;
  readonly #waiting = new Set<() => void>();
  #closed: Error | null = null;

  constructor(replicas: readonly Replica[], dispatcher: Dispatcher) {
    this.#replicas = replicas;
    this.#dispatcher = dispatcher;
  }

  /** Waits while no server answers; then asks the least busy, and another when that breaks down under it. */
  async ask<T>(work: (server: InferenceBackend, signal: AbortSignal) => Promise<T>, signal?: AbortSignal): Promise<T> {
    for (let tries = 0; ; ) {
      const replica = await this.#serving(signal);
      try {
        return await replica.run(work, signal);
      } catch (error) {
        if (signal?.aborted) throw error;
        replica.noteError(error);
        if (!isRepeatable(error)) throw error;
        replica.doubt(error);
        if (wasReached(error) && ++tries === TRIES) throw error;
      }
    }
  }

  changed(): void {
    if (this.#closed || this.#replicas.some((replica) => replica.serving)) for (const wake of this.#waiting) wake();
  }

  close(reason: Error): void {
    this.#closed = reason;
    this.changed();
  }

  async #serving(signal: AbortSignal | undefined): Promise<Replica> {
    for (;;) {
      if (this.#closed) throw this.#closed;
      signal?.throwIfAborted();
      const load = (replica: Replica) => this.#dispatcher.loadOf(replica).inFlight;
      const [best] = this.#replicas
        .filter((replica) => replica.serving)
        .sort((a, b) => Number(a.updating) - Number(b.updating) || load(a) - load(b));
      if (best) return best;
      await new Promise<void>((resolve) => {
        const wake = () => {
          this.#waiting.delete(wake);
          signal?.removeEventListener('abort', wake);
          resolve();
        };
        this.#waiting.add(wake);
        signal?.addEventListener('abort', wake, { once: true });
      });
    }
  }
}
