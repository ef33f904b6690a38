/**
 * The one way to speak HTTP to an inference server. Keeps connections open, bounds what it reads, knows when an answer is
 * broken, and turns every failure into one sentence that names the server, what was asked and what it said. The key is
 * sent as a header and is in no message, detail or log.
 */

export interface HttpClientOptions {
  /** Name of the backend, for sentences. */
  backend: string;
  /** Base address without a trailing slash; a path in it is kept (a server behind a proxy). */
  url: string;
  /** Sent as `Authorization: Bearer …`. */
  key?: string | null;
  /** Connections kept open at most. Default 1024. */
  connections?: number;
}

export interface CallOptions {
  signal?: AbortSignal;
  /** Milliseconds until the whole answer must be there. Default 30 s; generations pass null (their trajectory has a deadline). */
  timeoutMs?: number | null;
  /** Statuses beside 2xx that are an answer and no error. */
  accept?: readonly number[];
}

export interface HttpAnswer {
  status: number;
  headers: Record<string, string>;
  /** Parsed JSON; text when the content is not JSON and the caller used `text`. */
  body: unknown;
}

/**
 * Errors: connection refused, reset, name not found, certificate, time-out, 502/503/504, cut body → Unavailable with
 * details.retry true (safe to send elsewhere or again) and details.reached; 401/403 → Forbidden; 404 → NotFound; 400, 413,
 * 422 → Invalid; 429 → Unavailable (retry); other 5xx → Unavailable (retry false); HTML or broken JSON → Invalid that says
 * it is no inference server; aborted by `signal` → the signal's reason when it is of the family, else Cancelled.
 */
export interface HttpClient {
  readonly backend: string;
  readonly url: string;
  getJson(path: string, options?: CallOptions): Promise<HttpAnswer>;
  postJson(path: string, body: unknown, options?: CallOptions): Promise<HttpAnswer>;
  /** For answers that are text by design (metrics, LoRA routes of vLLM). */
  text(method: 'GET' | 'POST', path: string, body?: unknown, options?: CallOptions): Promise<HttpAnswer & { body: string }>;
  close(): Promise<void>;
}
