/**
 * One server of a backend: whether it can be used now, why not, and how it comes back. A request that failed, or a look
 * at it now and then, raises a doubt; then it is asked what it is, at once and later with growing pauses, until it is
 * well and what it should be.
 */
import type { Ambient } from '../../core/ambient';
import { Unavailable } from '../../core/errors';
import type { Logger } from '../../observability/logger';
import type { BackendCapabilities, InferenceBackend } from '../backend';
import type { MetricNames } from '../remote/protocol';
import { backOff, sentenceOf, within } from './failures';
import { OpenServer } from './open-server';

export interface ReplicaSource {
  url: string;
  /** Asks the server what it is. Throws from the error family while it does not answer. */
  open(): Promise<InferenceBackend>;
  /** Its own figures; absent where it has none. */
  metrics?: { names: MetricNames; read(): Promise<string>; close(): Promise<void> };
}

export interface ReplicaTimes {
  /** Between two looks at a server that serves. */
  lookMs: number;
  /** A server that has not said for that long whether it is well is not. */
  answerMs: number;
  /** What is under way for that long with a server that is not well is given up and sent elsewhere. */
  hungMs: number;
  firstPauseMs: number;
  longestPauseMs: number;
}

export const REPLICA_TIMES: ReplicaTimes = {
  lookMs: 15_000,
  answerMs: 10_000,
  hungMs: 30_000,
  firstPauseMs: 1000,
  longestPauseMs: 30_000,
};

export interface ReplicaOptions {
  backend: string;
  source: ReplicaSource;
  ambient: Ambient;
  logger: Logger;
  times: ReplicaTimes;
  /** Decides on a server that is well before it is let in, and brings it the weights it missed. Throws why it is left out. */
  admit(replica: Replica, found: Found): Promise<void>;
  /** Whether it can be used has changed, or why not. */
  changed(): void;
}

/** A server as it says it is. */
export interface Found {
  server: OpenServer;
  capabilities: BackendCapabilities;
  version: string;
}

/** As many doubts as make the pauses as long as they become. */
const LASTING = 30;

export class Replica {
  readonly url: string;
  readonly metrics: ReplicaSource['metrics'];
  /** Of the server as it was let in last; null before that. */
  capabilities: BackendCapabilities | null = null;
  version: string | null = null;
  /** New weights are being brought to it. */
  updating = false;
  /** Label of the weights that it could not take. */
  refusedVersion: string | null = null;
  errors = 0;
  lastError: string | null = null;
  /** Settles when the server was asked for the first time, whatever it said. */
  readonly tried: Promise<void>;
  readonly #options: ReplicaOptions;
  #server: OpenServer | null = null;
  #serving = false;
  #reason: string | null = 'It has not been asked yet.';
  #connecting = false;
  /** Doubts in a row without a request that went well between. */
  #relapses = 0;
  #looking = false;
  #lookTimer: NodeJS.Timeout | null = null;
  #wake: (() => void) | null = null;
  #closed = false;

