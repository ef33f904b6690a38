import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type TokenTexts, tokenTexts } from './text';

const encode = (text: string) => [...new TextEncoder().encode(text)];

function textsOf(tokens: number[][]): TokenTexts {
  let end = 0;
  return tokenTexts({
    bytes: Uint8Array.from(tokens.flat()),
    byteEnds: Uint32Array.from(tokens, (t) => (end += t.length)),
  });
}

function cells({ count, tokenStarts, text, textStarts }: TokenTexts): [string, number][] {
  return Array.from({ length: count }, (_, c) => [
    text.slice(textStarts[c], textStarts[c + 1]),
    (tokenStarts[c + 1] ?? 0) - (tokenStarts[c] ?? 0),
  ]);
}

describe('the text of tokens', () => {
  it('is a cell a token where characters are whole', () => {
    expect(cells(textsOf([encode('Thought'), encode(': '), encode('né'), encode('日本')]))).toEqual([
      ['Thought', 1],
      [': ', 1],
      ['né', 1],
      ['日本', 1],
    ]);
  });

  it('shows an emoji split over two tokens as one cell of two, without U+FFFD', () => {
    const [a, b, c, d] = encode('😀') as [number, number, number, number];
    const texts = textsOf([encode('a'), [a, b], [c, d], encode('z')]);
    expect(cells(texts)).toEqual([
      ['a', 1],
      ['😀', 2],
      ['z', 1],
    ]);
    expect(texts.text).not.toContain('\ufffd');
    expect(cells(textsOf([[a], [b], [c], [d]]))).toEqual([['😀', 4]]);
  });

  it('keeps together tokens that share characters in a chain', () => {
    const [a, b, c] = encode('日') as [number, number, number];
    expect(cells(textsOf([[120, a], [b, c, a], [b, c], [121]]))).toEqual([
      ['x日日', 3],
      ['y', 1],
    ]);
  });

  it('leaves a U+FFFD that the model wrote', () => {
    const texts = textsOf([encode('\ufffd'), encode('a\ufffd')]);
    expect(cells(texts)).toEqual([
      ['\ufffd', 1],
      ['a\ufffd', 1],
    ]);
    expect(texts.escapeStarts).toHaveLength(0);
  });

  it('writes bytes that are no UTF-8 as \\xNN and marks where', () => {
    const texts = textsOf([[0x61, 0xff], [0xc3], [0x62], [0xed, 0xa0, 0x80], [0xf0, 0x9f]]);
    expect(texts.text).toBe('a\\xff\\xc3b\\xed\\xa0\\x80\\xf0\\x9f');
    expect([...texts.escapeStarts]).toEqual([1, 5, 10, 14, 18, 22, 26]);
    expect(cells(texts)).toEqual([
      ['a\\xff', 1],
      ['\\xc3', 1],
      ['b', 1],
      ['\\xed\\xa0\\x80', 1],
      ['\\xf0\\x9f', 1],
    ]);
  });

  it('gives tokens without bytes cells of their own, and keeps a byte order mark', () => {
    expect(cells(textsOf([[], encode('a'), [], [], encode('\ufeffb'), []]))).toEqual([
      ['', 1],
      ['a', 1],
      ['', 1],
      ['', 1],
      ['\ufeffb', 1],
      ['', 1],
    ]);
    expect(cells(textsOf([]))).toEqual([]);
  });

  it('agrees with the platform decoder wherever the bytes are text, and covers every token once', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), fc.array(fc.nat({ max: 5 }), { minLength: 60 }), (text, sizes) => {
        const bytes = encode(text);
        const tokens: number[][] = [];
        for (let at = 0, i = 0; at < bytes.length; i++) {
          const size = sizes[i % sizes.length] || (i % 7 === 0 ? 0 : 1);
          tokens.push(bytes.slice(at, at + size));
          at += size;
        }
        const texts = textsOf(tokens);
        expect(texts.text).toBe(new TextDecoder('utf-8', { ignoreBOM: true }).decode(Uint8Array.from(bytes)));
        expect(texts.tokenStarts[texts.count]).toBe(tokens.length);
        expect(texts.textStarts[texts.count]).toBe(texts.text.length);
        expect(
          cells(texts)
            .map(([cell]) => cell)
            .join(''),
        ).toBe(texts.text);
      }),
    );
  });

  it('keeps its offsets right on any bytes', () => {
    fc.assert(
      fc.property(fc.array(fc.array(fc.nat({ max: 255 }), { maxLength: 4 })), (tokens) => {
        const texts = textsOf(tokens);
        expect(texts.textStarts[texts.count]).toBe(texts.text.length);
        expect(texts.tokenStarts[texts.count]).toBe(tokens.length);
        for (const start of texts.escapeStarts) expect(texts.text.slice(start, start + 4)).toMatch(/^\\x[0-9a-f]{2}$/);
      }),
    );
  });
});
