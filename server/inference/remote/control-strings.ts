/**
 * Strings that spell a model's control tokens, and how text that holds them is cut so that it stays text: `<|im_end|>`
 * that a person or a tool wrote must never end a turn.
 */

/** The shapes in which models spell control tokens: <…>, <|…|>, <｜…｜>, </…>, [ABC], [/ABC]. */
const SHAPE = String.raw`<[^<>\n]+>|\[\/?(?:[A-Z][A-Z0-9_]+|gMASK|sMASK)\]`;
const WHOLE = new RegExp(`^(?:${SHAPE})$`, 'u');
const ANYWHERE = new RegExp(`(${SHAPE})`, 'u');

/** Whether a token with this text may be a control token. Where no list of them is at hand every one of the shape counts. */
export function hasControlShape(text: string): boolean {
  return WHOLE.test(text);
}

/**
 * Cuts a text that did not encode as it should into smaller ones that are encoded apart; joined they are the text.
 * Null when it is one character and cannot be cut.
 *
 * `controls`: texts of the control tokens that came out where none may; each is cut after its first character.
 * `special`: control strings are wanted as tokens and are not cut through.
 */
export function cut(text: string, controls: ReadonlySet<string>, special: boolean): string[] | null {
  const through = cutThrough(text, controls);
  if (through.length > 1) return through;
  if (special) {
    const pieces = text.split(ANYWHERE).filter((piece) => piece !== '');
    if (pieces.length > 1) return pieces;
  }
  // Tokenizers that compose characters (é of e and its accent) leave them alone when they come apart.
  const marks = text.split(/(?=\p{M})/u);
  if (marks.length > 1) return marks;
  const characters = [...text];
  if (characters.length < 2) return null;
  const middle = characters.length >> 1;
  return [characters.slice(0, middle).join(''), characters.slice(middle).join('')];
}

function cutThrough(text: string, controls: ReadonlySet<string>): string[] {
  if (controls.size === 0) return [text];
  const longestFirst = [...controls].sort((a, b) => b.length - a.length).map(escapePattern);
  const pattern = new RegExp(longestFirst.join('|'), 'gu');
  const pieces: string[] = [];
  let from = 0;
  for (;;) {
    const found = pattern.exec(text);
    if (!found) break;
    const at = found.index + String.fromCodePoint(found[0].codePointAt(0) ?? 0).length;
    pieces.push(text.slice(from, at));
    from = at;
    // Another control string may begin inside this one.
    pattern.lastIndex = at;
  }
  return [...pieces, text.slice(from)].filter((piece) => piece !== '');
}

function escapePattern(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&');
}
