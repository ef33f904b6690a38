/** The sandboxes of one level and kind, and the callers who wait for one. */
import { cpus } from 'node:os';
import { Cancelled, TimedOut, Unavailable } from '../core/errors';
import type { Logger } from '../observability/logger';
import type { LevelSandbox } from './level';
import type { SandboxLease } from './sandbox';

export interface LaneOptions {
  /** For logs and messages: level/kind. */
  name: string;
  /** Most sandboxes alive at a time. */
  size: number;
  /** Kept alive while nobody needs them. */
  warm: number;
  /** How long a caller waits, and how long ago the last start was, before one more sandbox is started beyond those kept warm. */
  growAfterMs: number;
  acquireMs: number;
  /** A sandbox above `warm` that has been idle this long is ended. */
  idleMs: number;
  logger: Logger;
  /** Already started. */
  ready: LevelSandbox[];
  create(): Promise<LevelSandbox>;
}

interface Waiter {
  sinceMs: number;
  give(sandbox: LevelSandbox): void;
  fail(error: Error): void;
}

/** Starting costs processor time that running calls need. */
const STARTS_AT_ONCE = Math.max(1, Math.min(4, cpus().length));
/** After this many starts in a row that failed, callers are told instead of kept waiting. */
const FAILURES_TOLD = 3;

export class Lane {
  readonly #options: LaneOptions;
  readonly #idle: { sandbox: LevelSandbox; sinceMs: number }[] = [];
  readonly #busy = new Set<LevelSandbox>();
  readonly #waiters: Waiter[] = [];
  /** Being started, reset or ended: they take room, but cannot be handed out. */
  #starting = 0;
  #resetting = 0;
  readonly #ending = new Set<Promise<void>>();
  #failures = 0;
  #lastStartMs = Number.NEGATIVE_INFINITY;
  #replaced = 0;
  #closed = false;
  #growTimer: NodeJS.Timeout | null = null;
  #idleTimer: NodeJS.Timeout | null = null;

  constructor(options: LaneOptions) {
    this.#options = options;
    for (const sandbox of options.ready) this.#idle.push({ sandbox, sinceMs: performance.now() });
  }

