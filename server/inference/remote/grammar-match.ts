/**
 * How far a text follows a grammar. All ways to read it are followed at once, each a list of what must still come; lists
 * that are the same are one, so that time and memory stay in proportion to the text.
 */
import { Invalid } from '../../core/errors';
import type { Grammar, GrammarNode } from './gbnf';

/** `whole`: a text of the grammar. `prefix`: more must follow. `none`: nothing that follows can make it one. */
export type Match = 'whole' | 'prefix' | 'none';

/** What must still come, first thing first; null when nothing must. */
interface Expected {
  node: GrammarNode;
  then: Expected | null;
  /** The lists that begin with one thing more and go on with this one. */
  longer: Map<GrammarNode, Expected>;
}

/** A grammar that needs more than this at one place is left recursive, or made to be slow. */
const MOST_STEPS = 20_000;

/** Throws Invalid when the grammar is left recursive. */
export function matchGrammar(grammar: Grammar, text: string): Match {
  const matcher = new Matcher(grammar);
  for (const char of text) if (!matcher.push(char.codePointAt(0) as number)) return 'none';
  return matcher.complete ? 'whole' : 'prefix';
}

class Matcher {
  complete = false;
  readonly #grammar: Grammar;
  /** Each begins with characters. */
  #ways = new Set<Expected>();
  /** Lists at whose end nothing follows. */
  readonly #last = new Map<GrammarNode, Expected>();
  readonly #repeats = new Map<GrammarNode, Map<string, GrammarNode>>();

  constructor(grammar: Grammar) {
    this.#grammar = grammar;
    this.#enter([this.#before(null, { kind: 'rule', name: 'root' })]);
  }

  /** False when the character cannot come here. */
  push(codePoint: number): boolean {
    const next: (Expected | null)[] = [];
    for (const way of this.#ways) if (way.node.kind === 'chars' && holds(way.node, codePoint)) next.push(way.then);
    this.#enter(next);
    return next.length > 0;
  }

  /** Opens rules, groups and repetitions until characters stand first everywhere. */
  #enter(starts: (Expected | null)[]): void {
    this.#ways = new Set();
    this.complete = false;
    const seen = new Set<Expected | null>();
    const open = [...starts];
    for (let way = open.pop(); way !== undefined; way = open.pop()) {
      if (seen.has(way)) continue;
      seen.add(way);
      if (seen.size > MOST_STEPS) throw new Invalid('The grammar is left recursive or too entangled to be followed.');
      if (way === null) this.complete = true;
      else if (way.node.kind === 'chars') this.#ways.add(way);
      else open.push(...this.#opened(way.node, way.then));
    }
  }

  #opened(node: Exclude<GrammarNode, { kind: 'chars' }>, then: Expected | null): (Expected | null)[] {
    switch (node.kind) {
      case 'sequence':
        return [node.items.reduceRight<Expected | null>((rest, item) => this.#before(rest, item), then)];
      case 'choice':
        return node.options.map((option) => this.#before(then, option));
      case 'rule':
        return [this.#before(then, this.#grammar.get(node.name) as GrammarNode)];
      case 'repeat': {
        const ways: (Expected | null)[] = node.min === 0 ? [then] : [];
        if (node.max > 0) ways.push(this.#before(this.#before(then, this.#onceLess(node)), node.item));
        return ways;
      }
    }
  }

  #before(then: Expected | null, node: GrammarNode): Expected {
    const known = then === null ? this.#last : then.longer;
    const held = known.get(node);
    if (held) return held;
    const made: Expected = { node, then, longer: new Map() };
    known.set(node, made);
    return made;
  }

  #onceLess({ item, min, max }: Extract<GrammarNode, { kind: 'repeat' }>): GrammarNode {
    const left = { kind: 'repeat' as const, item, min: Math.max(0, min - 1), max: max - 1 };
    const ofItem = this.#repeats.get(item) ?? new Map<string, GrammarNode>();
    this.#repeats.set(item, ofItem);
    const key = `${left.min},${left.max}`;
    const held = ofItem.get(key) ?? left;
    ofItem.set(key, held);
    return held;
  }
}

function holds({ negated, ranges }: Extract<GrammarNode, { kind: 'chars' }>, codePoint: number): boolean {
  for (let i = 0; i < ranges.length; i += 2)
    if (codePoint >= (ranges[i] as number) && codePoint <= (ranges[i + 1] as number)) return !negated;
  return negated;
}
