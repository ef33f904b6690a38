/**
 * New weights on one server, in order: hold requests back, pause, load, empty the prefix cache, stamp the version, make
 * sure of it, go on. What fails before the new weights are in leaves the old ones serving; what fails after that leaves
 * the server paused, since nobody could say which weights and which cache an answer came from.
 */
import { Conflict, Invalid, isStudioError, Unavailable } from '../../core/errors';
import type { Logger } from '../../observability/logger';
import type { UnfinishedUpdate, WeightUpdate } from '../backend';
import type { KnownServer } from './known-server';
import type { WeightRoutes } from './protocol';
import { RememberedLabel, type StoredLabels } from './remembered-label';
import { behindName } from './server-name';
import { ended, fitName } from './server-words';
import { ServingGate, untilAborted } from './serving-gate';
import { WeightLabel } from './weight-label';

/** Replies that were sent before a pause are read within this time. */
const SETTLE_MS = 2_000;
/** After this time a paused server is taken to hold something back, and goes on for at most that long, so often. */
const HELD_MS = 500;
const CATCH_UP_MS = 5_000;
const MOST_PAUSES = 5;

const OF_SOURCE: Record<WeightUpdate['source']['kind'], string> = {
  checkpoint: 'a checkpoint folder',
  lora: 'a LoRA adapter',
  external: 'weights that a trainer moves',
};

type Step = 'pause' | 'load' | 'flush' | 'stamp';
const NOT_DONE: Record<Step, string> = {
  pause: ': it could not be paused',
  // Its own words say it.
  load: '',
  flush: ': its prefix cache could not be emptied',
  stamp: ': their version could not be stamped',
};

export class WeightControl {
  readonly gate = new ServingGate();
  readonly #known: KnownServer;
  readonly #logger: Logger;
  readonly #label = new WeightLabel(() => this.#ask());
  #weights: WeightRoutes | null;
  readonly #remembered: RememberedLabel;
  #busy: string | null = null;
  /** Who closed the gate for longer than one call. */
  #paused: 'operator' | 'failure' | null = null;

  constructor(server: KnownServer, logger: Logger, stored: StoredLabels | null) {
    this.#remembered = new RememberedLabel(server, stored);
    this.#known = server;
    this.#logger = logger;
    this.#weights = server.protocol.weights(server.facts);
  }

