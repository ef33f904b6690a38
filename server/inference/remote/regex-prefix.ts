/**
 * How far a text follows a regular expression. RE2 tells only whether a whole text fits; whether it can still become one
 * is found by running the program that re2js compiled, all its threads at once.
 */
import type { RE2JS } from 're2js';
import type { Match } from './grammar-match';

/** The compiled program, as far as it is used here; re2js gives it without types. */
interface Program {
  start: number;
  numInst(): number;
  getInst(at: number): Instruction;
}
interface Instruction {
  op: number;
  out: number;
  arg: number;
  matchRune(rune: number): boolean;
}

/** Numbers of the operations of re2js's compiler. */
const ALT = 1;
const ALT_MATCH = 2;
const FAIL = 5;
const MATCH = 6;
const RUNE = 8;
const RUNE1 = 9;
const RUNE_ANY = 10;
const RUNE_ANY_NOT_NL = 11;

/** Both ends of the text are ends of the pattern. */
export function matchRegex(pattern: RE2JS, text: string): Match {
  if (pattern.matcher(text).matches()) return 'whole';
  const program = pattern.re2().prog as Program;
  let threads = reachable(program, [program.start]);
  for (const char of text) {
    const rune = char.codePointAt(0) as number;
    const next: number[] = [];
    for (const at of threads) {
      const instruction = program.getInst(at);
      if (takes(instruction, rune)) next.push(instruction.out);
    }
    if (next.length === 0) return 'none';
    threads = reachable(program, next);
  }
  // A thread that has matched has its whole text behind it, and that was not this one: a boundary stood against it.
  return [...threads].some((at) => program.getInst(at).op !== MATCH) ? 'prefix' : 'none';
}

/** Instructions that read a character or match, from these without reading. Boundaries are taken as met. */
function reachable(program: Program, starts: number[]): Set<number> {
  const seen = new Set<number>();
  const reading = new Set<number>();
  const open = [...starts];
  for (let at = open.pop(); at !== undefined; at = open.pop()) {
    if (seen.has(at)) continue;
    seen.add(at);
    const { op, out, arg } = program.getInst(at);
    if (op === FAIL) continue;
    if (op === MATCH || (op >= RUNE && op <= RUNE_ANY_NOT_NL)) reading.add(at);
    else if (op === ALT || op === ALT_MATCH) open.push(out, arg);
    else open.push(out);
  }
  return reading;
}

function takes(instruction: Instruction, rune: number): boolean {
  switch (instruction.op) {
    case RUNE:
    case RUNE1:
      return instruction.matchRune(rune);
    case RUNE_ANY:
      return true;
    case RUNE_ANY_NOT_NL:
      return rune !== 10;
    default:
      return false;
  }
}
