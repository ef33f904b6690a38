/**
 * Characters as the token view draws them, read straight from bytes: no strings are made while a million tokens are
 * laid out. Everything that would be unseen or would move its neighbours (control characters, marks that turn the
 * direction of text, broken bytes) becomes a boxed name, so that nothing in the data hides from a reader.
 */

/** What `decodeAt` gives for a byte that is no UTF-8: one past the last code point. */
export const INVALID = 0x110000;

/** Drawn as a sign of its own, one column. */
export const NO_BREAK_SPACE = 0xa0;
const IDEOGRAPHIC_SPACE = 0x3000;

const CONTROL = 3;
const MARK = 2;
const WIDE = 1;
const INVISIBLE = 4;

/** Half-open ranges of the basic plane that take two columns (East Asian Wide and Fullwidth, emoji). */
const WIDE_RANGES: readonly [number, number][] = [
  [0x1100, 0x1160],
  [0x231a, 0x231c],
  [0x2329, 0x232b],
  [0x23e9, 0x23ed],
  [0x23f0, 0x23f1],
  [0x23f3, 0x23f4],
  [0x25fd, 0x25ff],
  [0x2614, 0x2616],
  [0x2648, 0x2654],
  [0x267f, 0x2680],
  [0x2693, 0x2694],
  [0x26a1, 0x26a2],
  [0x26aa, 0x26ac],
  [0x26bd, 0x26bf],
  [0x26c4, 0x26c6],
  [0x26ce, 0x26cf],
  [0x26d4, 0x26d5],
  [0x26ea, 0x26eb],
  [0x26f2, 0x26f4],
  [0x26f5, 0x26f6],
  [0x26fa, 0x26fb],
  [0x26fd, 0x26fe],
  [0x2705, 0x2706],
  [0x270a, 0x270c],
  [0x2728, 0x2729],
  [0x274c, 0x274d],
  [0x274e, 0x274f],
  [0x2753, 0x2756],
  [0x2757, 0x2758],
  [0x2795, 0x2798],
  [0x27b0, 0x27b1],
  [0x27bf, 0x27c0],
  [0x2b1b, 0x2b1d],
  [0x2b50, 0x2b51],
  [0x2b55, 0x2b56],
  [0x2e80, 0x303f],
  [0x3041, 0x3248],
  [0x3250, 0x4dc0],
  [0x4e00, 0xa4d0],
  [0xa960, 0xa980],
  [0xac00, 0xd7a4],
  [0xf900, 0xfb00],
  [0xfe10, 0xfe1a],
  [0xfe30, 0xfe70],
  [0xff01, 0xff61],
  [0xffe0, 0xffe7],
];

let table: Uint8Array | null = null;

/** One byte a code point of the basic plane: 0 narrow, else one of the classes above. Made on first use. */
function classes(): Uint8Array {
  if (table) return table;
  table = new Uint8Array(0x10000);
  const isMark = /^\p{M}$/u;
  const isInvisible = /^[\p{Cf}\p{Cn}\p{Co}\p{Zl}\p{Zp}\p{Zs}]$/u;
  for (const [from, to] of WIDE_RANGES) table.fill(WIDE, from, to);
  for (let code = 0x80; code < 0x10000; code++) {
    // CJK, Hangul and surrogates hold neither marks nor invisible characters.
    if (code === 0x3400) code = 0xd800;
    const character = String.fromCharCode(code);
    if (isMark.test(character)) table[code] = MARK;
    else if (isInvisible.test(character) || (code >= 0xd800 && code < 0xe000)) table[code] = INVISIBLE;
  }
  table.fill(CONTROL, 0, 0x20);
  table.fill(CONTROL, 0x7f, 0xa0);
  table[NO_BREAK_SPACE] = 0;
  table[IDEOGRAPHIC_SPACE] = WIDE;
  return table;
}

function classOf(code: number): number {
  if (code < 0x10000) return classes()[code] as number;
  if (code >= 0xe0000) return INVISIBLE;
  if (code >= 0x1f3fb && code <= 0x1f3ff) return WIDE;
  if ((code >= 0x1f300 && code < 0x1f650) || (code >= 0x1f680 && code < 0x1f700) || (code >= 0x1f900 && code < 0x1fb00))
    return WIDE;
  if ((code >= 0x20000 && code < 0x3fffe) || (code >= 0x16fe0 && code < 0x18d80) || (code >= 0x1aff0 && code < 0x1b300))
    return WIDE;
  if (code === 0x1f004 || code === 0x1f0cf || code === 0x1f18e || (code >= 0x1f191 && code < 0x1f19b)) return WIDE;
  if (code >= 0x1f200 && code < 0x1f300) return WIDE;
  return /^\p{M}$/u.test(String.fromCodePoint(code)) ? MARK : 0;
}

