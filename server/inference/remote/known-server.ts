/**
 * What is known of one server, kept true: when a connection broke, or after a while, it is asked again what it is, so
 * that a server that was started again is not taken for the one before.
 */
import type { Ambient } from '../../core/ambient';
import { Invalid, isStudioError, Unavailable } from '../../core/errors';
import { describeServer } from './describe-server';
import type { HttpClient } from './http-client';
import { LocalTokenizer } from './local-tokenizer';
import type { ServerFacts, ServerProtocol } from './protocol';
import { where } from './server-name';
import { untilAborted } from './serving-gate';
import { TokenText } from './token-text';

export interface KnownServerOptions {
  http: HttpClient;
  protocol: ServerProtocol;
  model: string | null;
  /** As a person said it, for servers that do not tell. */
  contextLength: number | null;
  tokenizerFolder: string | null;
  ambient: Ambient;
}

/** How old what it said of itself may become while its health is asked. */
const FACTS_MS = 15_000;

export class KnownServer {
  readonly http: HttpClient;
  readonly protocol: ServerProtocol;
  /** At the beginning of a sentence. */
  readonly called: string;
  /** It says other things of itself. `startedAgain`: not by anything that was done from here. */
  changed: (startedAgain: boolean) => void = () => {};
  readonly #options: KnownServerOptions;
  readonly #localTokenizer: LocalTokenizer | null;
  #facts: ServerFacts;
  #text: TokenText;
  #describedAtMs: number;
  /** It may be another one when it answers again. */
  #suspect = false;
  #describing: Promise<void> | null = null;
  #closed = false;

  private constructor(
    options: KnownServerOptions,
    localTokenizer: LocalTokenizer | null,
    facts: ServerFacts,
    text: TokenText,
  ) {
    this.http = options.http;
    this.protocol = options.protocol;
    this.called = where(options.http);
    this.#options = options;
    this.#localTokenizer = localTokenizer;
    this.#facts = facts;
    this.#text = text;
    this.#describedAtMs = options.ambient.now();
  }

  /** Throws from the error family when it does not answer, is another kind, or its tokens cannot be read. */
  static async open(options: KnownServerOptions): Promise<KnownServer> {
    const { http, protocol, tokenizerFolder } = options;
    const localTokenizer = tokenizerFolder === null ? null : await LocalTokenizer.open(tokenizerFolder);
    const facts = await factsOf(options);
    const text = await TokenText.open({ protocol, http, facts, localTokenizer });
    return new KnownServer(options, localTokenizer, facts, text);
  }

  get facts(): ServerFacts {
    return this.#facts;
  }

  get text(): TokenText {
    return this.#text;
  }

  get closed(): boolean {
    return this.#closed;
  }

  /** Work with the server as it is now, and a note when a connection broke in it. */
  async use<T>(work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    if (this.#closed) throw new Unavailable(`${this.called} is closed.`);
    try {
      if (this.#suspect) await untilAborted(this.#askAgain(), signal);
      return await work();
    } catch (error) {
      // No status came with it: the connection itself failed.
      if (isStudioError(error) && error.details.retry === true && error.details.status === undefined)
        this.#suspect = true;
      throw error;
    }
  }

  /** For work that only looks whether it is well. */
  doubtWhenOld(): void {
    if (this.#options.ambient.now() - this.#describedAtMs > FACTS_MS) this.doubt();
  }

  /** For work that must know this start of it from another. */
  doubt(): void {
    this.#suspect = true;
  }

  /**
   * After something was done to it from here; when it does not answer it is asked again later.
   * @param sameStart what was done leaves its fingerprint alone: one that has another now was started again under it
   */
  async expectChange(sameStart: boolean): Promise<void> {
    await this.#describe(sameStart).catch(() => {
      this.#suspect = true;
    });
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.http.close();
  }

  async #askAgain(): Promise<void> {
    this.#describing ??= this.#describe(true).finally(() => {
      this.#describing = null;
    });
    await this.#describing;
  }

  async #describe(startedAgain: boolean): Promise<void> {
    const { protocol, http, ambient } = this.#options;
    const facts = await factsOf(this.#options);
    if (facts.fingerprint !== this.#facts.fingerprint) {
      this.#text = await TokenText.open({ protocol, http, facts, localTokenizer: this.#localTokenizer });
      this.#facts = facts;
      this.changed(startedAgain);
    }
    this.#describedAtMs = ambient.now();
    this.#suspect = false;
  }
}

async function factsOf({ http, protocol, model, contextLength }: KnownServerOptions): Promise<ServerFacts> {
  const facts = await describeServer(protocol, http, { model, contextLength });
  if (facts.contextLength < 1)
    throw new Invalid(
      `${where(http)} does not tell how many tokens its context holds; give its context length with its address.`,
    );
  return facts;
}
