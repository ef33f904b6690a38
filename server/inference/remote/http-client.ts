/**
 * The one way to speak HTTP to an inference server. Keeps connections open, bounds what it reads, knows when an answer is
 * broken, and turns every failure into one sentence that names the server, what was asked and what it said. The key is
 * sent as a header and is in no message, detail or log.
 */
import { Client, type Dispatcher, Pool } from 'undici';
import { Invalid, isStudioError } from '../../core/errors';
import { type Asked, reasonOf, statusError, unreadable } from './error-sentence';
import { type Exchanged, exchange, type Limit } from './http-exchange';
import { readJson, writeJson } from './json-body';
import { names } from './name-lookup';
import { parseTurn } from './parse-turn';
import type { NamedServer } from './server-name';
import { KeyRedaction } from './server-words';

export interface HttpClientOptions {
  /** Name of the backend, for sentences; null where the server belongs to none yet. */
  backend: string | null;
  /** Base address without a trailing slash; a path in it is kept (a server behind a proxy). */
  url: string;
  /** Sent as `Authorization: Bearer …`. */
  key?: string | null;
  /** Signs some calls (see `CallOptions.headers`). Never sent; taken out of what the server says. */
  controlKey?: string | null;
  /** Connections kept open at most. Default 1024. */
  connections?: number;
}

export interface CallOptions {
  signal?: AbortSignal;
  /** Milliseconds until the whole answer must be there. Default 30 s; generations pass null (their trajectory has a deadline). */
  timeoutMs?: number | null;
  /** Statuses beside 2xx that are an answer and no error. */
  accept?: readonly number[];
  /** Sent with the call, beside those of every call; a signature of the body (written by `writeJson`) for one. */
  headers?: Record<string, string>;
  /** It must not reach the server twice, as loads of weights must not: the second may fail where the first has worked. */
  once?: boolean;
}

export interface HttpAnswer {
  status: number;
  headers: Record<string, string>;
  /** Parsed JSON; text when the content is not JSON and the caller used `text`. */
  body: unknown;
}

/**
 * A connection that is closed at once, before it answered, says nothing about the request: a server may have been about
 * to close it. Such a request is sent once more, on a connection of its own; one with `once` is on one from the start.
 *
 * Errors: connection refused, reset, name not found, certificate, time-out, 502/503/504, cut body → Unavailable with
 * details.retry true (safe to send elsewhere or again) and details.reached; 401/403 → Forbidden; 404 → NotFound; 400, 413,
 * 422 → Invalid; 429 → Unavailable (retry); other 5xx → Unavailable (retry false); HTML or broken JSON → Invalid that says
 * it is no inference server; NaN or Infinity in JSON → Invalid that names it; aborted by `signal` → the signal's reason
 * when it is of the family, else Cancelled.
 */
export interface HttpClient extends NamedServer {
  /** For what an answer holds and a sentence repeats: the server may have put the key there. */
  readonly redaction: KeyRedaction;
  getJson(path: string, options?: CallOptions): Promise<HttpAnswer>;
  postJson(path: string, body: unknown, options?: CallOptions): Promise<HttpAnswer>;
  /** For answers that are text by design (metrics, LoRA routes of vLLM). */
  text(
    method: 'GET' | 'POST',
    path: string,
    body?: unknown,
    options?: CallOptions,
  ): Promise<HttpAnswer & { body: string }>;
  close(): Promise<void>;
}

const CONNECTIONS = 1024;
/** Characters from which parsing an answer takes a time that counts. */
const LARGE_ANSWER = 4096;
const CONNECT_TIMEOUT_MS = 10_000;
/**
 * Servers close a connection that was idle for some seconds (5 in most Python ones), and a busy one does so with a request
 * already under way to it. Ours is closed long before that, unless this process itself was held up for seconds: answers
 * that wait are then handled, and the next requests sent, before the timers that close are looked at.
 */
const IDLE_CONNECTION_MS = 1000;
const CALL_TIMEOUT_MS = 30_000;
/** A connection that is closed later than this was not closed by chance, when the request came. */
const AT_ONCE_MS = 5000;

/** Throws Invalid when the address is none or the key cannot be sent; neither connects yet. */
export function createHttpClient(options: HttpClientOptions): HttpClient {
  return new PooledClient(options);
}

type Send = (dispatcher: Dispatcher) => Promise<Exchanged>;

class PooledClient implements HttpClient {
  readonly backend: string | null;
  readonly url: string;
  readonly #pool: Pool;
  /** How connections of their own are made, and those that are in use. */
  readonly #newConnection: () => Client;
  readonly #own = new Set<Client>();
  #closed = false;
  readonly #basePath: string;
  readonly #headers: Record<string, string>;
  readonly redaction: KeyRedaction;

