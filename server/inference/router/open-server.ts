/** A backend that is open on one server, and what is under way with it. */
import type { InferenceBackend } from '../backend';

interface Flight {
  startedMs: number;
  /** Gives it up for whoever waits, whether the backend listens or not. */
  giveUp(error: Error): void;
}

export class OpenServer {
  readonly backend: InferenceBackend;
  #paused = false;
  #turn: Promise<unknown> = Promise.resolve();
  readonly #flights = new Set<Flight>();
  readonly #now: () => number;

  constructor(backend: InferenceBackend, now: () => number) {
    this.backend = backend;
    this.#now = now;
  }

  /** The server itself was paused by us, or may be: a pause that had no answer counts. */
  get paused(): boolean {
    return this.#paused;
  }

  /** Where it can be. One pause or resumption after the other, whoever asks. */
  pause(signal?: AbortSignal): Promise<void> {
    return this.#inTurn(async () => {
      signal?.throwIfAborted();
      if (!this.backend.pause || !(await this.backend.capabilities()).canPause) return;
      this.#paused = true;
      await this.backend.pause(signal);
    });
  }

  /** Also where nothing is known of a pause. */
  resume(): Promise<void> {
    return this.#inTurn(async () => {
      await this.backend.resume?.();
      this.#paused = false;
    });
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
        this.#flights.delete(flight);
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

  #inTurn(work: () => Promise<void>): Promise<void> {
    const done = this.#turn.then(work);
    this.#turn = done.catch(() => undefined);
    return done;
  }

  /** Gives up what has been under way for at least `ms`. */
  giveUpOlderThan(ms: number, error: Error): void {
    const now = this.#now();
    for (const flight of [...this.#flights]) if (now - flight.startedMs >= ms) flight.giveUp(error);
  }

  /** Gives up all that is under way. */
  async close(reason: Error): Promise<void> {
    this.giveUpOlderThan(0, reason);
    await this.backend.close().catch(() => undefined);
  }
}
