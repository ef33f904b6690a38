/** A backend that is open on one server, and what is under way with it. Closed when the last of that has ended. */
import type { InferenceBackend } from '../backend';

interface Flight {
  startedMs: number;
  /** Gives it up for whoever waits, whether the backend listens or not. */
  giveUp(error: Error): void;
}

export class OpenServer {
  readonly backend: InferenceBackend;
  /** The server itself was paused by us. */
  paused = false;
  readonly #flights = new Set<Flight>();
  readonly #now: () => number;
  #retired: { promise: Promise<void>; closed(): void } | null = null;

  constructor(backend: InferenceBackend, now: () => number) {
    this.backend = backend;
    this.#now = now;
  }

  get underWay(): number {
    return this.#flights.size;
  }

  /** Rejects with what the backend says, or with the reason for which it was given up. */
  run<T>(
    work: (backend: InferenceBackend, signal: AbortSignal) => Promise<T>,
    signal: AbortSignal | undefined,
  ): Promise<T> {
    return new Promise((resolve, reject) => {
      const controller = new AbortController();
      const onAbort = () => controller.abort(signal?.reason);
      const end = () => {
        signal?.removeEventListener('abort', onAbort);
        if (this.#flights.delete(flight)) this.#closeWhenIdle();
      };
      const flight: Flight = {
        startedMs: this.#now(),
        giveUp: (error) => {
          end();
          reject(error);
          controller.abort(error);
        },
      };
      this.#flights.add(flight);
      signal?.addEventListener('abort', onAbort, { once: true });
      work(this.backend, controller.signal).then(resolve, reject).finally(end);
    });
  }

  /** Milliseconds the oldest has been under way; 0 when there is none. */
  oldestMs(): number {
    // In the order in which they began.
    const oldest = this.#flights.values().next();
    return oldest.done ? 0 : this.#now() - oldest.value.startedMs;
  }

  /** Gives up what has been under way for at least `ms`. */
  giveUpOlderThan(ms: number, error: Error): void {
    const now = this.#now();
    for (const flight of [...this.#flights]) if (now - flight.startedMs >= ms) flight.giveUp(error);
  }

  /** Takes nothing new. Settles when what is under way has ended and the backend is closed. */
  retire(): Promise<void> {
    if (!this.#retired) {
      let closed = () => {};
      const promise = new Promise<void>((settle) => {
        closed = settle;
      });
      this.#retired = { promise, closed };
      this.#closeWhenIdle();
    }
    return this.#retired.promise;
  }

  #closeWhenIdle(): void {
    const retired = this.#retired;
    if (!retired || this.#flights.size > 0) return;
    void this.backend
      .close()
      .catch(() => undefined)
      .then(retired.closed);
  }
}
