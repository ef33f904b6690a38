/** What a failure says about the server it came from, and the words in which it is told. */
import { isStudioError, StudioError, Unavailable } from '../../core/errors';

/** The request may be sent again, here or elsewhere: something was wrong with the server or the way to it. */
export function isRepeatable(error: unknown): error is Unavailable {
  return error instanceof Unavailable && error.details.retry === true;
}

/** The request may have had to do with it: it got there. What never arrived harmed nobody. */
export function wasReached(error: Unavailable): boolean {
  return error.details.reached !== false;
}

/** The server lives and has too much to do. */
export function isRefusal(error: Unavailable): boolean {
  return error.details.status === 429 || error.details.status === 503;
}

const MOST_CHARACTERS = 500;

/** One line, bounded, whatever a server wrote into it. */
export function sentenceOf(error: unknown): string {
  const foreseen = isStudioError(error) ? error.message : typeof error === 'string' ? error : null;
  const text = foreseen ?? `An error nobody foresaw: ${error}`;
  // biome-ignore lint/suspicious/noControlCharactersInRegex: those are what must not reach a page or a terminal.
  const line = text.replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]+/g, ' ').trim();
  if (line.length <= MOST_CHARACTERS) return line;
  return `${line.slice(0, MOST_CHARACTERS).replace(/[\ud800-\udbff]$/, '')}… (${line.length - MOST_CHARACTERS} more characters)`;
}

/** Of the same kind as `error`, with a message that says more; never one that invites to a retry. */
export function retold(error: unknown, message: string, details: Record<string, unknown> = {}): StudioError {
  if (!(error instanceof StudioError)) return new Unavailable(message, details, { cause: error });
  const Kind = error.constructor as new (
    message: string,
    details: Record<string, unknown>,
    options: { cause: unknown },
  ) => StudioError;
  return new Kind(message, { ...error.details, ...details, retry: false }, { cause: error });
}

/** Rejects with Unavailable when `work` takes longer; what comes of it later is given to `late`. */
export function within<T>(work: Promise<T>, ms: number, says: string, late?: (value: T) => void): Promise<T> {
  return new Promise((resolve, reject) => {
    let over = false;
    const timer = setTimeout(() => {
      over = true;
      reject(new Unavailable(`${says} within ${ms / 1000} s.`, { retry: true, reached: true }));
    }, ms);
    work
      .then(
        (value) => {
          if (over) late?.(value);
          else resolve(value);
        },
        (error) => reject(error),
      )
      .finally(() => clearTimeout(timer));
  });
}

/** Milliseconds until the next attempt: doubled with each, bounded, and spread so that many do not come at once. */
export function backOff(attempt: number, first: number, longest: number, random: () => number): number {
  return Math.min(longest, first * 2 ** Math.min(attempt, 30)) * (0.5 + random() / 2);
}
