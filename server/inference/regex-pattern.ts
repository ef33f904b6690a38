/** Reads the common part of a regular expression (JavaScript, `u` flag) into a tree. */
import { Invalid } from '../core/errors';

/** A class of characters: first and last code point of each run, both included, in order and apart from each other. */
export type Ranges = readonly (readonly [first: number, last: number])[];

export type Pattern =
  | { kind: 'characters'; ranges: Ranges }
  | { kind: 'sequence' | 'any of'; parts: Pattern[] }
  | { kind: 'repeat'; part: Pattern; least: number; most: number };

const MOST_REPETITIONS = 1000;
const DEEPEST = 100;
const LAST_POINT = 0x10ffff;
/** Halves of characters beyond U+FFFF; no text holds one alone. */
const SURROGATES: Ranges = [[0xd800, 0xdfff]];
const DIGIT = ranges('09');
const WORD = ranges('09AZ__az');
const SPACE = ranges(
  '\t\r  \u00a0\u00a0\u1680\u1680\u2000\u200a\u2028\u2029\u202f\u202f\u205f\u205f\u3000\u3000\ufeff\ufeff',
);
const LINE_END = ranges('\n\n\r\r\u2028\u2029');
const CLASSES: Record<string, Ranges> = {
  d: DIGIT,
  D: complement(DIGIT),
  w: WORD,
  W: complement(WORD),
  s: SPACE,
  S: complement(SPACE),
};
const CONTROLS: Record<string, number> = { n: 10, r: 13, t: 9, f: 12, v: 11, 0: 0 };
const NAMES: Record<string, string> = {
  '(?=': 'a look-ahead',
  '(?!': 'a look-ahead',
  '(?<=': 'a look-behind',
  '(?<!': 'a look-behind',
  '\\b': 'a word boundary',
  '\\B': 'a word boundary',
  '\\k': 'a reference to a group',
  '\\p': 'a Unicode property',
  '\\P': 'a Unicode property',
  '\\c': 'a control letter',
};

/** Throws Invalid naming the part that is broken or that no grammar can hold. */
export function parseRegex(source: string): Pattern {
  try {
    new RegExp(source, 'u');
  } catch (error) {
    throw new Invalid(
      `The regular expression of the constraint cannot be read: ${String((error as Error).message).slice(0, 300)}.`,
    );
  }
  return new RegexReader(source).read();
}

class RegexReader {
  readonly #source: string;
  #at = 0;
  #depth = 0;

  constructor(source: string) {
    this.#source = source;
  }

  read(): Pattern {
    return this.#alternatives();
  }

