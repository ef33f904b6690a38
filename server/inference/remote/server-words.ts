/**
 * What a server said, made fit to be shown: no key, no control characters, no more than a few lines. The server is not
 * trusted: it may echo the key, send escape sequences, or ten megabytes.
 */
import { Invalid } from '../../core/errors';

const SHOWN_CHARS = 300;
/** One control character or line break is a space; invisible format characters (bidi marks among them) are left out. */
const CONTROL = /[\p{Cc}\u2028\u2029]+/gu;
const INVISIBLE = /[\p{Cf}\u200b]+/gu;

/** In one line, with nothing that moves a cursor, turns text around or cannot be stored. */
export function plain(text: string): string {
  return text
    .replace(CONTROL, ' ')
    .replace(INVISIBLE, '')
    .replace(/\p{Cs}/gu, '\ufffd');
}

/** The beginning of what a server wrote, harmless and in quotation marks, as part of a sentence. */
export function quoted(text: string, most = 60): string {
  return JSON.stringify(plain(beginning(text, most)));
}

/** The same with its line ends shown as `\n`: in a chat template they count. */
export function quotedLines(text: string, most: number): string {
  return JSON.stringify(beginning(text, most).split('\n').map(plain).join('\n'));
}

function beginning(text: string, most: number): string {
  return text.length > most ? `${text.slice(0, most).replace(/[\ud800-\udbff]$/, '')}…` : text;
}

/** A sentence with its full stop, once, whatever stood at the end of the words in it. */
export function ended(sentence: string): string {
  const words = sentence.replace(/[.,;:\s]+$/, '');
  return /[!?…]$/.test(words) ? words : `${words}.`;
}

/** A difference or log-probability as every sentence has it: two digits, small ones with an exponent: 0.76, 1.4e-6. */
export function shownNumber(value: number): string {
  const small = value !== 0 && Math.abs(value) < 0.001;
  return small ? value.toExponential(1) : String(Number(value.toPrecision(2)));
}

const NAME_CHARS = 512;
/** Moves a cursor, turns text around, or cannot be stored. */
const UNFIT = /[\p{Cc}\p{Cs}\u2028\u2029\u202a-\u202e\u2066-\u2069]/u;

/** The name that a server gives its model or weights, as it is. Throws Invalid for one that cannot be kept and shown. */
export function fitName(server: string, what: string, name: string): string {
  if (name.length <= NAME_CHARS && !UNFIT.test(name)) return name;
  throw new Invalid(
    `${server} calls its ${what} ${quoted(name)}: a name has at most ${NAME_CHARS} characters, and none that moves a cursor or turns text around. Give it another name there.`,
  );
}

/** Takes keys out of any text, also where the text has them escaped for JSON or for an address. */
export class KeyRedaction {
  readonly #pattern: RegExp | null;
  readonly #longest: number;

  constructor(...keys: (string | null | undefined)[]) {
    const forms = keys.flatMap((key) =>
      key ? [key, JSON.stringify(key).slice(1, -1), encodeURIComponent(key), base64(key)] : [],
    );
    const distinct = [...new Set(forms)].sort((a, b) => b.length - a.length);
    this.#longest = distinct[0]?.length ?? 0;
    this.#pattern = distinct.length
      ? new RegExp(distinct.map((form) => form.replace(/[.*+?^${}()|[\]\\/-]/g, '\\$&')).join('|'), 'gi')
      : null;
  }

  clean(text: string): string {
    return this.#pattern ? plain(text).replace(this.#pattern, '[key]') : plain(text);
  }

  /** Of a text that was cut somewhere: without the end in which the beginning of a key may stand. */
  withoutEdge(text: string): string {
    return text.slice(0, Math.max(0, text.length - this.#longest));
  }

  /** Cleaned, in one line, at most 300 characters and a note of how much is left out. */
  shorten(text: string): string {
    const clean = this.clean(text).replace(/ {2,}/g, ' ').trim();
    if (clean.length <= SHOWN_CHARS) return clean;
    const shown = clean.slice(0, SHOWN_CHARS).replace(/[\ud800-\udbff]$/, '');
    return `${shown}… [${clean.length - shown.length} more characters]`;
  }
}

function base64(text: string): string {
  return Buffer.from(text, 'utf8').toString('base64').replace(/=+$/, '');
}
