/**
 * Whether the backend is paused, and its servers with it: requests are held back here, and a server that can be paused is,
 * so that nothing else reaches its weights either. A server that comes while the backend is paused is paused before it
 * is let in; one that could not be resumed is resumed when it comes back.
 */
import { Cancelled, Conflict } from '../../core/errors';
import { untilAborted } from '../remote/serving-gate';
import { isRepeatable } from './failures';
import type { OpenServer } from './open-server';
import type { Replica } from './replica';

export interface FleetPauseOptions {
  backend: string;
  replicas: readonly Replica[];
  /** It was paused before this process had it open. */
  paused: boolean;
  /** Settles when nothing is in flight. */
  idle(): Promise<void>;
  changed(): void;
}

interface UnderWay {
  giveUp: AbortController;
  over: Promise<unknown>;
}

export class FleetPause {
  readonly #options: FleetPauseOptions;
  readonly #underWay = new Set<UnderWay>();
  #paused: boolean;

  constructor(options: FleetPauseOptions) {
    this.#options = options;
    this.#paused = options.paused;
  }

  get paused(): boolean {
    return this.#paused;
  }

  /** Resolves when nothing runs any more. Where that fails the backend goes on as before. Cancelled: it was resumed meanwhile. */
  async pause(): Promise<void> {
    const giveUp = new AbortController();
    const pausing = this.#pause(giveUp.signal);
    const one = { giveUp, over: pausing.catch(() => undefined) };
    this.#underWay.add(one);
    try {
      await pausing;
    } finally {
      this.#underWay.delete(one);
    }
  }

  /**
   * Tells every server, whatever is known of it here. One that cannot be told is out until it can; the others go on
   * without it. Throws when none could be told, or one is busy with new weights: then the backend stays paused.
   */
  async resume(): Promise<void> {
    const { backend, replicas, changed } = this.#options;
    const resumed = new Cancelled(`The backend ${backend} was resumed before it had come to rest.`);
    for (const { giveUp } of this.#underWay) giveUp.abort(resumed);
    await Promise.all([...this.#underWay].map(({ over }) => over));
    const serving = replicas.filter((replica) => replica.serving);
    const failed = new Map<Replica, unknown>();
    await Promise.all(
      replicas.map(async (replica) => {
        try {
          await replica.server?.resume();
        } catch (error) {
          replica.noteError(error);
          failed.set(replica, error);
        }
      }),
    );
    const busy = [...failed.values()].find((error) => error instanceof Conflict);
    if (busy) throw busy;
    const [first] = serving.filter((replica) => failed.has(replica));
    const none = first !== undefined && serving.every((replica) => failed.has(replica));
    this.#paused = none;
    for (const [replica, error] of failed) replica.doubt(error);
    changed();
    if (none) throw failed.get(first);
    // What was held back for another reason may be let in now.
    for (const replica of replicas) replica.askNow();
  }

  /** Of a server that is about to be let in: each call brings it to what the backend is then. */
  follow(server: OpenServer): () => Promise<void> {
    // It may have been started again since it was paused.
    let rests = false;
    return async () => {
      while (this.#paused ? !rests : server.paused) {
        rests = this.#paused;
        if (this.#paused) await server.pause();
        else await server.resume();
      }
    };
  }

  async #pause(signal: AbortSignal): Promise<void> {
    const { replicas, idle, changed } = this.#options;
    const before = this.#paused;
    this.#paused = true;
    changed();
    const resting = replicas.map(async (replica) => {
      try {
        if (replica.serving) await replica.server?.pause(signal);
      } catch (error) {
        // One that broke down is brought to rest when it comes back.
        if (signal.aborted || !isRepeatable(error)) throw error;
        replica.doubt(error);
      }
    });
    try {
      await untilAborted(Promise.all([...resting, idle()]), signal);
    } catch (error) {
      await Promise.allSettled(resting);
      if (!signal.aborted && !before) await this.#goOn();
      throw error;
    }
  }

  async #goOn(): Promise<void> {
    await Promise.allSettled(
      this.#options.replicas.map(({ server }) => (server?.paused ? server.resume() : undefined)),
    );
    this.#paused = false;
    this.#options.changed();
  }
}
