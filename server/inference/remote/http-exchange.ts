/**
 * One request and its answer over a pool, read into one string. undici's handlers are used below its `request`: they cost
 * no stream for each answer, and an abort holds from the first moment.
 */
import type { Dispatcher } from 'undici';
import { type Asked, connectionError, reasonOf, tooLarge, tooLate } from './error-sentence';

const ANSWER_BYTES = 256 * 2 ** 20;
/** Nobody reads more of an error. */
const ERROR_BYTES = 64 * 2 ** 10;

export interface Exchanged {
  status: number;
  headers: Record<string, string>;
  text: string;
  /** 2xx, or one of the statuses that the caller takes for an answer. */
  accepted: boolean;
}

/** Until when the whole answer must be there, the tries before this one included. */
export interface Limit {
  timeoutMs: number;
  /** On the clock of `performance.now()`. */
  sinceMs: number;
}

/** Rejects with an error of the family. An error body is read as far as 64 KiB; the connection is then closed. */
export function exchange(
  pool: Dispatcher,
  request: Dispatcher.DispatchOptions,
  asked: Asked,
  accept: readonly number[],
  limit: Limit | null,
  signal: AbortSignal | undefined,
): Promise<Exchanged> {
  return new Promise((resolve, reject) => {
    let controller: Dispatcher.DispatchController | null = null;
    let settled = false;
    let status = 0;
    let accepted = false;
    let headers: Record<string, string> = {};
    const chunks: Buffer[] = [];
    let bytes = 0;

    const timer = limit && setTimeout(() => fail(tooLate(asked, limit.timeoutMs)), leftMs(limit));
    const onAbort = () => fail(reasonOf(signal as AbortSignal));
    signal?.addEventListener('abort', onAbort, { once: true });

    const settle = (): boolean => {
      if (settled) return false;
      settled = true;
      if (timer !== null) clearTimeout(timer);
      signal?.removeEventListener('abort', onAbort);
      return true;
    };
    const fail = (error: Error) => {
      if (!settle()) return;
      chunks.length = 0;
      reject(error);
      controller?.abort(error);
    };
    const succeed = (cut: boolean) => {
      if (!settle()) return;
      const body = chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks);
      // What may be half a key at the edge is never shown.
      const text = cut ? asked.redaction.withoutEdge(body.toString('utf8', 0, ERROR_BYTES)) : body.toString('utf8');
      resolve({ status, headers, text, accepted });
    };

    pool.dispatch(request, {
      onRequestStart(started) {
        controller = started;
        if (settled) started.abort(new Error('Stopped before it was sent.'));
      },
      onResponseStart(_, code, received) {
        if (code < 200) return;
        status = code;
        accepted = (code >= 200 && code < 300) || accept.includes(code);
        headers = flatHeaders(received);
      },
      onResponseData(current, chunk) {
        if (settled) return;
        chunks.push(chunk);
        bytes += chunk.length;
        if (accepted ? bytes <= ANSWER_BYTES : bytes <= ERROR_BYTES) return;
        if (accepted) return fail(tooLarge(asked, ANSWER_BYTES));
        succeed(true);
        current.abort(new Error('Enough of this error was read.'));
      },
      onResponseEnd() {
        succeed(false);
      },
      onResponseError(_, error) {
        // An error's status says enough even where its body was cut.
        if (status !== 0 && !accepted) succeed(true);
        else fail(connectionError(asked, error, status !== 0));
      },
    });
  });
}

function flatHeaders(received: Record<string, string | string[] | undefined>): Record<string, string> {
  const flat: Record<string, string> = {};
  for (const [name, value] of Object.entries(received))
    if (value !== undefined) flat[name] = Array.isArray(value) ? value.join(', ') : value;
  return flat;
}

function leftMs({ timeoutMs, sinceMs }: Limit): number {
  return Math.max(0, sinceMs + timeoutMs - performance.now());
}
