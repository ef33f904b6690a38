/** A token's text for people: everything visible, nothing interpreted. */
import { boxedName, decodeAt, INVALID, isBoxed } from './characters';

const TAB = 9;
const NEWLINE = 10;

/** Text of a byte range; what cannot be seen is named (`\x1b`, `U+202E`), newlines are ↵ and tabs ⇥. */
export function visibleText(bytes: Uint8Array, from: number, to: number): string {
  let text = '';
  for (let at = from; at < to; ) {
    const packed = decodeAt(bytes, at);
    const code = packed >>> 3;
    const size = packed & 7;
    // The range may cut a character that is whole in the data: its bytes are shown as bytes.
    if (code === INVALID || at + size > to) text += boxedName(INVALID, bytes[at++] as number);
    else {
      text +=
        code === NEWLINE
          ? '↵'
          : code === TAB
            ? '⇥'
            : isBoxed(code) && code !== 0xfe0f && code !== 0x200d
              ? boxedName(code)
              : String.fromCodePoint(code);
      at += size;
    }
  }
  return text;
}

/** `6d 6d 73`, at most `limit` bytes, then how many more there are. */
export function hexBytes(bytes: Uint8Array, from: number, to: number, limit = 48): string {
  const shown = Array.from(bytes.subarray(from, Math.min(to, from + limit)), (byte) =>
    byte.toString(16).padStart(2, '0'),
  );
  return to - from > limit ? `${shown.join(' ')} … +${to - from - limit}` : shown.join(' ');
}

/** A token whose whole text is a control string of a chat template, as `<|im_end|>`. */
export function isControlString(bytes: Uint8Array, from: number, to: number): boolean {
  const length = to - from;
  if (length < 3 || length > 48 || bytes[from] !== 60 || bytes[to - 1] !== 62) return false;
  const text = new TextDecoder().decode(bytes.subarray(from, to));
  return /^<(?:[|｜].{1,44}[|｜]|\/?s|bos|eos|pad|unk|mask|start_of_turn|end_of_turn|endoftext)>$/u.test(text);
}
