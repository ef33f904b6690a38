/** The label of weights on a server that keeps none: remembered here, and kept for the studio's next start. */
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

  async set(version: string): Promise<void> {
    const { http, facts } = this.#server;
    await this.#stored?.keepLabel(http.url, facts.fingerprint, version);
    this.#label = version;
  }

  /** The server was started again. */
  forget(): void {
    this.#label = null;
  }

  async #kept(): Promise<string | null> {
    const { http, facts } = this.#server;
    return (await this.#stored?.labelOf(http.url, facts.fingerprint)) ?? null;
  }
}
