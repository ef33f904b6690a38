/**
 * Sends requests to replicas as fast as these take them, and again when a server fails under them. A request ends in
 * one of four ways: its answer, its own signal, a failure that another try would meet again, or too many tries.
 */
import type { Ambient } from '../../core/ambient';
import { Cancelled, isStudioError, type Unavailable } from '../../core/errors';
import type { InferenceBackend } from '../backend';
import { backOff, isRefusal, isRepeatable, retold, sentenceOf, wasReached } from './failures';
import { Place, type PlacedItem, Placement, type PlacementOptions } from './placement';
import type { Replica } from './replica';

export interface Task<T> {
  /** Whose request it is: keys take turns. */
  key: string;
  /** Whether all requests of the key go to one replica. */
  keepsTogether: boolean;
  /** Prompt and the most it may sample. */
  tokens: number;
  signal?: AbortSignal;
  /** Done afresh with each try: nothing of a failed one is used. */
  work(backend: InferenceBackend, signal: AbortSignal): Promise<T>;
}

interface Job extends PlacedItem {
  readonly task: Task<unknown>;
  /** Tries that got to a server and broke there. */
  failures: number;
  settled: boolean;
  pause: NodeJS.Timeout | null;
  resolve(value: unknown): void;
  reject(error: unknown): void;
}

export interface DispatcherOptions {
  backend: string;
  ambient: Ambient;
  placement?: PlacementOptions;
  /** Further tries of one request after the first. Default 3. */
  retries?: number;
  /** Before the first of them; doubled with each. Default 500. */
  retryPauseMs?: number;
}

const LONGEST_PAUSE_MS = 10_000;
const RAISES_A_ROUND = 4;

export class Dispatcher {
  readonly #options: DispatcherOptions;
  readonly #places: ReadonlyMap<Replica, Place<Job>>;
  readonly #byPlace: ReadonlyMap<Place<Job>, Replica>;
  readonly #placement: Placement<Job>;
  readonly #jobs = new Set<Job>();
  readonly #idle: (() => void)[] = [];
  /** Of answers since a limit was last raised. */
  readonly #answers = new Map<Place<Job>, number>();
  #closed: Unavailable | null = null;

  constructor(replicas: readonly Replica[], options: DispatcherOptions) {
    this.#options = options;
    this.#places = new Map(replicas.map((replica) => [replica, new Place<Job>()]));
    this.#byPlace = new Map([...this.#places].map(([replica, place]) => [place, replica]));
    this.#placement = new Placement([...this.#places.values()], options.placement);
  }

  get waiting(): number {
    return this.#placement.waiting;
  }

  loadOf(replica: Replica): { inFlight: number; tokensInFlight: number } {
    const { inFlight = 0, tokensInFlight = 0 } = this.#places.get(replica) ?? {};
    return { inFlight, tokensInFlight };
  }

  submit<T>(task: Task<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      if (this.#closed) return reject(this.#closed);
      const { signal, key, tokens, keepsTogether } = task;
      if (signal?.aborted) return reject(reasonOf(signal));
      const settle = () => {
        job.settled = true;
        signal?.removeEventListener('abort', onAbort);
        this.#jobs.delete(job);
      };
      const job: Job = {
        task,
        key,
        tokens,
        keepsTogether,
        avoid: null,
        stamp: 0,
        arrival: 0,
        failures: 0,
        settled: false,
        pause: null,
        resolve(value) {
          settle();
          resolve(value as T);
        },
        reject(error) {
          settle();
          reject(error);
        },
      };
      // What is in flight is stopped by the same signal; its place is free when the backend has let go of it.
      const onAbort = () => this.#giveUp(job, reasonOf(signal as AbortSignal));
      signal?.addEventListener('abort', onAbort, { once: true });
      this.#jobs.add(job);
      this.#placement.add(job);
      this.#send();
    });
  }

  /** Replicas have come, gone or changed; who waits may go now. */
  changed(
    settings: (replica: Replica) => { usable: boolean; newest: boolean; maxInFlight: number; maxTokens: number },
  ): void {
    for (const [replica, place] of this.#places) {
      const { maxInFlight } = place;
      Object.assign(place, settings(replica));
      if (place.maxInFlight !== maxInFlight) place.limit = place.maxInFlight;
    }
    this.#placement.placesChanged();
    this.#send();
  }

  /** Settles when nothing is in flight. */
  idle(): Promise<void> {
    if (this.#inFlight() === 0) return Promise.resolve();
    return new Promise((settle) => this.#idle.push(settle));
  }

  close(reason: Unavailable): void {
    this.#closed = reason;
    for (const job of [...this.#jobs]) this.#giveUp(job, reason);
  }

  #giveUp(job: Job, reason: unknown): void {
    if (job.settled) return;
    if (job.pause) clearTimeout(job.pause);
    else if (this.#placement.remove(job)) this.#send();
    job.reject(reason);
  }

  #send(): void {
    for (let next = this.#placement.next(); next; next = this.#placement.next()) {
      const replica = this.#byPlace.get(next.place);
      if (replica) void this.#fly(next.item, next.place, replica);
    }
  }

  async #fly(job: Job, place: Place<Job>, replica: Replica): Promise<void> {
    try {
      const value = await replica.run(job.task.work, job.task.signal);
      this.#placement.leave(job, place);
      this.#growLimit(place);
      if (!job.settled) job.resolve(value);
    } catch (error) {
      this.#placement.leave(job, place);
      if (!job.settled) this.#failed(job, place, replica, error);
    }
    this.#send();
    if (this.#idle.length > 0 && this.#inFlight() === 0) for (const settle of this.#idle.splice(0)) settle();
  }

  #failed(job: Job, place: Place<Job>, replica: Replica, error: unknown): void {
    replica.noteError(error);
    if (!isRepeatable(error)) job.reject(error);
    else if (isRefusal(error) && place.inFlight > 0) {
      // It serves others: one too many for it now, and no fault of this request.
      place.limit = place.inFlight;
      this.#answers.set(place, 0);
      this.#placement.addAgain(job, place);
      void replica.look();
    } else {
      replica.doubt(error);
      // What is only refused harmed nobody and waits, as long as it takes, for the server to take requests again.
      if (wasReached(error) && !isRefusal(error)) this.#tryAgain(job, place, error);
      else this.#placement.addAgain(job, place);
    }
  }

  #tryAgain(job: Job, place: Place<Job>, error: Unavailable): void {
    const { retries = 3, retryPauseMs = 500, ambient } = this.#options;
    job.failures += 1;
    if (job.failures > retries) {
      job.reject(retold(error, `${sentenceOf(error)} The request was tried ${job.failures} times.`));
      return;
    }
    const pause = backOff(job.failures - 1, retryPauseMs, LONGEST_PAUSE_MS, ambient.random);
    job.pause = setTimeout(() => {
      job.pause = null;
      this.#placement.addAgain(job, place);
      this.#send();
    }, pause);
  }

  /** A server that refused some is given a few more after each round that went well. */
  #growLimit(place: Place<Job>): void {
    if (place.limit >= place.maxInFlight) return;
    const answers = (this.#answers.get(place) ?? 0) + 1;
    const enough = answers * RAISES_A_ROUND >= place.limit;
    this.#answers.set(place, enough ? 0 : answers);
    if (enough) place.limit += 1;
  }

  #inFlight(): number {
    return this.#placement.places.reduce((sum, place) => sum + place.inFlight, 0);
  }
}

function reasonOf(signal: AbortSignal): unknown {
  return isStudioError(signal.reason) ? signal.reason : new Cancelled('The request was stopped.');
}
