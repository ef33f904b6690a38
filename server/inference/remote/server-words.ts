/**
 * What a server said, made fit to be shown: no key, no control characters, no more than a few lines. The server is not
 * trusted: it may echo the key, send escape sequences, or ten megabytes.
 */

const SHOWN_CHARS = 300;
/** One control character or line break is a space; invisible format characters (bidi marks among them) are left out. */
const CONTROL = /[\p{Cc}\u2028\u2029]+/gu;
const INVISIBLE = /[\p{Cf}\u200b]+/gu;

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
    const plain = text
      .replace(CONTROL, ' ')
      .replace(INVISIBLE, '')
      .replace(/\p{Cs}/gu, '\ufffd');
    return this.#pattern ? plain.replace(this.#pattern, '[key]') : plain;
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
