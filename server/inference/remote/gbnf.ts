/**
 * Grammars in GBNF (llama.cpp's form), read and matched here to find out whether a server kept to one. Literals, classes,
 * groups, `|`, `*`, `+`, `?`, `{m,n}` and rules; that is what grammars for constrained generation are made of.
 */
import { Invalid } from '../../core/errors';

/** What a grammar is made of. `ranges`: pairs of first and last code point. */
export type GrammarNode =
  | { kind: 'chars'; negated: boolean; ranges: number[] }
  | { kind: 'sequence'; items: GrammarNode[] }
  | { kind: 'choice'; options: GrammarNode[] }
  | { kind: 'repeat'; item: GrammarNode; min: number; max: number }
  | { kind: 'rule'; name: string };

export type Grammar = ReadonlyMap<string, GrammarNode>;

const ESCAPES: Record<string, string> = { n: '\n', r: '\r', t: '\t', '\\': '\\', '"': '"', '[': '[', ']': ']' };
const HEX_DIGITS: Record<string, number> = { x: 2, u: 4, U: 8 };

/** Throws Invalid when the text is no GBNF with a rule called root. */
export function parseGbnf(text: string): Grammar {
  return new GbnfReader(text).grammar();
}

class GbnfReader {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  grammar(): Grammar {
    const rules = new Map<string, GrammarNode>();
    const used = new Set<string>(['root']);
    this.#skip(true);
    while (this.#at < this.#text.length) {
      const name = this.#name();
      this.#skip(false);
      if (!this.#take('::=')) throw this.#refuse('"::=" is missing');
      this.#skip(true);
      rules.set(name, this.#choice(used, false));
      this.#skip(true);
    }
    for (const name of used) if (!rules.has(name)) throw this.#refuse(`the rule ${name} is missing`);
    return rules;
  }

  #choice(used: Set<string>, nested: boolean): GrammarNode {
    const options = [this.#sequence(used, nested)];
    while (this.#take('|')) {
      this.#skip(true);
      options.push(this.#sequence(used, nested));
    }
    return options.length === 1 ? (options[0] as GrammarNode) : { kind: 'choice', options };
  }

  #sequence(used: Set<string>, nested: boolean): GrammarNode {
    const items: GrammarNode[] = [];
    for (let item = this.#item(used); item; item = this.#item(used)) {
      items.push(this.#repeated(item));
      this.#skip(nested);
    }
    return { kind: 'sequence', items };
  }

  #item(used: Set<string>): GrammarNode | null {
    const next = this.#text[this.#at];
    if (next === '"') return this.#literal();
    if (next === '[') return this.#charClass();
    if (next === '.') {
      this.#at++;
      return { kind: 'chars', negated: true, ranges: [] };
    }
    if (next === '(') {
      this.#at++;
      this.#skip(true);
      const inner = this.#choice(used, true);
      if (!this.#take(')')) throw this.#refuse('")" is missing');
      return inner;
    }
    if (next === undefined || !/[\w-]/.test(next)) return null;
    const name = this.#name();
    used.add(name);
    return { kind: 'rule', name };
  }

  #repeated(item: GrammarNode): GrammarNode {
    if (this.#take('*')) return { kind: 'repeat', item, min: 0, max: Number.POSITIVE_INFINITY };
    if (this.#take('+')) return { kind: 'repeat', item, min: 1, max: Number.POSITIVE_INFINITY };
    if (this.#take('?')) return { kind: 'repeat', item, min: 0, max: 1 };
    const count = /^\{\s*(\d*)\s*(,?)\s*(\d*)\s*\}/.exec(this.#text.slice(this.#at, this.#at + 40));
    if (!count) return item;
    this.#at += count[0].length;
    const min = Number(count[1]);
    const open = count[2] === ',' && count[3] === '';
    return { kind: 'repeat', item, min, max: open ? Number.POSITIVE_INFINITY : count[2] ? Number(count[3]) : min };
  }

  #literal(): GrammarNode {
    this.#at++;
    const items: GrammarNode[] = [];
    while (!this.#take('"')) {
      const char = this.#char();
      items.push({ kind: 'chars', negated: false, ranges: [char, char] });
    }
    return { kind: 'sequence', items };
  }

  #charClass(): GrammarNode {
    this.#at++;
    const negated = this.#take('^');
    const ranges: number[] = [];
    while (!this.#take(']')) {
      const first = this.#char();
      const isRange = this.#text[this.#at] === '-' && this.#text[this.#at + 1] !== ']';
      if (isRange) this.#at++;
      ranges.push(first, isRange ? this.#char() : first);
    }
    return { kind: 'chars', negated, ranges };
  }

  /** One code point of a literal or class, escapes read. */
  #char(): number {
    const code = this.#text.codePointAt(this.#at);
    if (code === undefined) throw this.#refuse('it ends inside a literal or class');
    this.#at += code > 0xffff ? 2 : 1;
    if (code !== 0x5c) return code;
    const letter = this.#text[this.#at++] ?? '';
    const plain = ESCAPES[letter];
    if (plain !== undefined) return plain.charCodeAt(0);
    const digits = this.#text.slice(this.#at, this.#at + (HEX_DIGITS[letter] ?? 0));
    if (digits === '' || !/^[0-9a-f]+$/i.test(digits)) throw this.#refuse(`\\${letter} is no escape`);
    this.#at += digits.length;
    return Number.parseInt(digits, 16);
  }

  #name(): string {
    const name = /^[\w-]+/.exec(this.#text.slice(this.#at, this.#at + 200))?.[0];
    if (!name) throw this.#refuse('the name of a rule is missing');
    this.#at += name.length;
    return name;
  }

  #take(wanted: string): boolean {
    if (!this.#text.startsWith(wanted, this.#at)) return false;
    this.#at += wanted.length;
    return true;
  }

  /** Spaces and comments; line ends only where a rule cannot end. */
  #skip(lines: boolean): void {
    const blank = lines ? /(?:\s|#[^\n]*)*/y : /(?:[ \t]|#[^\n]*)*/y;
    blank.lastIndex = this.#at;
    this.#at += blank.exec(this.#text)?.[0].length ?? 0;
  }

  #refuse(what: string): Invalid {
    return new Invalid(`The grammar cannot be read at character ${this.#at}: ${what}.`);
  }
}
