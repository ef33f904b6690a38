import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { findText, tokenOfByte } from './find';

const encode = (text: string): Uint8Array => new TextEncoder().encode(text);

describe('find', () => {
  it('finds text in either case, across token borders', () => {
    const { starts } = findText(encode('The Observation: observation'), 'OBSERVATION');
    expect(Array.from(starts)).toEqual([4, 17]);
    expect(tokenOfByte(Uint32Array.from([3, 3, 10, 28]), 4)).toBe(2);
    expect(tokenOfByte(Uint32Array.from([3, 3, 10, 28]), 3)).toBe(2);
  });
  it('finds Chinese text and counts every match', () => {
    expect(Array.from(findText(encode('数字，数字'), '数字').starts)).toEqual([0, 9]);
    expect(findText(encode('e'.repeat(5000)), 'e').starts.length).toBe(5000);
    expect(findText(encode('abc'), '').starts.length).toBe(0);
  });
  it('finds what a plain search finds', () => {
    const unit = fc.constantFrom('a', 'B', 'b', '中', ' ');
    fc.assert(
      fc.property(
        fc.string({ unit, maxLength: 40 }),
        fc.string({ unit, minLength: 1, maxLength: 4 }),
        (text, needle) => {
          const expected: number[] = [];
          const [low, wanted] = [text.toLowerCase(), needle.toLowerCase()];
          for (let at = low.indexOf(wanted); at >= 0; at = low.indexOf(wanted, at + wanted.length))
            expected.push(encode(text.slice(0, at)).length);
          expect(Array.from(findText(encode(text), needle).starts)).toEqual(expected);
        },
      ),
    );
  });
});
