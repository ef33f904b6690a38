/** Where a key takes the token cursor. Pure: the view asks, then scrolls. */
import type { TokenLayout } from './layout';
import type { RowReader } from './row-cells';

export type Move =
  | 'previous'
  | 'next'
  | 'up'
  | 'down'
  | 'rowStart'
  | 'rowEnd'
  | 'first'
  | 'last'
  | 'nextStep'
  | 'previousStep'
  | 'nextSampled'
  | 'previousSampled'
  | 'pageUp'
  | 'pageDown';

export function moveOfKey(key: string, control: boolean): Move | null {
  switch (key) {
    case 'ArrowLeft':
      return 'previous';
    case 'ArrowRight':
      return 'next';
    case 'ArrowUp':
      return 'up';
    case 'ArrowDown':
      return 'down';
    case 'Home':
      return control ? 'first' : 'rowStart';
    case 'End':
      return control ? 'last' : 'rowEnd';
    case 'PageUp':
      return 'pageUp';
    case 'PageDown':
      return 'pageDown';
    case 'n':
      return control ? null : 'nextStep';
    case 'p':
      return control ? null : 'previousStep';
    case ']':
      return 'nextSampled';
    case '[':
      return 'previousSampled';
    default:
      return null;
  }
}

/** The token to go to from `token`; the same one where there is none. Only what is laid out can be reached by rows. */
export function moved(layout: TokenLayout, reader: RowReader, token: number, move: Move, pageRows = 20): number {
  const last = layout.length - 1;
  const { mask } = layout.tokens;
  switch (move) {
    case 'previous':
      return Math.max(0, token - 1);
    case 'next':
      return Math.min(last, token + 1);
    case 'first':
      return 0;
    case 'last':
      return last;
    case 'nextStep':
      return beginningOfStep(layout, token, 1);
    case 'previousStep':
      return beginningOfStep(layout, token, -1);
    case 'nextSampled':
      for (let at = token + 1; at <= last; at++) if (mask[at] === 1) return at;
      return token;
    case 'previousSampled':
      for (let at = token - 1; at >= 0; at--) if (mask[at] === 1) return at;
      return token;
    case 'rowStart':
      return layout.rowToken[layout.rowOfToken(token)] as number;
    case 'rowEnd':
      return Math.max(token, layout.rowEnd(layout.rowOfToken(token)).token - 1);
    default: {
      const rows = { up: -1, down: 1, pageUp: -pageRows, pageDown: pageRows }[move];
      return inRow(layout, reader, token, rows);
    }
  }
}

function beginningOfStep(layout: TokenLayout, token: number, direction: 1 | -1): number {
  const { stepIndex } = layout.tokens;
  const begins = (at: number) => at === 0 || stepIndex[at] !== stepIndex[at - 1];
  for (let at = token + direction; at >= 0 && at < layout.length; at += direction) if (begins(at)) return at;
  return token;
}

function inRow(layout: TokenLayout, reader: RowReader, token: number, rows: number): number {
  const row = layout.rowOfToken(token);
  const wanted = Math.max(0, Math.min(layout.rowCount - 1, row + rows));
  if (wanted === row) return token;
  reader.read(layout, row);
  let column = 0;
  for (let cell = 0; cell < reader.cellCount; cell++)
    if (reader.cellToken[cell] === token) {
      column = ((reader.from[cell] as number) + (reader.to[cell] as number)) / 2;
      break;
    }
  // A long token may fill several rows: go on until another one is met.
  for (let at = wanted; at >= 0 && at < layout.rowCount; at += Math.sign(rows)) {
    reader.read(layout, at);
    if (reader.cellCount === 0) continue;
    const cell = reader.cellAt(Math.min(column, reader.width - 0.5));
    const found = reader.cellToken[cell < 0 ? reader.cellCount - 1 : cell] as number;
    if (found !== token) return found;
  }
  return token;
}
