/** Whole-string, case-sensitive patterns as in fnmatch: `*` (crosses `/`), `?`, `[abc]`, `[a-z]`, `[!abc]`. */

type Part =
  | { kind: 'char'; char: string }
  | { kind: 'any' }
  | { kind: 'star' }
  | { kind: 'class'; negated: boolean; ranges: [string, string][] };

export interface ResourcePattern {
  source: string;
  matches(text: string): boolean;
  /** What makes one pattern more specific than another. */
  wildcards: number;
  literals: number;
  stars: number;
}

export function resourcePattern(source: string): ResourcePattern {
  const parts = partsOf([...source]);
  const literals = parts.filter((part) => part.kind === 'char').length;
  return {
    source,
    matches: (text) => matches(parts, [...text]),
    literals,
    wildcards: parts.length - literals,
    stars: parts.filter((part) => part.kind === 'star').length,
  };
}

/** The pattern that matches this text alone, whatever `*`, `?` and `[` it holds. */
export function literalPattern(text: string): string {
  return text.replace(/[*?[]/g, '[$&]');
}

/** No wildcard before any wildcard, then more literal characters, then fewer `*`. Negative: `a` is the more specific. */
export function compareSpecificity(a: ResourcePattern, b: ResourcePattern): number {
  return Number(a.wildcards > 0) - Number(b.wildcards > 0) || b.literals - a.literals || a.stars - b.stars;
}

function partsOf(chars: string[]): Part[] {
  const parts: Part[] = [];
  for (let i = 0; i < chars.length; i++) {
    const char = chars[i] as string;
    if (char === '*') {
      if (parts.at(-1)?.kind !== 'star') parts.push({ kind: 'star' });
    } else if (char === '?') parts.push({ kind: 'any' });
    else if (char === '[') {
      const end = endOfClass(chars, i);
      // A bracket that is never closed is a bracket.
      if (end < 0) parts.push({ kind: 'char', char });
      else {
        parts.push(classOf(chars.slice(i + 1, end)));
        i = end;
      }
    } else parts.push({ kind: 'char', char });
  }
  return parts;
}

/** A `]` that comes first (after `!`) belongs to the class. */
function endOfClass(chars: string[], open: number): number {
  const first = open + (chars[open + 1] === '!' ? 2 : 1);
  return chars.indexOf(']', first + 1);
}

function classOf(inner: string[]): Part {
  const negated = inner[0] === '!';
  const members = negated ? inner.slice(1) : inner;
  // [*] is how a literal star is written; it is as specific as any other character.
  if (!negated && members.length === 1) return { kind: 'char', char: members[0] as string };
  const ranges: [string, string][] = [];
  for (let i = 0; i < members.length; i++) {
    const low = members[i] as string;
    const high = members[i + 2];
    if (members[i + 1] === '-' && high !== undefined) {
      ranges.push([low, high]);
      i += 2;
    } else ranges.push([low, low]);
  }
  return { kind: 'class', negated, ranges };
}

function fits(part: Part, char: string): boolean {
  if (part.kind === 'char') return part.char === char;
  if (part.kind !== 'class') return true;
  return part.ranges.some(([low, high]) => low <= char && char <= high) !== part.negated;
}

/** Goes back to the last star only: at most parts × characters steps. */
function matches(parts: Part[], text: string[]): boolean {
  let part = 0;
  let at = 0;
  let star = -1;
  let resume = 0;
  while (at < text.length) {
    const current = parts[part];
    if (current?.kind === 'star') {
      star = part++;
      resume = at;
    } else if (current && fits(current, text[at] as string)) {
      part++;
      at++;
    } else if (star >= 0) {
      part = star + 1;
      at = ++resume;
    } else return false;
  }
  while (parts[part]?.kind === 'star') part++;
  return part === parts.length;
}