  constructor({ backend, url, key, controlKey, connections = CONNECTIONS }: HttpClientOptions) {
    const address = readAddress(backend, url);
    this.backend = backend;
    this.#basePath = address.pathname.replace(/\/+$/, '');
    this.url = address.origin + this.#basePath;
    this.#headers = { accept: 'application/json', ...(key && { authorization: `Bearer ${checkKey(backend, key)}` }) };
    this.redaction = new KeyRedaction(key, controlKey);
    // A generation may take as long as it likes; what else must be there in time says so for itself.
    const settings: Client.Options = {
      connect: { timeout: CONNECT_TIMEOUT_MS, lookup: names.lookup },
      headersTimeout: 0,
      bodyTimeout: 0,
    };
    this.#pool = new Pool(address.origin, {
      ...settings,
      connections,
      pipelining: 1,
      keepAliveTimeout: IDLE_CONNECTION_MS,
      // Whatever the server promises.
      keepAliveMaxTimeout: IDLE_CONNECTION_MS,
    });
    this.#newConnection = () => new Client(address.origin, settings);
  }

  getJson(path: string, options: CallOptions = {}): Promise<HttpAnswer> {
    return this.#json('GET', path, undefined, options);
  }

  postJson(path: string, body: unknown, options: CallOptions = {}): Promise<HttpAnswer> {
    return this.#json('POST', path, body, options);
  }

  async text(
    method: 'GET' | 'POST',
    path: string,
    body?: unknown,
    options: CallOptions = {},
  ): Promise<HttpAnswer & { body: string }> {
    return this.#ask(this.#asked(method, path), body, options);
  }

  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all([this.#pool, ...this.#own].map((one) => one.destroy()));
  }

  async #json(method: 'GET' | 'POST', path: string, body: unknown, options: CallOptions): Promise<HttpAnswer> {
    const asked = this.#asked(method, path);
    const answer = await this.#ask(asked, body, options);
    if (answer.body.length > LARGE_ANSWER) await parseTurn();
    const parsed = readJson(answer.body);
    if (parsed.ok) return { ...answer, body: parsed.value };
    // An accepted status, a 404 of a proxy for one, is the answer whatever stands below it.
    if (answer.status >= 300) return answer;
    throw unreadable(asked, answer.body, parsed);
  }

  async #ask(
    asked: Asked,
    body: unknown,
    { signal, timeoutMs = CALL_TIMEOUT_MS, accept = [], headers, once = false }: CallOptions,
  ): Promise<HttpAnswer & { body: string }> {
    if (signal?.aborted) throw reasonOf(signal);
    const request: Dispatcher.DispatchOptions = {
      method: asked.method as 'GET' | 'POST',
      path: this.#basePath + asked.path,
      headers: { ...this.#headers, ...headers, ...(body !== undefined && { 'content-type': 'application/json' }) },
      body: body === undefined ? null : writeJson(body),
    };
    const limit: Limit | null = timeoutMs === null ? null : { timeoutMs, sinceMs: performance.now() };
    const send: Send = (dispatcher) => exchange(dispatcher, request, asked, accept, limit, signal);
    const answer = await (once ? this.#alone(send) : this.#twice(send, signal));
    if (answer.accepted) return { status: answer.status, headers: answer.headers, body: answer.text };
    throw statusError(asked, answer.status, answer.text, answer.headers.location);
  }

  /** Where nothing answers the second try either, the first error stands: that request may have arrived. */
  async #twice(send: Send, signal: AbortSignal | undefined): Promise<Exchanged> {
    const sentMs = performance.now();
    try {
      return await send(this.#pool);
    } catch (first) {
      const lost = isStudioError(first) && first.details.unanswered === true;
      if (!lost || performance.now() - sentMs > AT_ONCE_MS) throw first;
      if (signal?.aborted) throw reasonOf(signal);
      return this.#alone(send).catch((second) => {
        const { reached, unanswered, retry } = isStudioError(second) ? second.details : {};
        throw retry === true && (reached === false || unanswered === true) ? first : second;
      });
    }
  }

  /** On a connection that was never used and is not kept. */
  async #alone(send: Send): Promise<Exchanged> {
    if (this.#closed) return send(this.#pool);
    const own = this.#newConnection();
    this.#own.add(own);
    try {
      return await send(own);
    } finally {
      this.#own.delete(own);
      await own.destroy();
    }
  }

  #asked(method: string, path: string): Asked {
    return { backend: this.backend, url: this.url, method, path, redaction: this.redaction };
  }
}

/** The address is shown only once it is known to hold no password. */
function readAddress(backend: string | null, url: string): URL {
  const text = url.trim();
  const address = URL.canParse(text) ? new URL(text) : null;
  if (address?.username || address?.password || address?.search || address?.hash)
    throw new Invalid(
      `The address of ${ownerOf(backend)} may have no user name, password, query or fragment; a key is given on its own.`,
    );
  if (!address || (address.protocol !== 'http:' && address.protocol !== 'https:') || !address.hostname)
    throw new Invalid(
      `The address ${JSON.stringify(text.replace(/\/\/.*@/, '//…@').slice(0, 100))}${backend === null ? '' : ` of the backend ${backend}`} is none of a server: write it as http://HOST:PORT or https://HOST.`,
    );
  return address;
}

const ownerOf = (backend: string | null): string => (backend === null ? 'the server' : `the backend ${backend}`);

/** A header carries printable ASCII; anything else would be sent as something else, or not at all. */
function checkKey(backend: string | null, key: string): string {
  if (!/^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/.test(key))
    throw new Invalid(
      `The key of ${ownerOf(backend)} cannot be sent: it has characters that no HTTP header carries, or a space at an end. Copy it again.`,
    );
  return key;
}