  #alternatives(): Pattern {
    if (++this.#depth > DEEPEST) throw this.#refuse(`groups more than ${DEEPEST} deep`);
    const parts = [this.#sequence()];
    while (this.#take('|')) parts.push(this.#sequence());
    this.#depth--;
    return parts.length === 1 && parts[0] ? parts[0] : { kind: 'any of', parts };
  }

  #sequence(): Pattern {
    const parts: Pattern[] = [];
    while (this.#depth === 1 && this.#take('^')) {}
    for (;;) {
      const next = this.#source[this.#at];
      if (next === undefined || next === '|' || next === ')') break;
      if (next === '^') throw this.#refuse('an anchor ^ that is not at the beginning');
      if (next === '$') {
        this.#at++;
        const after = this.#source[this.#at];
        if (this.#depth > 1 || !(after === undefined || after === '|' || after === '$'))
          throw this.#refuse('an anchor $ that is not at the end');
        continue;
      }
      parts.push(this.#repeated(this.#atom(next)));
    }
    return parts.length === 1 && parts[0] ? parts[0] : { kind: 'sequence', parts };
  }

  #repeated(part: Pattern): Pattern {
    const found = /^(?:([*+?])|\{(\d+)(,?)(\d*)\})\??/.exec(this.#source.slice(this.#at));
    if (!found) return part;
    this.#at += found[0].length;
    const [, sign, low, comma, high] = found;
    const least = sign ? (sign === '+' ? 1 : 0) : Number(low);
    const most =
      sign === '?' ? 1 : sign || (comma && !high) ? Number.POSITIVE_INFINITY : comma ? Number(high) : Number(low);
    if (least > MOST_REPETITIONS || (most !== Number.POSITIVE_INFINITY && most > MOST_REPETITIONS))
      throw this.#refuse(`the repetition ${found[0].slice(0, 40)} (the most is ${MOST_REPETITIONS})`);
    return { kind: 'repeat', part, least, most };
  }

  #atom(next: string): Pattern {
    if (next === '(') return this.#group();
    if (next === '[') return { kind: 'characters', ranges: this.#class() };
    if (next === '.') {
      this.#at++;
      return { kind: 'characters', ranges: complement(LINE_END) };
    }
    const ranges = next === '\\' ? this.#escape() : one(this.#character());
    if (ranges[0]?.[1] === 0) throw this.#refuse('the character U+0000');
    return { kind: 'characters', ranges };
  }

  #group(): Pattern {
    const opening = /^\((?:\?:|\?<[A-Za-z_$][\w$]*>|(?!\?))/.exec(this.#source.slice(this.#at));
    if (!opening) {
      const found = /^\(\?(?:<[=!]|[=!]|[^)]*)/.exec(this.#source.slice(this.#at))?.[0] ?? '(?';
      throw this.#refuse(NAMES[found] ?? `the group ${found.slice(0, 20)}`);
    }
    this.#at += opening[0].length;
    const inside = this.#alternatives();
    this.#at++;
    return inside;
  }

  #class(): Ranges {
    this.#at++;
    const negated = this.#take('^');
    let all: Ranges = [];
    while (!this.#take(']')) {
      const first = this.#classMember();
      const single = first.length === 1 && first[0]?.[0] === first[0]?.[1] ? first[0]?.[0] : undefined;
      const ranged = this.#source[this.#at] === '-' && this.#source[this.#at + 1] !== ']';
      if (!ranged || single === undefined) {
        all = union([...all, ...first]);
        continue;
      }
      this.#at++;
      all = union([...all, [single, this.#classMember()[0]?.[1] ?? single]]);
    }
    const kept = negated ? complement(all) : minus(all, SURROGATES);
    if (kept.length === 0) throw this.#refuse('a class that holds no character');
    return kept;
  }

  #classMember(): Ranges {
    if (this.#source[this.#at] !== '\\') return one(this.#character());
    if (this.#source[this.#at + 1] === 'b') {
      this.#at += 2;
      return one(8);
    }
    return this.#escape();
  }

  #escape(): Ranges {
    const letter = this.#source[this.#at + 1] ?? '';
    const named = CLASSES[letter];
    if (named) {
      this.#at += 2;
      return named;
    }
    const code = /^\\(?:x([0-9A-Fa-f]{2})|u\{([0-9A-Fa-f]+)\}|((?:u[0-9A-Fa-f]{4}\\)?u[0-9A-Fa-f]{4}))/.exec(
      this.#source.slice(this.#at),
    );
    if (code) {
      const units = code[3]?.split('\\u').map((unit) => Number.parseInt(unit.replace('u', ''), 16)) ?? [];
      const value = code[3]
        ? (String.fromCharCode(...units).codePointAt(0) ?? 0)
        : Number.parseInt(code[1] ?? code[2] ?? '', 16);
      // Two escapes that are no pair are two characters.
      this.#at += code[3] && units.length === 2 && value <= 0xffff ? 6 : code[0].length;
      if (value >= 0xd800 && value <= 0xdfff) throw this.#refuse('half of a character (a surrogate)');
      return one(value);
    }
    const control = CONTROLS[letter];
    if (control !== undefined) {
      this.#at += 2;
      return one(control);
    }
    if (/[1-9]/.test(letter)) throw this.#refuse('a reference to a group');
    const name = NAMES[`\\${letter}`];
    if (name) throw this.#refuse(name);
    this.#at++;
    return one(this.#character());
  }

  #character(): number {
    const point = this.#source.codePointAt(this.#at) ?? 0;
    if (point >= 0xd800 && point <= 0xdfff) throw this.#refuse('half of a character (a surrogate)');
    this.#at += point > 0xffff ? 2 : 1;
    return point;
  }

  #take(character: string): boolean {
    if (this.#source[this.#at] !== character) return false;
    this.#at++;
    return true;
  }

  #refuse(what: string): Invalid {
    return new Invalid(`The regular expression of the constraint holds ${what}, which cannot be enforced here.`, {
      at: this.#at,
    });
  }
}

function one(point: number): Ranges {
  return [[point, point]];
}

/** Pairs of first and last character, one after another. */
function ranges(pairs: string): Ranges {
  const points = Array.from(pairs, (character) => character.codePointAt(0) ?? 0);
  return union(points.flatMap((first, k) => (k % 2 === 0 ? [[first, points[k + 1] ?? first] as const] : [])));
}

function union(all: Ranges): Ranges {
  const sorted = [...all].sort((a, b) => a[0] - b[0]);
  const joined: [number, number][] = [];
  for (const [first, last] of sorted) {
    const before = joined.at(-1);
    if (before && first <= before[1] + 1) before[1] = Math.max(before[1], last);
    else joined.push([first, last]);
  }
  return joined;
}

/** Every character that is not in `held`; U+0000, which engines take for the end, and halves are never among them. */
function complement(held: Ranges): Ranges {
  const free: [number, number][] = [];
  let next = 1;
  for (const [first, last] of union([...held, ...SURROGATES])) {
    if (first > next) free.push([next, first - 1]);
    next = last + 1;
  }
  if (next <= LAST_POINT) free.push([next, LAST_POINT]);
  return free;
}

function minus(held: Ranges, taken: Ranges): Ranges {
  return complement(union([...complement(held), ...taken]));
}
