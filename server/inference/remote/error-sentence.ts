/**
 * Every way in which a server can fail, as one error of the family with one sentence: which server, what was asked, what
 * it said, what to do. `details.retry`: it is safe and worth while to send the request again or elsewhere.
 * `details.reached`: the request may have got to the server. `details.unanswered`: the connection was closed before an answer.
 */
import {
  Cancelled,
  Forbidden,
  Invalid,
  isStudioError,
  NotFound,
  type StudioError,
  Unavailable,
} from '../../core/errors';
import { isObject, looksLikeHtml, readJson, showJson } from './json-body';
import { type NamedServer, where } from './server-name';
import type { KeyRedaction } from './server-words';

/** What was asked of whom. */
export interface Asked extends NamedServer {
  method: string;
  path: string;
  redaction: KeyRedaction;
}

interface Failure {
  retry: boolean;
  reached: boolean;
  unanswered?: true;
  status?: number;
  code?: string;
  /** The server's own words, shortened. */
  said?: string;
  /** Set when the server says that the prompt does not fit. */
  contextOverflow?: ContextOverflow;
}

export interface ContextOverflow {
  /** In tokens; null when the server does not say. */
  contextLength: number | null;
}

function request({ method, path }: Asked): string {
  return `${method} ${path}`;
}

function details(asked: Asked, failure: Failure): Record<string, unknown> {
  return { backend: asked.backend, url: asked.url, request: request(asked), ...failure };
}

/** Why a caller stopped it. */
export function reasonOf(signal: AbortSignal): Error {
  return isStudioError(signal.reason) ? signal.reason : new Cancelled('The request was stopped.');
}

/** Of a request that got no whole answer: undici's, the socket's or the TLS layer's error. */
export function connectionError(asked: Asked, error: unknown, headersSeen: boolean): StudioError {
  const code = codeOf(error);
  const unreached = (says: string) =>
    new Unavailable(`${where(asked)} ${says}`, details(asked, { retry: true, reached: false, code }));
  if (headersSeen) return cutAnswer(asked, code);
  switch (code) {
    case 'ECONNREFUSED':
      return unreached('refused the connection: no server listens there. Start it, or correct the address and port.');
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
    case 'EAI_FAIL':
    case 'EAI_NODATA':
      return unreached('was not found: its host name has no address here. Correct the name in the address.');
    case 'UND_ERR_CONNECT_TIMEOUT':
    case 'ETIMEDOUT':
      return unreached('did not take the connection in time. Look whether the host runs and a firewall is between.');
    case 'EHOSTUNREACH':
    case 'ENETUNREACH':
    case 'ENETDOWN':
    case 'EADDRNOTAVAIL':
    case 'EACCES':
      return unreached(`cannot be reached over the network from here (${code}).`);
    case 'UND_ERR_DESTROYED':
    case 'UND_ERR_CLOSED':
      return new Unavailable(
        `${where(asked)} is closed here and was not asked ${request(asked)}.`,
        details(asked, { retry: false, reached: false, code }),
      );
  }
  if (isCertificateCode(code))
    return unreached(
      `has a certificate that is not trusted here (${code}). Give the server a certificate of a known authority, or start the studio with NODE_EXTRA_CA_CERTS naming the authority's file.`,
    );
  if (code === 'EPROTO' || code.startsWith('ERR_SSL_') || code.startsWith('ERR_TLS_'))
    return unreached(`does not speak TLS at that port (${code}). Write its address with http:// if that is meant.`);
  if (code.startsWith('HPE_') || code === 'UND_ERR_HEADERS_OVERFLOW')
    return notAServer(asked, `what it sent for ${request(asked)} is no HTTP (${code})`);
  return new Unavailable(
    `${where(asked)} closed the connection before it answered ${request(asked)} (${code}).`,
    details(asked, { retry: true, reached: true, unanswered: true, code }),
  );
}

/** A body that ended before its end: a failure, not a short answer. */
export function cutAnswer(asked: Asked, code = 'cut'): StudioError {
  return new Unavailable(
    `${where(asked)} broke off in the middle of its answer to ${request(asked)}; nothing of it is used.`,
    details(asked, { retry: true, reached: true, code }),
  );
}

export function tooLate(asked: Asked, timeoutMs: number): StudioError {
  return new Unavailable(
    `${where(asked)} did not answer ${request(asked)} within ${timeoutMs / 1000} s.`,
    details(asked, { retry: true, reached: true, code: 'timeout' }),
  );
}

export function tooLarge(asked: Asked, limitBytes: number): StudioError {
  return new Invalid(
    `${where(asked)} sent more than ${limitBytes / 2 ** 20} MiB as its answer to ${request(asked)}; the rest was not read.`,
    details(asked, { retry: false, reached: true }),
  );
}

/** An answer with status 200 that is no JSON. */
export function unreadable(asked: Asked, text: string, parsed: { why: string; parserSays: string }): StudioError {
  if (parsed.why === 'cut') return cutAnswer(asked);
  if (parsed.why === 'no_number')
    return new Invalid(
      `${where(asked)} answered ${request(asked)} with ${parsed.parserSays} in place of a number; nothing of it is used. Look whether its weights are damaged or too large for the number format it computes in.`,
      details(asked, { retry: false, reached: true, code: 'no_number' }),
    );
  const said = asked.redaction.shorten(parsed.why === 'html' ? text : parsed.parserSays);
  const what =
    parsed.why === 'html'
      ? 'a web page'
      : parsed.why === 'excessive'
        ? `${Math.round(text.length / 2 ** 20)} MiB that are not read`
        : 'something that is no JSON';
  return notAServer(asked, `it answered ${request(asked)} with ${what}: ${said}`);
}

