/**
 * The label of weights on a server that keeps none: remembered here, and kept for the studio's next start. From when new
 * ones are on their way until their end is known it is kept as `old→new`: what is cut off there is either of them.
 */
import { MIXED } from '../../core/tokens/chunk';
import type { KnownServer } from './known-server';

export interface StoredLabels {
  /** What this start of the server was given last; null: nothing. A start is told from another by its fingerprint. */
  labelOf(url: string, fingerprint: string): Promise<string | null>;
  keepLabel(url: string, fingerprint: string, version: string): Promise<void>;
}

export class RememberedLabel {
  readonly #server: KnownServer;
  readonly #stored: StoredLabels | null;
  #label: string | null = null;
  /** Of an update that goes on. */
  #either: string | null = null;

  constructor(server: KnownServer, stored: StoredLabels | null) {
    this.#server = server;
    this.#stored = stored;
  }

  /** A server that was given nothing has the weights it is called after. */
  get(): string {
    return this.#label ?? this.#server.facts.modelName;
  }

  async load(): Promise<void> {
    this.#label = await this.#kept();
  }

  /** Whether this very start of the server was ever given weights, or was about to be. */
  async wasGiven(): Promise<boolean> {
    return (await this.#kept()) !== null;
  }

  /** New weights are on their way; those that were there serve still. */
  async begin(version: string): Promise<void> {
    const [oldest, ...later] = this.get().split(MIXED);
    const either = [oldest, ...(later.length > 0 ? ['…'] : []), version].join(MIXED);
    await this.#keep(either);
    this.#either = either;
  }

  /** How that ended; null: nobody can say. */
  async end(version: string | null): Promise<void> {
    if (version !== null) await this.#keep(version);
    this.#label = version ?? this.#either;
    this.#either = null;
  }

  /** The server was started again. */
  forget(): void {
    this.#label = null;
  }

  async #keep(version: string): Promise<void> {
    const { http, facts } = this.#server;
    await this.#stored?.keepLabel(http.url, facts.fingerprint, version);
  }

  async #kept(): Promise<string | null> {
    const { http, facts } = this.#server;
    return (await this.#stored?.labelOf(http.url, facts.fingerprint)) ?? null;
  }
}
