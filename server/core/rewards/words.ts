/** Text of answer values and how much two texts share. */
import type { Json } from '../vocabulary';

/** Null: there is no value. Lists and objects are the texts of their values, with spaces between. */
export function textOf(value: Json | undefined): string | null {
  if (value === null || value === undefined) return null;
  if (typeof value !== 'object') return String(value);
  const parts = Object.values(value).map(textOf);
  return parts.filter((part) => part !== null).join(' ');
}

/** Scripts without spaces: a character is a word. */
const SINGLE = '\\p{Script=Han}\\p{Script=Hiragana}\\p{Script=Katakana}';
/** Letters, digits, marks and `_` of the other scripts; `.` and `-` stay inside a word. */
const LETTER = `(?:(?![${SINGLE}])[\\p{L}\\p{N}\\p{M}_])`;
const WORD = new RegExp(`[${SINGLE}]|${LETTER}+(?:[.-]${LETTER}+)*`, 'gu');

export function wordsOf(text: string): string[] {
  return text.normalize('NFC').toLowerCase().match(WORD) ?? [];
}

/** 2·shared / (words of both), words as multisets. Two texts without words are alike (1) when their texts are. */
export function wordF1(text: string, reference: string): number {
  const words = wordsOf(text);
  const wanted = wordsOf(reference);
  if (words.length === 0 && wanted.length === 0) return text.trim() === reference.trim() ? 1 : 0;
  const left = new Map<string, number>();
  for (const word of wanted) left.set(word, (left.get(word) ?? 0) + 1);
  let shared = 0;
  for (const word of words) {
    const count = left.get(word) ?? 0;
    if (count === 0) continue;
    left.set(word, count - 1);
    shared++;
  }
  return (2 * shared) / (words.length + wanted.length);
}
