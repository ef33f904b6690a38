/** Keeps what a check sent and what came back, fit to be shown: shortened, without the key. */
import { isStudioError } from '../../core/errors';
import type { CheckItem } from '../../core/inference';
import type { CallOptions, HttpAnswer, HttpClient } from './http-client';
import { showJson, writeJson } from './json-body';
import type { KeyRedaction } from './server-words';

interface Exchange {
  sent: string;
  /** Null where nothing came back. */
  received: string | null;
}

/** More than is shown is not kept: an answer may be megabytes. */
const KEPT_CHARS = 4000;

/** The same connection for one item of the checklist. Closing it leaves the connection open. */
export class Recorder implements HttpClient {
  readonly backend: string | null;
  readonly url: string;
  readonly #http: HttpClient;
  readonly redaction: KeyRedaction;
  readonly #exchanges: Exchange[] = [];

  constructor(http: HttpClient) {
    this.backend = http.backend;
    this.url = http.url;
    this.#http = http;
    this.redaction = http.redaction;
  }

  getJson(path: string, options?: CallOptions): Promise<HttpAnswer> {
    return this.#kept('GET', path, undefined, () => this.#http.getJson(path, options));
  }

  postJson(path: string, body: unknown, options?: CallOptions): Promise<HttpAnswer> {
    return this.#kept('POST', path, body, () => this.#http.postJson(path, body, options));
  }

  text(method: 'GET' | 'POST', path: string, body?: unknown, options?: CallOptions) {
    return this.#kept(method, path, body, () => this.#http.text(method, path, body, options));
  }

  async close(): Promise<void> {}

  /** The exchange that a person looks at: one that holds `about`, else the last. */
  shown(about?: string): Pick<CheckItem, 'sent' | 'received'> {
    const found =
      about === undefined
        ? undefined
        : this.#exchanges.find(({ sent, received }) => `${sent}${received ?? ''}`.includes(about));
    const chosen = found ?? this.#exchanges.at(-1);
    if (!chosen) return { sent: null, received: null };
    const { sent, received } = chosen;
    const more = this.#exchanges.length > 1 ? ` (one of ${this.#exchanges.length} requests)` : '';
    return {
      sent: this.redaction.shorten(sent) + more,
      received: received === null ? null : this.redaction.shorten(received),
    };
  }

  async #kept<Answer extends HttpAnswer>(
    method: string,
    path: string,
    body: unknown,
    ask: () => Promise<Answer>,
  ): Promise<Answer> {
    const sent = `${method} ${path}${body === undefined ? '' : ` ${writeJson(body).slice(0, KEPT_CHARS)}`}`;
    try {
      const answer = await ask();
      const text = typeof answer.body === 'string' ? answer.body : showJson(answer.body);
      this.#exchanges.push({ sent, received: `${answer.status} ${this.#cut(text)}` });
      return answer;
    } catch (error) {
      const said = isStudioError(error) ? saidIn(error) : null;
      this.#exchanges.push({ sent, received: said === null ? null : this.#cut(said) });
      throw error;
    }
  }

  /** A key that was cut in two would not be found in it any more. */
  #cut(text: string): string {
    return text.length > KEPT_CHARS ? this.redaction.withoutEdge(text.slice(0, KEPT_CHARS)) : text;
  }
}

/** Null of a request that was refused, cut off or given up before an answer began: the sentence of the item says it. */
function saidIn({ details, message }: { details: Record<string, unknown>; message: string }): string | null {
  if (typeof details.status === 'number') return `${details.status} ${String(details.said ?? '')}`;
  const answered = details.reached === true && details.unanswered !== true && details.code !== 'timeout';
  return answered ? message : null;
}
