/** Bodies of requests and answers: ids are written without a detour over arrays, broken answers are told from cut ones. */

/** JSON of a request body. An Int32Array is an array of numbers wherever it stands. */
export function writeJson(value: unknown): string {
  if (value instanceof Int32Array) return `[${value.join(',')}]`;
  if (Array.isArray(value))
    return typeof value[0] === 'object' && value[0] !== null
      ? `[${value.map((item) => writeJson(item ?? null)).join(',')}]`
      : JSON.stringify(value);
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const fields: string[] = [];
  for (const [name, field] of Object.entries(value))
    if (field !== undefined) fields.push(`${JSON.stringify(name)}:${writeJson(field)}`);
  return `{${fields.join(',')}}`;
}

/** A value that a server sent, as text to be shown. Never throws: it may be nested deeper than any writer goes. */
export function showJson(value: unknown): string {
  try {
    return writeJson(value ?? null);
  } catch (error) {
    if (error instanceof RangeError) return 'something nested too deeply to be shown';
    throw error;
  }
}

export type ReadJson =
  | { ok: true; value: unknown }
  /** `no_number`: the word (`NaN`, `Infinity`) that stands bare in place of a number is what `parserSays`. */
  | { ok: false; why: 'html' | 'cut' | 'broken' | 'excessive' | 'no_number'; parserSays: string };

/**
 * A value of two characters takes some fifty bytes once it is parsed: what fits into an answer need not fit into memory.
 * The largest answers there are (alternatives for each token of a long prompt) have a quarter of this.
 */
const MOST_GROUPS = 4_000_000;
const MOST_VALUES = 16_000_000;

/** Null for an empty text. */
export function readJson(text: string): ReadJson {
  if (text.trim() === '') return { ok: true, value: null };
  if (hasMore(text, '{[', MOST_GROUPS) || hasMore(text, ',', MOST_VALUES))
    return { ok: false, why: 'excessive', parserSays: 'it has more values than any answer needs' };
  try {
    return { ok: true, value: JSON.parse(text) };
  } catch (error) {
    const parserSays = (error as Error).message;
    if (looksLikeHtml(text)) return { ok: false, why: 'html', parserSays };
    const { isOpen, noNumber } = outsideStrings(text);
    if (isOpen) return { ok: false, why: 'cut', parserSays };
    if (noNumber !== null) return { ok: false, why: 'no_number', parserSays: noNumber };
    return { ok: false, why: 'broken', parserSays };
  }
}

/** Whether the marks stand in it more often than `most`, strings included; free for texts too short for that. */
function hasMore(text: string, marks: string, most: number): boolean {
  if (text.length <= most) return false;
  let count = 0;
  for (const mark of marks)
    for (let at = text.indexOf(mark); at >= 0; at = text.indexOf(mark, at + 1)) if (++count > most) return true;
  return false;
}

export function looksLikeHtml(text: string): boolean {
  return /^\s*</.test(text.slice(0, 200));
}

/** As a value of an object or an array. */
const NO_NUMBER = /(?:NaN|-?Infinity)(?=\s*[,\]}])/y;
const BEFORE_VALUE = ':[,';

/**
 * Of an object or array: whether it, or a string, is still open at the end (a body that was cut and did not say so), and
 * the first word that stands where a number should.
 */
function outsideStrings(text: string): { isOpen: boolean; noNumber: string | null } {
  if (!/^\s*[{[]/.test(text)) return { isOpen: false, noNumber: null };
  let depth = 0;
  let inString = false;
  let noNumber: string | null = null;
  let before = '';
  for (let i = 0; i < text.length; i++) {
    const char = text[i] as string;
    if (inString) {
      if (char === '\\') i++;
      else if (char === '"') inString = false;
      continue;
    }
    if (char === ' ' || char === '\n' || char === '\r' || char === '\t') continue;
    if (char === '"') inString = true;
    else if (char === '{' || char === '[') depth++;
    else if (char === '}' || char === ']') depth--;
    else if (noNumber === null && BEFORE_VALUE.includes(before)) {
      NO_NUMBER.lastIndex = i;
      noNumber = NO_NUMBER.exec(text)?.[0] ?? null;
    }
    before = char;
  }
  return { isOpen: inString || depth > 0, noNumber };
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