  /** What the server offers now. A server that was started again has its first weights and is not paused. */
  use(weights: WeightRoutes | null, startedAgain: boolean): void {
    this.#weights = weights;
    if (!startedAgain) return;
    this.#remembered.forget();
    if (this.#paused !== 'failure') return;
    this.#paused = null;
    this.gate.open();
  }

  /** Before anybody asks for the label. */
  async open(): Promise<void> {
    if (!this.readsLabel) await this.#remembered.load();
  }

  /** Whether the server is asked for the label; else it cannot change behind our back. */
  get readsLabel(): boolean {
    return this.#weights !== null && this.#weights.keepsLabel !== false;
  }

  /** Read after this call. */
  version(): Promise<string> {
    return this.readsLabel ? this.#label.fresh() : Promise.resolve(this.#remembered.get());
  }

  /** Throws Invalid, Conflict or Unavailable; the sentence says which weights serve, or that the server stays paused. */
  async update(update: WeightUpdate): Promise<void> {
    const { version, inFlight = 'drain' } = update;
    const weights = this.#checked(update);
    await this.#alone(`Its weights are being updated to ${version}`, async () => {
      const old = await this.version();
      // What is cut off here leaves a trace of this start of the server: see #makeSure.
      if (!this.readsLabel) await this.#remembered.begin(version);
      const reason = this.gate.closed;
      this.gate.close(`${this.#known.called} takes the weights ${version}.`);
      let at: Step = 'pause';
      try {
        if (this.#paused === null) await this.#stop(inFlight, update.source.kind !== 'external');
        at = 'load';
        if (update.source.kind !== 'external') await weights.load(this.#known.http, update.source, version);
        at = 'flush';
        await weights.flush(this.#known.http);
        at = 'stamp';
        await this.#stamp(weights, version);
      } catch (error) {
        throw await this.#failed(error, at, update, old, reason);
      }
      this.#logger.info(
        { backend: this.#known.http.backend, url: this.#known.http.url, old, version },
        'New weights serve.',
      );
      if (this.#paused === 'operator') this.gate.close(reason ?? '');
      else await this.#start(`has the weights ${version}, but could not be started with them`);
    });
  }

  /**
   * Requests wait from now on, also at a server that was started again meanwhile. Resolves when those under way have
   * ended; the signal gives it up before that.
   */
  pause(signal?: AbortSignal): Promise<void> {
    return this.#alone('It is being paused', async () => {
      if (this.#paused === 'failure') return;
      this.gate.close(`${this.#known.called} was paused by a person.`);
      try {
        await this.#stop('drain', this.#paused === null, signal);
        this.#paused = 'operator';
      } catch (error) {
        if (this.#paused === null && isAway(error)) this.gate.open();
        else if (this.#paused === null) await this.#start('could not be paused, and not be started again');
        throw error;
      }
    });
  }

  /** Whatever is known here: somebody else may have paused it, or a process that is gone. */
  resume(): Promise<void> {
    return this.#alone('It is being resumed', () => this.#start('could not be resumed'));
  }

  /** After an update whose end nobody saw. What cannot be made sure of leaves the server held back; one that is away does not. */
  settle(unfinished: UnfinishedUpdate): Promise<void> {
    return this.#alone('It is being made sure of what it serves', async () => {
      const weights = this.#weights;
      const cut = `an update to ${unfinished.update.version} that was cut off`;
      if (!weights || this.#paused === 'failure') return;
      const reason = this.gate.closed;
      this.gate.close(`${this.#known.called} is looked at after ${cut}.`);
      try {
        if (this.#paused === null) await this.#stop('drain', false);
        await this.#makeSure(weights, unfinished);
      } catch (error) {
        if (!isAway(error)) throw this.#stayPaused(`cannot be used after ${cut}`, error);
        if (reason === null) this.gate.open();
        else this.gate.close(reason);
        throw error;
      }
      if (this.#paused === 'operator') this.gate.close(reason ?? '');
      else await this.#start(`could not be started again after ${cut}`);
    });
  }

  /** Why requests would wait there, though nothing here holds them back. */
  async pausedElsewhere(): Promise<string | null> {
    if (this.gate.closed !== null || !(await this.#weights?.paused?.(this.#known.http))) return null;
    // It may have been paused from here since it was asked.
    if (this.gate.closed !== null) return null;
    return `${this.#known.called} stands paused, and not by this studio: requests would wait there until it is resumed. Resume the backend when whoever paused it is done.`;
  }

  #checked({ source, version, inFlight }: WeightUpdate): WeightRoutes {
    const weights = this.#weights;
    if (!version.trim()) throw new Invalid(`The new weights for the server need a version: it is empty.`);
    if (!weights?.sources.includes(source.kind)) {
      const offered = (weights?.sources ?? []).map((kind) => OF_SOURCE[kind]).join(' and ');
      throw new Invalid(
        `${this.#known.called} cannot take ${OF_SOURCE[source.kind]} while it serves; ${offered ? `it takes ${offered}` : 'it takes no new weights at all'}.`,
      );
    }
    if (inFlight === 'interrupt' && !weights.canPause)
      throw new Invalid(`${this.#known.called} cannot stop generations and go on with them; update it with drain.`);
    return weights;
  }

  /** One of these at a time. */
  async #alone(what: string, work: () => Promise<void>): Promise<void> {
    if (this.#busy !== null)
      throw new Conflict(`${this.#known.called} is busy: ${this.#busy}. Try again when that is done.`);
    this.#busy = what;
    try {
      await work();
    } finally {
      this.#busy = null;
    }
  }

  /** @param oldServe the old weights are still in: what waits for them in the paused server can have them */
  async #stop(inFlight: 'drain' | 'interrupt', oldServe: boolean, signal?: AbortSignal): Promise<void> {
    const weights = this.#weights;
    if (!weights?.canPause) {
      await untilAborted(this.gate.drained(), signal);
      return;
    }
    await weights.pause(this.#known.http, inFlight, signal);
    for (let pauses = 1; !(await this.gate.drained(oldServe ? HELD_MS : SETTLE_MS)); pauses++) {
      if (!oldServe || pauses >= MOST_PAUSES) return;
      // A request that reaches a paused server waits there: what was sampled last is to be scored by the weights that
      // sampled it, so the server goes on for a moment. New requests are held back here all the while.
      await weights.resume(this.#known.http);
      await this.gate.drained(CATCH_UP_MS);
      await weights.pause(this.#known.http, inFlight, signal);
    }
  }

  async #makeSure(weights: WeightRoutes, unfinished: UnfinishedUpdate): Promise<void> {
    const { source, version } = unfinished.update;
    const label = await this.version();
    // Tensors move without the label, and no folder holds those that were there before.
    if (source.kind === 'external' && this.readsLabel && label !== version)
      throw new Unavailable(
        `nobody can say whether the tensors that a trainer moved for ${version} are in, as its label is still ${label}.`,
      );
    if (!this.readsLabel && (await this.#remembered.wasGiven()))
      throw new Unavailable(`it keeps no label of its weights, and nobody can say whether those of ${version} are in.`);
    await weights.restore?.(this.#known.http, unfinished);
    await weights.flush(this.#known.http);
  }

  async #stamp(weights: WeightRoutes, version: string): Promise<void> {
    await weights.stamp(this.#known.http, version);
    if (weights.keepsLabel === false) {
      await this.#remembered.end(version);
      return;
    }
    const now = await this.#label.fresh();
    if (now !== version)
      throw new Unavailable(
        `${this.#known.called} says that its weights are ${now} after they were stamped ${version}.`,
      );
  }

  async #start(orElse: string): Promise<void> {
    try {
      if (this.#weights?.canPause) await this.#weights.resume(this.#known.http);
    } catch (error) {
      throw this.#stayPaused(orElse, error);
    }
    this.#paused = null;
    this.gate.open();
  }

  /** Leaves things as they can be left, and says how. */
  async #failed(
    error: unknown,
    at: Step,
    { version }: WeightUpdate,
    old: string,
    reason: string | null,
  ): Promise<Error> {
    const what = `did not take the weights ${version}${NOT_DONE[at]}`;
    const oldServe = at === 'pause' || (at === 'load' && loadLeftTheOld(error));
    if (!this.readsLabel)
      await this.#remembered.end(oldServe ? old : null).catch((unkept) => {
        this.#logger.error(
          { backend: this.#known.http.backend, err: unkept },
          'The label of the weights was not kept.',
        );
      });
    if (!oldServe) return this.#stayPaused(what, error);
    let serves = `The weights ${old} go on serving.`;
    if (this.#paused !== null) {
      this.gate.close(reason ?? '');
      serves = `It has the weights ${old} and stays paused as it was.`;
    } else
      try {
        await this.#start(what);
      } catch (unresumed) {
        return unresumed as Error;
      }
    const failure = isStudioError(error) && error.code === 'invalid' ? Invalid : Unavailable;
    const why = this.#said(error);
    const sentence = `${this.#known.called} ${what}: ${why} ${serves}`;
    const told = this.#paused === null && at === 'load' && { why };
    return new failure(sentence, { serving: old, retry: false, ...told }, { cause: error });
  }

  #stayPaused(what: string, error: unknown): Unavailable {
    this.#paused = 'failure';
    const sentence = `${this.#known.called} ${what}: ${this.#said(error)} It stays paused, since it cannot be told what serves; update it again, resume it or start it again.`;
    this.gate.close(sentence);
    this.#logger.error({ backend: this.#known.http.backend, url: this.#known.http.url, err: error }, sentence);
    return new Unavailable(sentence, { serving: null, retry: false }, { cause: error });
  }

  /** Behind words that name the server already. */
  #said(error: unknown): string {
    return ended(behindName(error instanceof Error ? error.message : String(error), this.#known.http));
  }

  async #ask(): Promise<string> {
    if (!this.#weights)
      throw new Unavailable(`${this.#known.called} does not tell the version of its weights any more.`);
    return fitName(this.#known.called, 'weights', await this.#weights.version(this.#known.http));
  }
}

/** It could not be asked now, and may be again. */
function isAway(error: unknown): boolean {
  return isStudioError(error) && error.details.retry === true;
}

/** An answer says so by contract; a call that may have got there and had no answer says nothing. */
function loadLeftTheOld(error: unknown): boolean {
  if (!isStudioError(error)) return false;
  const { weightsUnknown, reached, status } = error.details;
  return weightsUnknown !== true && !(reached === true && status === undefined);
}
