/**
 * What an earlier process left half done: an update of weights whose end nobody saw. Each server is made sure of before
 * it is let in for the first time.
 */
import { Unavailable } from '../../core/errors';
import type { Logger } from '../../observability/logger';
import type { UnfinishedUpdate } from '../backend';
import type { StoredLabels } from '../remote/remembered-label';
import { isRepeatable } from './failures';
import type { OpenServer } from './open-server';
import type { Replica } from './replica';

/** Where that is kept. */
export interface StoredUpdates extends StoredLabels {
  /** `goesOn`: a process works on it still. Null: nothing was left half done. */
  unfinished(): Promise<(UnfinishedUpdate & { goesOn: boolean }) | null>;
  /** Every server of the backend was made sure of. */
  settled(): Promise<void>;
}

export interface LeftBehindOptions {
  backend: string;
  replicas: readonly Replica[];
  stored: StoredUpdates | null;
  logger: Logger;
}

export class LeftBehind {
  readonly #options: LeftBehindOptions;
  /** Not made sure of yet. */
  readonly #open: Set<Replica>;
  #found: Promise<UnfinishedUpdate | null> | null = null;
  #allWell = true;

  constructor(options: LeftBehindOptions) {
    this.#options = options;
    this.#open = new Set(options.stored ? options.replicas : []);
  }

  /** Whether there was anything to do. Throws Unavailable where the server cannot be used: for now (retry), or until a person decides. */
  async settle(replica: Replica, { backend: server }: OpenServer): Promise<boolean> {
    const { backend, logger } = this.#options;
    if (!this.#open.has(replica)) return false;
    this.#found ??= this.#find();
    const found = await this.#found.catch((error) => {
      this.#found = null;
      throw error;
    });
    if (found) {
      const { version } = found.update;
      logger.warn(
        { backend, url: replica.url, version },
        'An update of weights was cut off; its server is made sure of.',
      );
      try {
        await server.settle?.(found);
      } catch (error) {
        if (isRepeatable(error)) throw error;
        // It holds itself back from now on; the next weights may put it right.
        this.#allWell = false;
        replica.refusedVersion = version;
        this.#open.delete(replica);
        throw error;
      }
    }
    this.#open.delete(replica);
    if (found && this.#allWell && this.#open.size === 0) await this.#options.stored?.settled();
    return found !== null;
  }

  async #find(): Promise<UnfinishedUpdate | null> {
    const found = (await this.#options.stored?.unfinished()) ?? null;
    if (found?.goesOn)
      throw new Unavailable(
        `The weights of the backend ${this.#options.backend} are being changed to ${found.update.version} already, and not from here; its servers are left alone until that has ended.`,
        { retry: true, reached: false },
      );
    return found;
  }
}
