import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { offsetOf, placeOf, readProblems } from './text-position';

describe('places in a text', () => {
  it('go from an offset to line and column and back', () => {
    fc.assert(
      fc.property(fc.stringMatching(/^[a\n ]{0,60}$/), fc.nat(60), (text, wish) => {
        const offset = Math.min(wish, text.length);
        const { line, column } = placeOf(text, offset);
        expect(offsetOf(text, line, column)).toBe(offset);
      }),
    );
  });
  it('that do not exist give the nearest one', () => {
    expect(offsetOf('ab\ncd', 1, 99)).toBe(2);
    expect(offsetOf('ab\ncd', 99, 1)).toBe(5);
    expect(offsetOf('', 1, 1)).toBe(0);
  });
});

describe('problems in a message', () => {
  it('are one a line, with the place each names', () => {
    expect(
      readProblems('The skill has 2 problems.\nLine 4, column 7: weights sum to 0.9.\nline 9: unknown tool.\n'),
    ).toEqual([
      { text: 'The skill has 2 problems.', line: null, column: null },
      { text: 'Line 4, column 7: weights sum to 0.9.', line: 4, column: 7 },
      { text: 'line 9: unknown tool.', line: 9, column: null },
    ]);
    expect(readProblems('Bad indent (3:12)')[0]).toMatchObject({ line: 3, column: 12 });
    expect(readProblems('Bad indent at line 3:12.')[0]).toMatchObject({ line: 3, column: 12 });
  });
});
