/**
 * Regular expressions and choices as GBNF, for engines that know grammars only. The language is that of JavaScript's
 * regular expressions with the `u` flag, anchored at both ends; what no grammar can hold is refused by name.
 */
import { Invalid } from '../core/errors';
import type { Constraint } from './backend';
import { type Pattern, parseRegex } from './regex-pattern';

/** Engines build a rule for every repetition; more than this is refused by some and slow in all. */
const LONGEST_GRAMMAR = 200_000;

export type RegularConstraint = Extract<Constraint, { kind: 'regex' | 'choice' }>;

/** Throws Invalid naming the part of the expression that cannot be enforced, or an empty list of choices. */
export function constraintGrammar(constraint: RegularConstraint): string {
  const pattern = constraint.kind === 'regex' ? parseRegex(constraint.pattern) : choicePattern(constraint.choices);
  const grammar = `root ::= ${write(withoutEmptyLoops(pattern))}`;
  if (grammar.length > LONGEST_GRAMMAR)
    throw new Invalid(
      `The ${constraint.kind} of the constraint becomes a grammar of ${grammar.length} characters; the most is ${LONGEST_GRAMMAR}.`,
    );
  return grammar;
}

function choicePattern(choices: readonly string[]): Pattern {
  if (choices.length === 0) throw new Invalid('The constraint lists no choices; at least one is needed.');
  return {
    kind: 'any of',
    parts: choices.map((choice) => ({
      kind: 'sequence',
      parts: Array.from(choice, (character): Pattern => {
        const point = character.codePointAt(0) ?? 0;
        return { kind: 'characters', ranges: [[point, point]] };
      }),
    })),
  };
}

function canBeEmpty(pattern: Pattern): boolean {
  switch (pattern.kind) {
    case 'characters':
      return false;
    case 'sequence':
      return pattern.parts.every(canBeEmpty);
    case 'any of':
      return pattern.parts.some(canBeEmpty);
    case 'repeat':
      return pattern.least === 0 || canBeEmpty(pattern.part);
  }
}

/** The same language, but nothing that can be empty is repeated: a grammar would recurse into it without end. */
function withoutEmptyLoops(pattern: Pattern): Pattern {
  switch (pattern.kind) {
    case 'characters':
      return pattern;
    case 'sequence':
    case 'any of':
      return { kind: pattern.kind, parts: pattern.parts.map(withoutEmptyLoops) };
    case 'repeat': {
      const part = withoutEmptyLoops(pattern.part);
      return canBeEmpty(part) ? { ...pattern, part: nonEmpty(part), least: 0 } : { ...pattern, part };
    }
  }
}

/** The language of `pattern` (which has no empty loops) without the empty text. */
function nonEmpty(pattern: Pattern): Pattern {
  switch (pattern.kind) {
    case 'characters':
      return pattern;
    case 'any of':
      return { kind: 'any of', parts: pattern.parts.filter(canWrite).map(nonEmpty) };
    case 'repeat':
      return { ...pattern, least: Math.max(1, pattern.least) };
    case 'sequence': {
      if (!canBeEmpty(pattern)) return pattern;
      // The first part that writes something is one of them; what stands before it is empty.
      const parts = pattern.parts.flatMap((part, k): Pattern[] =>
        canWrite(part) ? [{ kind: 'sequence', parts: [nonEmpty(part), ...pattern.parts.slice(k + 1)] }] : [],
      );
      return { kind: 'any of', parts };
    }
  }
}

/** Whether any text but the empty one belongs to it. */
function canWrite(pattern: Pattern): boolean {
  switch (pattern.kind) {
    case 'characters':
      return true;
    case 'sequence':
    case 'any of':
      return pattern.parts.some(canWrite);
    case 'repeat':
      return pattern.most > 0 && canWrite(pattern.part);
  }
}

function write(pattern: Pattern): string {
  switch (pattern.kind) {
    case 'characters':
      return `[${pattern.ranges.map(([first, last]) => (first === last ? point(first) : `${point(first)}-${point(last)}`)).join('')}]`;
    case 'sequence':
      return pattern.parts.length === 0 ? '""' : pattern.parts.map(write).join(' ');
    case 'any of':
      return pattern.parts.length === 0 ? '""' : `(${pattern.parts.map(write).join(' | ')})`;
    case 'repeat': {
      const { part, least, most } = pattern;
      if (most === 0 || !canWrite(part)) return '""';
      return `(${write(part)})${times(least, most)}`;
    }
  }
}

function times(least: number, most: number): string {
  if (most === Number.POSITIVE_INFINITY) return least === 0 ? '*' : least === 1 ? '+' : `{${least},}`;
  if (least === 0 && most === 1) return '?';
  return least === most ? `{${least}}` : `{${least},${most}}`;
}

function point(value: number): string {
  const character = String.fromCodePoint(value);
  if (/^[A-Za-z0-9 ]$/.test(character)) return character;
  if (value <= 0xff) return `\\x${value.toString(16).padStart(2, '0')}`;
  if (value <= 0xffff) return `\\u${value.toString(16).padStart(4, '0')}`;
  return `\\U${value.toString(16).padStart(8, '0')}`;
}