  stats(): { size: number; busy: number; waiting: number; replaced: number } {
    return { size: this.#alive, busy: this.#busy.size, waiting: this.#waiters.length, replaced: this.#replaced };
  }

  async acquire(signal?: AbortSignal): Promise<SandboxLease> {
    const { name, acquireMs } = this.#options;
    if (this.#closed) throw new Unavailable('The sandboxes are being shut down.');
    if (signal?.aborted) throw new Cancelled('The tool call was cancelled before it had a sandbox.');
    const sandbox = await new Promise<LevelSandbox>((resolve, reject) => {
      const leave = () => {
        clearTimeout(timer);
        signal?.removeEventListener('abort', abort);
        const place = this.#waiters.indexOf(waiter);
        if (place >= 0) this.#waiters.splice(place, 1);
      };
      const waiter: Waiter = {
        sinceMs: performance.now(),
        give: (given) => {
          leave();
          resolve(given);
        },
        fail: (error) => {
          leave();
          reject(error);
        },
      };
      const abort = () => waiter.fail(new Cancelled('The tool call was cancelled while it waited for a sandbox.'));
      const timer = setTimeout(
        () =>
          waiter.fail(new TimedOut(`No ${name} sandbox became free within ${acquireMs / 1000} seconds.`, this.stats())),
        acquireMs,
      );
      signal?.addEventListener('abort', abort, { once: true });
      this.#waiters.push(waiter);
      this.#serve();
    });
    let released: Promise<void> | null = null;
    return {
      sandbox,
      release: () => {
        released ??= this.#takeBack(sandbox);
        return released;
      },
    };
  }

  async close(): Promise<void> {
    this.#closed = true;
    if (this.#growTimer) clearTimeout(this.#growTimer);
    if (this.#idleTimer) clearTimeout(this.#idleTimer);
    for (const waiter of [...this.#waiters]) waiter.fail(new Unavailable('The sandboxes are being shut down.'));
    for (const { sandbox } of this.#idle.splice(0)) this.#end(sandbox);
    for (const sandbox of this.#busy) this.#end(sandbox);
    this.#busy.clear();
    while (this.#starting > 0 || this.#resetting > 0) await new Promise((resolve) => setTimeout(resolve, 10));
    await Promise.all(this.#ending);
  }

  get #alive(): number {
    return this.#idle.length + this.#busy.size + this.#starting + this.#resetting;
  }

  /** Gives what is idle to who waits longest, then looks whether more sandboxes are wanted or fewer. */
  #serve(): void {
    while (this.#waiters.length > 0 && this.#idle.length > 0) {
      // The one used last: its memory is warm, and those at the other end can go.
      const entry = this.#idle.pop() as { sandbox: LevelSandbox };
      if (!entry.sandbox.alive) {
        this.#replaced++;
        this.#end(entry.sandbox);
        continue;
      }
      this.#busy.add(entry.sandbox);
      (this.#waiters[0] as Waiter).give(entry.sandbox);
    }
    this.#grow();
    this.#shrinkLater();
  }

  #grow(): void {
    const { size, growAfterMs, warm } = this.#options;
    if (this.#growTimer) clearTimeout(this.#growTimer);
    this.#growTimer = null;
    if (this.#closed) return;
    const now = performance.now();
    const room = () => this.#alive < size && this.#starting < STARTS_AT_ONCE;
    // Those for whom a start is under way need no second one.
    for (const waiter of this.#waiters.slice(this.#starting)) {
      if (!room()) return;
      const wait = this.#alive < warm ? 0 : Math.max(waiter.sinceMs, this.#lastStartMs) + growAfterMs - now;
      if (wait > 0) {
        this.#growTimer = setTimeout(() => this.#grow(), wait);
        return;
      }
      this.#start();
    }
    // Once in use, the next caller finds one ready.
    while (this.#busy.size > 0 && this.#alive < warm && room()) this.#start();
  }

  #start(): void {
    this.#starting++;
    this.#lastStartMs = performance.now();
    this.#options.create().then(
      (sandbox) => {
        this.#starting--;
        this.#failures = 0;
        if (this.#closed) return this.#end(sandbox);
        this.#idle.push({ sandbox, sinceMs: performance.now() });
        this.#serve();
      },
      (error: unknown) => {
        this.#starting--;
        this.#failures++;
        this.#options.logger.warn({ err: error, lane: this.#options.name }, 'a sandbox did not start');
        if (this.#closed) return;
        // While others are alive, callers still get theirs; with none, waiting longer would be in vain.
        if (this.#failures >= FAILURES_TOLD && this.#alive === 0) {
          this.#failures = 0;
          const reason = error instanceof Error ? error.message : String(error);
          for (const waiter of [...this.#waiters])
            waiter.fail(new Unavailable(`No ${this.#options.name} sandbox can be started: ${reason}`));
        }
        this.#serve();
      },
    );
  }

  async #takeBack(sandbox: LevelSandbox): Promise<void> {
    // Closing took it already.
    if (!this.#busy.delete(sandbox)) return;
    this.#resetting++;
    try {
      await sandbox.reset();
      this.#resetting--;
      if (this.#closed) return this.#end(sandbox);
      this.#idle.push({ sandbox, sinceMs: performance.now() });
    } catch (error) {
      this.#resetting--;
      this.#replaced++;
      this.#options.logger.debug({ err: error, lane: this.#options.name }, 'a sandbox is replaced');
      this.#end(sandbox);
      if (!this.#closed && this.#alive < this.#options.warm) this.#start();
    }
    this.#serve();
  }

  #end(sandbox: LevelSandbox): void {
    const ending = sandbox
      .close()
      .catch((error: unknown) =>
        this.#options.logger.warn({ err: error, lane: this.#options.name }, 'a sandbox did not end cleanly'),
      )
      .finally(() => this.#ending.delete(ending));
    this.#ending.add(ending);
  }

  #shrinkLater(): void {
    const { warm, idleMs } = this.#options;
    if (this.#idleTimer || this.#closed || this.#alive <= warm || this.#idle.length === 0) return;
    this.#idleTimer = setTimeout(() => {
      this.#idleTimer = null;
      const old = performance.now() - idleMs;
      while (this.#alive > warm && (this.#idle[0]?.sinceMs ?? Number.POSITIVE_INFINITY) <= old)
        this.#end((this.#idle.shift() as { sandbox: LevelSandbox }).sandbox);
      this.#shrinkLater();
    }, idleMs);
    // Nothing hangs on it: it must not keep the process alive.
    this.#idleTimer.unref();
  }
}
