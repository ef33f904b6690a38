/**
 * One server of a backend: whether it can be used now, why not, and how it comes back. A request that failed raises a
 * doubt; then the server is asked anew what it is, at once and later with growing pauses, until it answers for good.
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
  /** A server that has not said what it is for that long is down. */
  answerMs: number;
  /** After that long without an answer to a request the server's health is asked. */
  hungMs: number;
  firstPauseMs: number;
  longestPauseMs: number;
}

export const REPLICA_TIMES: ReplicaTimes = {
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
  /** Looks at a server that answers before it is let in; brings it the weights it missed. Throws why it may not be used. */
  admit(
    replica: Replica,
    backend: InferenceBackend,
    capabilities: BackendCapabilities,
    version: string,
  ): Promise<string>;
  /** Whether it can be used has changed, or why not. */
  changed(): void;
}

export class Replica {
  readonly url: string;
  readonly metrics: ReplicaSource['metrics'];
  /** Of the server as it was last seen; null before it answered for the first time. */
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
  #hungTimer: NodeJS.Timeout | null = null;
  #asking = false;
  #wake: (() => void) | null = null;
  #closed = false;

  constructor(options: ReplicaOptions) {
    this.#options = options;
    this.url = options.source.url;
    this.metrics = options.source.metrics;
    this.tried = new Promise((settle) => void this.#connect(settle));
  }

  /** It answers and is what it should be; it may still be paused or being updated. */
  get serving(): boolean {
    return this.#serving;
  }

  /** Why it is not serving, as a sentence. */
  get reason(): string | null {
    return this.#reason;
  }

  get server(): OpenServer | null {
    return this.#serving ? this.#server : null;
  }

  async run<T>(
    work: (backend: InferenceBackend, signal: AbortSignal) => Promise<T>,
    signal: AbortSignal | undefined,
  ): Promise<T> {
    const server = this.server;
    if (!server) throw new Unavailable(`${this.url}: ${this.#reason}`, { retry: true, reached: false });
    this.#watchForHanging();
    const value = await server.run(work, signal);
    this.#relapses = 0;
    return value;
  }

  noteError(error: unknown): void {
    this.errors += 1;
    this.lastError = sentenceOf(error);
  }

  /**
   * It failed in a way that says that the server is in trouble: nothing goes there until it has been asked what it is.
   * @param from the opening of the server that the failure came from; one before the present says nothing of this one
   */
  doubt(error: unknown, from: OpenServer | null): void {
    if (!this.#serving || from !== this.#server) return;
    this.#leave(sentenceOf(error));
    void this.#connect();
  }

  /** It lives, and must not be used before it is what it should be: asked again at the longest pauses. */
  takeOut(reason: string): void {
    this.#leave(reason);
    this.#relapses = 30;
    void this.#connect();
  }

  /** False, and it is down, when it does not say in time that it is well. */
  async askHealth(): Promise<boolean> {
    const server = this.server;
    if (!server || this.#asking) return true;
    this.#asking = true;
    try {
      const { ok, message } = await within(server.backend.health(), this.#options.times.answerMs, this.#silence());
      if (ok) return true;
      this.#down(server, message);
    } catch (error) {
      this.#down(server, sentenceOf(error));
    } finally {
      this.#asking = false;
    }
    return false;
  }

  async close(): Promise<void> {
    this.#closed = true;
    if (this.#hungTimer) clearTimeout(this.#hungTimer);
    this.#hungTimer = null;
    this.#wake?.();
    const server = this.#server;
    this.#server = null;
    this.#leave('It is closed.');
    server?.giveUpOlderThan(0, new Unavailable(`The backend ${this.#options.backend} is closed.`));
    await Promise.all([server?.retire(), this.metrics?.close().catch(() => undefined)]);
  }

  #leave(reason: string): void {
    const changed = this.#serving || this.#reason !== reason;
    this.#serving = false;
    this.#reason = reason;
    if (changed) this.#options.changed();
  }

  #down(server: OpenServer, reason: string): void {
    if (this.#server !== server || this.#closed) return;
    this.#giveUpHanging(reason);
    this.doubt(new Unavailable(reason), server);
  }

  #giveUpHanging(reason: string): void {
    const says = `${this.url} has not answered for more than ${this.#options.times.hungMs / 1000} s and is not well: ${reason}`;
    this.#server?.giveUpOlderThan(this.#options.times.hungMs, new Unavailable(says, { retry: true, reached: true }));
  }

  async #connect(tried?: () => void): Promise<void> {
    if (this.#connecting) return;
    this.#connecting = true;
    const { ambient, logger, times, backend } = this.#options;
    for (let attempt = this.#relapses++; !this.#closed; attempt++) {
      if (attempt > 0) await this.#rest(backOff(attempt - 1, times.firstPauseMs, times.longestPauseMs, ambient.random));
      if (this.#closed) break;
      try {
        await this.#open();
        logger.info({ backend, url: this.url, version: this.version }, 'An inference server serves.');
        break;
      } catch (error) {
        const reason = sentenceOf(error);
        if (reason !== this.#reason || attempt === 0)
          logger.warn({ backend, url: this.url, reason }, 'An inference server cannot be used.');
        this.#giveUpHanging(reason);
        this.#leave(reason);
      }
      tried?.();
    }
    this.#connecting = false;
    tried?.();
    this.#options.changed();
  }

  /** Opened anew each time: a server that was away may have come back as another. */
  async #open(): Promise<void> {
    const { source, times, ambient, admit } = this.#options;
    const silence = this.#silence();
    const backend = await within(source.open(), times.answerMs, silence, (late) => void late.close());
    try {
      const asked = Promise.all([backend.health(), backend.capabilities(), backend.weightVersion()]);
      const [health, capabilities, version] = await within(asked, times.answerMs, silence);
      if (!health.ok) throw new Unavailable(health.message, { retry: true });
      this.version = await admit(this, backend, capabilities, version);
      if (this.#closed) throw new Unavailable(`The backend ${this.#options.backend} is closed.`);
      this.capabilities = capabilities;
    } catch (error) {
      await backend.close().catch(() => undefined);
      throw error;
    }
    void this.#server?.retire();
    this.#server = new OpenServer(backend, ambient.now);
    this.#serving = true;
    this.#reason = null;
  }

  #silence(): string {
    return `The server ${this.url} of the backend ${this.#options.backend} did not answer`;
  }

  #watchForHanging(): void {
    if (this.#hungTimer || this.#closed) return;
    const look = async (): Promise<void> => {
      const server = this.#server;
      if (server && !this.updating && server.oldestMs() >= this.#options.times.hungMs) await this.askHealth();
      this.#hungTimer = null;
      if (this.#server?.underWay) this.#watchForHanging();
    };
    this.#hungTimer = setTimeout(() => void look(), this.#options.times.hungMs);
    this.#hungTimer.unref();
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
