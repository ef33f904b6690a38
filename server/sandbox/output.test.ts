import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CappedOutput, readable, readableJson, readableText } from './output';

const bytes = (text: string) => new TextEncoder().encode(text);
const isSafe = (text: string) => !text.includes('\0') && !/\p{Surrogate}/u.test(text);

describe('readable text', () => {
  it('keeps valid text, the byte-order mark and control characters', () => {
    expect(readableText(bytes('\ufeffé€😀\u001b[0m\r\n\u0007'))).toBe('\ufeffé€😀\u001b[0m\r\n\u0007');
  });

  it('shows what cannot be stored', () => {
    expect(readableText(new Uint8Array([0x61, 0x00, 0xff, 0xe2, 0x82]))).toBe('a\u2400\ufffd\ufffd');
    expect(readable('a\0\ud800b')).toBe('a\u2400\ufffdb');
  });

  it('is well-formed and without null characters, whatever the bytes', () => {
    fc.assert(fc.property(fc.uint8Array(), (raw) => isSafe(readableText(raw))));
    fc.assert(fc.property(fc.string({ unit: 'binary' }), (text) => isSafe(readable(text))));
  });
});

describe('readable JSON', () => {
  it('is the value itself when its text is fine', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 5 }), (value) => {
        const text = JSON.stringify(value);
        fc.pre(!/\\u0000/.test(text) && !/\\ud[89a-f]/i.test(text));
        expect(readableJson(text)).toEqual(JSON.parse(text));
      }),
    );
  });

  it('has safe strings and keys whatever the text holds', () => {
    const walk = (value: unknown): boolean =>
      typeof value === 'string'
        ? isSafe(value)
        : typeof value !== 'object' ||
          value === null ||
          Object.entries(value).every(([key, part]) => isSafe(key) && walk(part));
    const text = fc.string({ unit: fc.constantFrom('\0', '\ud800', '\udc00', '\\', 'u', '0', 'd', '8', '"') });
    fc.assert(fc.property(fc.dictionary(text, text), (value) => walk(readableJson(JSON.stringify(value)))));
  });

  it('does not mistake an escaped backslash for an escape', () => {
    expect(readableJson(JSON.stringify('\\u0000'))).toBe('\\u0000');
    expect(readableJson(JSON.stringify('\\\0'))).toBe('\\\u2400');
  });

  it('refuses what is nested too deeply, and is not fooled by brackets in strings', () => {
    expect(() => readableJson(`${'['.repeat(201)}${']'.repeat(201)}`)).toThrow('nested more than 200');
    expect(readableJson(JSON.stringify('["\\'.repeat(500)))).toBe('["\\'.repeat(500));
  });
});

it('capped output keeps the beginning and counts the rest, over both streams together', () => {
  fc.assert(
    fc.property(
      fc.nat(40),
      fc.array(
        fc.tuple(
          fc.constantFrom('stdout' as const, 'stderr' as const),
          fc.string({ unit: 'grapheme-ascii', maxLength: 12 }),
        ),
      ),
      (limit, pieces) => {
        const output = new CappedOutput(limit);
        for (const [stream, text] of pieces) output.write(stream, bytes(text));
        const total = pieces.reduce((sum, [, text]) => sum + text.length, 0);
        const kept = output.text('stdout').length + output.text('stderr').length;
        expect(kept).toBe(Math.min(limit, total));
        expect(output.droppedBytes).toBe(total - kept);
      },
    ),
  );
});
