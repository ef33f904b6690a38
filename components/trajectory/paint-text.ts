/**
 * The letters of one row. ASCII is drawn as one string a shade, with spaces where others stand, because that is what
 * keeps a page of tokens at 60 frames a second; everything else is drawn character by character in its own columns,
 * so that no script, direction or joining can move what stands beside it.
 */
import { boxedName, INVALID, isBoxed, isMark, NO_BREAK_SPACE } from './characters';
import type { Context, Scene } from './paint';
import { EMPTY_TOKEN } from './row-cells';

const NEWLINE = 10;
const TAB = 9;
let sampledCodes = new Uint16Array(512);
let otherCodes = new Uint16Array(512);
const decoder = new TextDecoder();

export function paintRowText(context: Context, scene: Scene, y: number): void {
  const { layout, reader, geometry, theme } = scene;
  const { tokens } = layout;
  const middle = y + layout.metrics.rowHeight / 2 + 0.5;
  const font = `${geometry.fontSize}px ${theme.mono}`;
  if (sampledCodes.length < reader.width) {
    sampledCodes = new Uint16Array(reader.width * 2);
    otherCodes = new Uint16Array(reader.width * 2);
  }
  sampledCodes.fill(32, 0, reader.width);
  otherCodes.fill(32, 0, reader.width);
  let sampledEnd = 0;
  let otherEnd = 0;
  let special = false;
  for (let char = 0; char < reader.charCount; char++) {
    const code = reader.code[char] as number;
    if (code < 0x21 || code > 0x7e || (reader.byteTo[char] as number) - (reader.byteFrom[char] as number) > 1) {
      special ||= code !== 32;
      continue;
    }
    const column = reader.column[char] as number;
    if (tokens.mask[reader.charToken[char] as number] === 1) {
      sampledCodes[column] = code;
      sampledEnd = column + 1;
    } else {
      otherCodes[column] = code;
      otherEnd = column + 1;
    }
  }
  context.textAlign = 'left';
  context.font = font;
  if (sampledEnd > 0) {
    context.fillStyle = theme.ink;
    context.fillText(String.fromCharCode(...sampledCodes.subarray(0, sampledEnd)), geometry.textLeft, middle);
  }
  if (otherEnd > 0) {
    context.fillStyle = theme.ink2;
    context.fillText(String.fromCharCode(...otherCodes.subarray(0, otherEnd)), geometry.textLeft, middle);
  }
  if (special) paintSpecial(context, scene, y, middle, font);
}

function paintSpecial(context: Context, scene: Scene, y: number, middle: number, font: string): void {
  const { layout, reader, geometry, theme } = scene;
  const { tokens } = layout;
  const { rowHeight } = layout.metrics;
  context.textAlign = 'center';
  for (let char = 0; char < reader.charCount; char++) {
    const code = reader.code[char] as number;
    const from = reader.byteFrom[char] as number;
    const to = reader.byteTo[char] as number;
    if (code === 32 && to - from === 1) continue;
    if (code > 32 && code < 0x7f && to - from === 1) continue;
    const x = geometry.textLeft + (reader.column[char] as number) * geometry.cellWidth;
    const w = (reader.columns[char] as number) * geometry.cellWidth;
    const sampled = tokens.mask[reader.charToken[char] as number] === 1;
    if (code === NEWLINE || code === TAB || code === NO_BREAK_SPACE) {
      context.fillStyle = sampled ? theme.ink2 : theme.ink3;
      context.fillText(code === NEWLINE ? '↵' : code === TAB ? '⇥' : '⍽', x + w / 2, middle, w);
      continue;
    }
    context.fillStyle = sampled ? theme.ink : theme.ink2;
    if (code === EMPTY_TOKEN || isBoxed(code)) {
      const name =
        code === EMPTY_TOKEN
          ? `⟨${tokens.ids[reader.charToken[char] as number]}⟩`
          : boxedName(code, code === INVALID ? tokens.bytes[from] : undefined);
      context.strokeStyle = theme.ink3;
      context.lineWidth = 1;
      context.beginPath();
      context.roundRect(x + 0.5, y + 3.5, w - 2, rowHeight - 7, 2);
      context.stroke();
      context.font = `${geometry.fontSize - 2}px ${theme.mono}`;
      context.fillText(name, x + w / 2 - 0.5, middle, w - 3);
      context.font = font;
      continue;
    }
    const alone = isMark(code);
    const text = decoder.decode(tokens.bytes.subarray(from, Math.min(to, from + 64)));
    const joined = to - from > 4 || alone;
    if (joined) {
      // Marks can be piled without end; they stay inside their own row and columns.
      context.save();
      context.beginPath();
      context.rect(x - 1, y, w + 2, rowHeight);
      context.clip();
    }
    context.fillText(alone ? `◌${text}` : text, x + w / 2, middle, w + 1);
    if (joined) context.restore();
  }
}