/**
 * The character at byte `at`: its code point × 8 plus the number of its bytes, in one number because this runs once
 * a character of a million tokens. A byte that starts no valid character gives INVALID × 8 + 1.
 */
export function decodeAt(bytes: Uint8Array, at: number): number {
  const first = bytes[at] as number;
  if (first < 0x80) return first * 8 + 1;
  const second = (bytes[at + 1] ?? 0) ^ 0x80;
  if (first < 0xc2 || second > 0x3f) return INVALID * 8 + 1;
  if (first < 0xe0) return (((first & 0x1f) << 6) | second) * 8 + 2;
  const third = (bytes[at + 2] ?? 0) ^ 0x80;
  if (third > 0x3f) return INVALID * 8 + 1;
  if (first < 0xf0) {
    const code = ((first & 0xf) << 12) | (second << 6) | third;
    return code < 0x800 || (code >= 0xd800 && code < 0xe000) ? INVALID * 8 + 1 : code * 8 + 3;
  }
  const fourth = (bytes[at + 3] ?? 0) ^ 0x80;
  const code = ((first & 7) << 18) | (second << 12) | (third << 6) | fourth;
  return first > 0xf4 || fourth > 0x3f || code < 0x10000 || code > 0x10ffff ? INVALID * 8 + 1 : code * 8 + 4;
}

const NEWLINE = 10;
const TAB = 9;
const ZERO_WIDTH_JOINER = 0x200d;
const isSelector = (code: number): boolean => code === 0xfe0e || code === 0xfe0f;
const isSkinTone = (code: number): boolean => code >= 0x1f3fb && code <= 0x1f3ff;

/**
 * Columns of a character that follows `before` within the same token (−1: none). 0 means that it is drawn
 * together with the character before it: accents, joined emoji. At the start of a token nothing is joined.
 */
export function columnsOf(code: number, before: number): number {
  if (code < 0x7f) {
    if (code >= 0x20 || code === NEWLINE) return 1;
    return code === TAB ? 2 : boxedName(code).length;
  }
  if (code === INVALID) return 4;
  const joinable = before > 0x20 && before !== INVALID && before !== 0x7f;
  if (joinable && (before === ZERO_WIDTH_JOINER || isSkinTone(code)) && classOf(code) === WIDE) return 0;
  switch (classOf(code)) {
    case MARK:
      return joinable && (isSelector(code) || classOf(before) !== INVISIBLE)
        ? 0
        : isSelector(code)
          ? boxedName(code).length
          : 1;
    case WIDE:
      return 2;
    case INVISIBLE:
      return code === ZERO_WIDTH_JOINER && joinable && classOf(before) !== 0 ? 0 : boxedName(code).length;
    case CONTROL:
      return boxedName(code).length;
    default:
      return 1;
  }
}

/** True for what is drawn as a name in a box, not as itself. */
export function isBoxed(code: number): boolean {
  if (code < 0x7f) return code < 0x20 && code !== NEWLINE && code !== TAB;
  if (code === INVALID || isSelector(code)) return true;
  const kind = classOf(code);
  return kind === CONTROL || kind === INVISIBLE;
}

/** True for an accent or other mark that needs a letter before it. */
export function isMark(code: number): boolean {
  return code > 0x7f && code !== INVALID && classOf(code) === MARK;
}

/** Line breaks are welcome beside these. */
export function breaksAnywhere(code: number): boolean {
  return code >= 0x1100 && code !== INVALID && classOf(code) === WIDE;
}

/** `\x1b`, `U+202E`; for a broken byte pass the byte with `invalid`. */
export function boxedName(code: number, invalidByte = 0xff): string {
  if (code === INVALID) return `\\x${invalidByte.toString(16).padStart(2, '0')}`;
  if (code < 0xa0) return code === 13 ? '\\r' : `\\x${code.toString(16).padStart(2, '0')}`;
  return `U+${code.toString(16).toUpperCase().padStart(4, '0')}`;
}