  constructor(options: ReplicaOptions) {
    this.#options = options;
    this.url = options.source.url;
    this.metrics = options.source.metrics;
    this.tried = new Promise((settle) => void this.#connect(settle));
  }

  /** It is well and what it should be; it may still be paused or being updated. */
  get serving(): boolean {
    return this.#serving;
  }

  /** Why it is not serving, as a sentence. */
  get reason(): string | null {
    return this.#reason;
  }

  /** Whether it serves or not; null before it answered for the first time. */
  get server(): OpenServer | null {
    return this.#server;
  }

  async run<T>(
    work: (backend: InferenceBackend, signal: AbortSignal) => Promise<T>,
    signal: AbortSignal | undefined,
  ): Promise<T> {
    if (!this.#server || !this.#serving)
      throw new Unavailable(`${this.url}: ${this.#reason}`, { retry: true, reached: false });
    const value = await this.#server.run(work, signal);
    this.#relapses = 0;
    return value;
  }

  noteError(error: unknown): void {
    this.errors += 1;
    this.lastError = sentenceOf(error);
  }

  /** It is in trouble, or not what it was: nothing goes there until it has been asked. */
  doubt(reason: unknown): void {
    if (!this.#serving) return;
    this.#leave(sentenceOf(reason));
    void this.#connect();
  }

  /** It lives, and must not be used before it is what it should be: asked again at the longest pauses. */
  takeOut(reason: string): void {
    if (!this.#serving) return;
    this.#relapses = LASTING;
    this.doubt(new Unavailable(reason));
  }

  /** Whether it is still well and what it was is looked at now. */
  async look(): Promise<void> {
    const { version, capabilities } = this;
    if (!this.#serving || this.updating || this.#looking || this.#server?.paused) return;
    this.#looking = true;
    try {
      const found = await this.#ask();
      if (this.updating || version !== this.version) return;
      const elsewhere = await found.server.backend.pausedElsewhere?.();
      if (elsewhere) this.doubt(elsewhere);
      else if (found.version !== version) this.doubt(`It says that it serves ${found.version}; it was ${version}.`);
      else if (found.capabilities.modelName !== capabilities?.modelName) this.doubt('It serves another model.');
      else if (found.capabilities.contextLength < capabilities.contextLength) this.doubt('Its context is smaller.');
    } catch (error) {
      this.doubt(error);
    } finally {
      this.#looking = false;
    }
  }

  /** Does not wait for the end of the pause. */
  askNow(): void {
    this.#wake?.();
  }

  async close(): Promise<void> {
    this.#closed = true;
    if (this.#lookTimer) clearTimeout(this.#lookTimer);
    this.#wake?.();
    this.#leave('It is closed.');
    await Promise.all([
      this.#server?.close(new Unavailable(`The backend ${this.#options.backend} is closed.`)),
      this.metrics?.close().catch(() => undefined),
    ]);
  }

  #leave(reason: string): void {
    const changed = this.#serving || this.#reason !== reason;
    this.#serving = false;
    this.#reason = reason;
    if (changed) this.#options.changed();
  }

  async #connect(tried?: () => void): Promise<void> {
    if (this.#connecting) return;
    this.#connecting = true;
    const { ambient, logger, times, backend, admit } = this.#options;
    for (let attempt = this.#relapses++; !this.#closed; attempt++) {
      if (attempt > 0) await this.#rest(backOff(attempt - 1, times.firstPauseMs, times.longestPauseMs, ambient.random));
      if (this.#closed) break;
      try {
        const found = await this.#ask();
        await admit(this, found);
        break;
      } catch (error) {
        const reason = sentenceOf(error);
        if (reason !== this.#reason)
          logger.warn({ backend, url: this.url, reason }, 'An inference server cannot be used.');
        this.#giveUpHanging(reason);
        this.#leave(reason);
      }
      tried?.();
    }
    this.#connecting = false;
    if (!this.#closed) {
      logger.info({ backend, url: this.url, version: this.version }, 'An inference server serves.');
      this.#serving = true;
      this.#reason = null;
      this.#lookLater();
      this.#options.changed();
    }
    tried?.();
  }

  /** Throws why it cannot be used. */
  async #ask(): Promise<Found> {
    const { source, times, ambient } = this.#options;
    const silence = `The server ${this.url} of the backend ${this.#options.backend} did not answer whether it is well`;
    if (!this.#server) {
      const opened = await within(source.open(), times.answerMs, silence, (late) => void late.close());
      if (this.#closed) {
        await opened.close();
        throw new Unavailable(`The backend ${this.#options.backend} is closed.`);
      }
      this.#server = new OpenServer(opened, ambient.now);
    }
    const server = this.#server;
    const { backend } = server;
    const health = await within(backend.health(), times.answerMs, silence);
    if (!health.ok) throw new Unavailable(health.message, { retry: true });
    const asked = Promise.all([backend.capabilities(), backend.weightVersion()]);
    const [capabilities, version] = await within(asked, times.answerMs, silence);
    const held = server.paused ? null : (backend.trouble?.() ?? null);
    if (held !== null) throw new Unavailable(held);
    return { server, capabilities, version };
  }

  #giveUpHanging(reason: string): void {
    const { hungMs } = this.#options.times;
    const says = `The server ${this.url} has not answered a request for more than ${hungMs / 1000} s, and is not well: ${reason}`;
    this.#server?.giveUpOlderThan(hungMs, new Unavailable(says, { retry: true, reached: true }));
  }

  #lookLater(): void {
    if (this.#lookTimer) clearTimeout(this.#lookTimer);
    this.#lookTimer = setTimeout(() => {
      void this.look().finally(() => {
        if (this.#serving) this.#lookLater();
      });
    }, this.#options.times.lookMs);
    this.#lookTimer.unref();
  }

  #rest(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      timer.unref();
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}
