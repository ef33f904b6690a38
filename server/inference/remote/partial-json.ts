/** JSON that may be cut anywhere: what is there of it, and whether it can still become JSON. */

export type PartialJson =
  | { state: 'whole'; value: unknown }
  /** `value` without the member or entry that was cut; undefined when there is none yet. */
  | { state: 'prefix'; value: unknown }
  | { state: 'broken' };

const DEEPEST = 200;
/** A number, string or word of which the end is missing. */
const CUT = Symbol('cut');
class NoJson extends Error {}

const WORDS = ['true', 'false', 'null'];
const SPACE = /[ \t\r\n]*/y;
const WHOLE = /"(?:[ -!#-[\]-\u{10ffff}]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"|[-+.\w]+/uy;
const STRING_BEGUN = /^"(?:[ -!#-[\]-\u{10ffff}]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*(?:\\(?:u[0-9a-fA-F]{0,3})?)?$/u;
const NUMBER_BEGUN = /^-?(?:(?:0|[1-9]\d*)(?:\.\d*)?(?:(?<=\d)[eE][+-]?\d*)?)?$/;

export function readPartialJson(text: string): PartialJson {
  try {
    return { state: 'whole', value: JSON.parse(text) };
  } catch {
    // Cut or broken.
  }
  try {
    const value = new Reader(text).value(0);
    return { state: 'prefix', value: value === CUT ? undefined : value };
  } catch (error) {
    if (error instanceof NoJson) return { state: 'broken' };
    throw error;
  }
}

/** Of a text that is not JSON as it stands: what ends with it was cut there. */
class Reader {
  readonly #text: string;
  #at = 0;
  #cut = false;

  constructor(text: string) {
    this.#text = text;
  }

  value(depth: number): unknown {
    if (depth > DEEPEST) throw new NoJson();
    this.#space();
    const next = this.#text[this.#at];
    const value = next === '{' ? this.#object(depth) : next === '[' ? this.#array(depth) : this.#scalar();
    if (depth === 0 && this.#next() !== undefined) throw new NoJson();
    return value;
  }

  #object(depth: number): unknown {
    const members: [string, unknown][] = [];
    this.#at++;
    if (this.#next() === '}') return this.#closed({});
    while (!this.#cut) {
      if (this.#next() === undefined) break;
      if (this.#text[this.#at] !== '"') throw new NoJson();
      const name = this.#scalar();
      if (name === CUT || this.#next() === undefined) break;
      if (this.#text[this.#at++] !== ':') throw new NoJson();
      const value = this.value(depth + 1);
      if (value !== CUT) members.push([String(name), value]);
      if (this.#cut || this.#next() === undefined) break;
      if (this.#text[this.#at] === '}') return this.#closed(Object.fromEntries(members));
      if (this.#text[this.#at++] !== ',') throw new NoJson();
    }
    this.#cut = true;
    return Object.fromEntries(members);
  }

  #array(depth: number): unknown {
    const entries: unknown[] = [];
    this.#at++;
    if (this.#next() === ']') return this.#closed(entries);
    while (!this.#cut) {
      const value = this.value(depth + 1);
      if (value !== CUT) entries.push(value);
      if (this.#cut || this.#next() === undefined) break;
      if (this.#text[this.#at] === ']') return this.#closed(entries);
      if (this.#text[this.#at++] !== ',') throw new NoJson();
    }
    this.#cut = true;
    return entries;
  }

  #scalar(): unknown {
    const found = this.#match(WHOLE);
    const ends = this.#at + found.length === this.#text.length;
    if (found.startsWith('"') || (found !== '' && !ends)) return this.#read(found);
    const rest = this.#text.slice(this.#at);
    const isWord = WORDS.includes(rest);
    if (isWord) return this.#read(rest);
    if (!NUMBER_BEGUN.test(rest) && !STRING_BEGUN.test(rest) && !WORDS.some((word) => word.startsWith(rest)))
      throw new NoJson();
    this.#at = this.#text.length;
    this.#cut = true;
    return CUT;
  }

  #read(found: string): unknown {
    this.#at += found.length;
    try {
      return JSON.parse(found);
    } catch {
      throw new NoJson();
    }
  }

  #closed<T>(value: T): T {
    this.#at++;
    return value;
  }

  #next(): string | undefined {
    this.#space();
    return this.#text[this.#at];
  }

  #match(pattern: RegExp): string {
    pattern.lastIndex = this.#at;
    return pattern.exec(this.#text)?.[0] ?? '';
  }

  #space(): void {
    this.#at += this.#match(SPACE).length;
  }
}
