import { describe, expect, it } from 'vitest';
import { hexBytes, isControlString, visibleText } from './token-text';
import { visibleLine } from './visible-line';

const encode = (text: string): Uint8Array => new TextEncoder().encode(text);
const shown = (bytes: Uint8Array): string => visibleText(bytes, 0, bytes.length);

describe('the text of a token', () => {
  it('names what cannot be seen and leaves markup as text', () => {
    expect(shown(encode('a\u202eb\u0000\n\t'))).toBe('aU+202Eb\\x00↵⇥');
    expect(shown(encode('<img src=x onerror=alert(1)>'))).toBe('<img src=x onerror=alert(1)>');
  });
  it('writes the bytes of a character that lies only partly in it, and never a character the model did not write', () => {
    const emoji = encode('😀');
    expect(visibleText(emoji, 0, 2)).toBe('\\xf0\\x9f');
    expect(visibleText(emoji, 2, 4)).toBe('\\x98\\x80');
    expect(shown(encode('\ufffd'))).toBe('\ufffd');
  });
  it('writes bytes in hexadecimal and says how many more there are', () => {
    expect(hexBytes(Uint8Array.of(0x6d, 0x0a), 0, 2)).toBe('6d 0a');
    expect(hexBytes(new Uint8Array(50), 0, 50)).toMatch(/ … \+2$/);
  });
  it('knows a control string of a template from markup', () => {
    const known = (text: string) => isControlString(encode(text), 0, encode(text).length);
    expect(['<|im_end|>', '</s>', '<eos>', '<｜end▁of▁sentence｜>'].map(known)).toEqual([true, true, true, true]);
    expect(['<p>', '<img src=x>', 'a', '<>'].map(known)).toEqual([false, false, false, false]);
  });
  it('fits one line of a list, cut with a sign', () => {
    expect(visibleLine('  two\nlines ')).toBe('two↵lines');
    expect(visibleLine('x'.repeat(20), 5)).toBe('xxxxx…');
  });
});
