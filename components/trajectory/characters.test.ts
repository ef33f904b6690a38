import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { boxedName, columnsOf, decodeAt, INVALID, isBoxed } from './characters';

function decoded(bytes: Uint8Array): string {
  let text = '';
  for (let at = 0; at < bytes.length; ) {
    const packed = decodeAt(bytes, at);
    text += packed >>> 3 === INVALID ? '\ufffd' : String.fromCodePoint(packed >>> 3);
    at += packed & 7;
  }
  return text;
}

describe('characters', () => {
  it('are decoded as the platform decodes them', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        const wellFormed = text.replace(/[\ud800-\udfff]/gu, '?');
        expect(decoded(new TextEncoder().encode(wellFormed))).toBe(wellFormed);
      }),
    );
  });
  it('are refused byte by byte where they are broken, like the platform, whatever the bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array(), (bytes) => {
        // The platform folds the bytes of one cut character into one U+FFFD; here each byte stays visible.
        const platform = new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes).replace(/\ufffd+/g, '?');
        expect(decoded(bytes).replace(/\ufffd+/g, '?')).toBe(platform);
      }),
      { numRuns: 1000 },
    );
  });
  it('name what cannot be seen', () => {
    for (const code of [0, 0x1b, 0x7f, 0x85, 0xad, 0x200b, 0x202e, 0x2066, 0xfeff, 0xe0041])
      expect(isBoxed(code)).toBe(true);
    for (const code of [0x41, 0xe9, 0x4e2d, 0x1f600, 10, 9]) expect(isBoxed(code)).toBe(false);
    expect(boxedName(0x202e)).toBe('U+202E');
    expect(boxedName(0x1b)).toBe('\\x1b');
    expect(boxedName(INVALID, 0xf0)).toBe('\\xf0');
  });
  it('join an accent to its letter within a token, and stand alone at its start', () => {
    expect(columnsOf(0x301, 0x65)).toBe(0);
    expect(columnsOf(0x301, -1)).toBe(1);
    expect(columnsOf(0x200d, 0x1f468)).toBe(0);
    expect(columnsOf(0x1f469, 0x200d)).toBe(0);
    expect(columnsOf(0x1f469, -1)).toBe(2);
  });
});
