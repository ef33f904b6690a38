/** Where a problem lies in a text, as the server's sentences write it. */
export interface ProblemLine {
  text: string;
  /** Both from 1; null when the sentence names no place. */
  line: number | null;
  column: number | null;
}

/**
 * Splits the server's message into its problems, a line each, and finds the place each one names:
 * `line 4, column 7`, `line 4:7`, `(4:7)` or `line 4`.
 */
export function readProblems(message: string): ProblemLine[] {
  return message
    .split('\n')
    .map((text) => text.trim())
    .filter((text) => text !== '')
    .map((text) => {
      const place = /\bline (\d+)(?:(?:,? column |:)(\d+))?/i.exec(text) ?? /\((\d+):(\d+)\)/.exec(text);
      return { text, line: place?.[1] ? Number(place[1]) : null, column: place?.[2] ? Number(place[2]) : null };
    });
}

/** Characters before the place; the nearest one that exists when the text has no such place. */
export function offsetOf(text: string, line: number, column: number): number {
  let start = 0;
  for (let current = 1; current < line; current += 1) {
    const end = text.indexOf('\n', start);
    if (end < 0) return text.length;
    start = end + 1;
  }
  const end = text.indexOf('\n', start);
  return Math.min(start + Math.max(0, column - 1), end < 0 ? text.length : end);
}

/** Line and column of the character at `offset`, from 1. */
export function placeOf(text: string, offset: number): { line: number; column: number } {
  const before = text.slice(0, offset).split('\n');
  return { line: before.length, column: (before.at(-1)?.length ?? 0) + 1 };
}