function notAServer(asked: Asked, what: string): StudioError {
  return new Invalid(
    `${where(asked)} is no inference server: ${what}`,
    details(asked, { retry: false, reached: true, code: 'not_a_server' }),
  );
}

/** Of an answer that is not 2xx. `text` is the beginning of its body. */
export function statusError(asked: Asked, status: number, text: string, location: string | undefined): StudioError {
  const parsed = readJson(text);
  const body = parsed.ok ? parsed.value : text;
  const said = asked.redaction.shorten(looksLikeHtml(text) ? `a web page: ${text}` : serverMessage(body, text));
  const overflow = contextOverflow(status, body, text);
  const failure = (retry: boolean): Record<string, unknown> =>
    details(asked, { retry, reached: true, status, said, ...(overflow && { contextOverflow: overflow }) });
  const answer = `answered ${request(asked)} with status ${status}${said ? `: ${said}` : ' and no words'}`;
  if (overflow)
    return new Invalid(
      `${where(asked)} did not take the prompt: with the tokens to sample it does not fit the context${overflow.contextLength ? ` of ${overflow.contextLength} tokens` : ''}. It ${answer}`,
      failure(false),
    );
  if (status === 401 || status === 403)
    return new Forbidden(`${where(asked)} does not accept the key, or asks for one. It ${answer}`, failure(false));
  if (status === 404) return new NotFound(`${where(asked)} ${answer}`, failure(false));
  if (status >= 300 && status < 400)
    return new Invalid(
      `${where(asked)} sends ${request(asked)} on to ${asked.redaction.shorten((location ?? 'nowhere').split('?')[0] ?? '')}; give the address where the server itself is.`,
      failure(false),
    );
  if (status === 408 || status === 429 || status === 502 || status === 503 || status === 504)
    return new Unavailable(`${where(asked)} cannot serve now: it ${answer}`, failure(true));
  if (status >= 500) return new Unavailable(`${where(asked)} failed: it ${answer}`, failure(false));
  return new Invalid(`${where(asked)} ${answer}`, failure(false));
}

/** The words of an error body, in any of the shapes that inference servers and gateways use; else the raw text. */
export function serverMessage(body: unknown, text: string): string {
  if (!isObject(body)) return text;
  const { error, message, detail } = body;
  if (isObject(error) && typeof error.message === 'string') return error.message;
  if (typeof error === 'string') return error;
  if (typeof message === 'string') return message;
  if (detail !== undefined && detail !== null) return typeof detail === 'string' ? detail : showJson(detail);
  return text;
}

/** Ways in which servers say that prompt and tokens to sample do not fit; a group is the context's length. */
const OVERFLOW_WORDS: readonly RegExp[] = [
  // vLLM
  /context length is only (\d+)/i,
  /maximum context length is (\d+)/i,
  /longer than the maximum model length of (\d+)/i,
  /exceeds? (?:the )?model'?s maximum context length(?: of)?(?: \(?(\d+)\)?)?/i,
  // SGLang
  /longer than the model'?s context length \(?(\d+)?/i,
  // llama-server
  /exceeds? the available context size \(?(\d+)?/i,
  // TensorRT-LLM, in free text
  /max_seq_len(?:\w*)\W+(\d+)?/i,
  /max_num_tokens(?:\w*)\W+(\d+)?/i,
  /maximum (?:input|sequence) length\D*(\d+)?/i,
];

/**
 * Whether an error answer says that the prompt is too long for the context, in the words of vLLM, SGLang, TensorRT-LLM
 * or llama-server. Null when it says something else.
 */
export function contextOverflow(status: number, body: unknown, text: string): ContextOverflow | null {
  if (status !== 400 && status !== 413 && status !== 422 && status !== 500) return null;
  const error = isObject(body) ? (isObject(body.error) ? body.error : body) : {};
  if (error.type === 'exceed_context_size_error') return { contextLength: wholeNumber(error.n_ctx) };
  const words = serverMessage(body, text).slice(0, 4000);
  for (const pattern of OVERFLOW_WORDS) {
    const found = pattern.exec(words);
    if (found) return { contextLength: wholeNumber(Number(found[1])) };
  }
  return error.param === 'input_tokens' ? { contextLength: null } : null;
}

function wholeNumber(value: unknown): number | null {
  return typeof value === 'number' && Number.isSafeInteger(value) && value > 0 ? value : null;
}

function isCertificateCode(code: string): boolean {
  return (
    /CERT|SELF_SIGNED|UNABLE_TO_VERIFY|UNABLE_TO_GET_(?:ISSUER|CRL)|HOSTNAME_MISMATCH/.test(code) &&
    !code.startsWith('ERR_SSL_')
  );
}

/** Only the code: an error of the HTTP parser carries what the server sent, and that may hold the key. */
function codeOf(error: unknown): string {
  const code = (error as { code?: unknown } | null)?.code;
  if (typeof code === 'string') return code;
  if (error instanceof Error && error.name === 'HTTPParserError') return 'HPE_INVALID';
  const inner =
    (error as { errors?: unknown[]; cause?: unknown } | null)?.errors?.[0] ?? (error as Error | null)?.cause;
  return inner ? codeOf(inner) : 'unknown';
}
