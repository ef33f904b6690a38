/**
 * One row taken apart for drawing and pointing: its characters with their columns, and the cells of its tokens.
 * A reader is kept and filled again for each row, so that scrolling makes no garbage.
 */
import { columnsOf, decodeAt, INVALID } from './characters';
import { emptyTokenColumns, type TokenLayout } from './layout';

/** Stands for a token without bytes among the codes of a row. */
export const EMPTY_TOKEN = INVALID + 1;

export class RowReader {
  /** Characters: code point (or INVALID, EMPTY_TOKEN), bytes, first column, columns, token it begins in. */
  charCount = 0;
  code = new Uint32Array(512);
  byteFrom = new Uint32Array(512);
  byteTo = new Uint32Array(512);
  column = new Uint16Array(512);
  columns = new Uint16Array(512);
  charToken = new Uint32Array(512);

  /** Cells: columns from–to of each token in this row; `inside` is 1 where it begins inside a character. */
  cellCount = 0;
  cellToken = new Uint32Array(1024);
  from = new Float32Array(1024);
  to = new Float32Array(1024);
  inside = new Uint8Array(1024);

  /** Columns used, the newline's included. */
  width = 0;

  read(layout: TokenLayout, row: number): this {
    const { bytes, byteEnds, ids } = layout.tokens;
    const end = layout.rowEnd(row);
    let token = layout.rowToken[row] as number;
    let at = layout.rowByte[row] as number;
    this.charCount = 0;
    this.cellCount = 0;
    this.width = 0;
    let before = -1;
    // What came before in this token matters to joining, and may stand at the end of the row above.
    const start = layout.byteStart(token);
    if (at > start) before = lastCodeBefore(bytes, start, at);
    while (token < end.token) {
      const tokenEnd = byteEnds[token] as number;
      if (layout.byteStart(token) === tokenEnd) {
        if (at > end.byte) break;
        this.#addChar(EMPTY_TOKEN, at, at, emptyTokenColumns(ids[token] as number), token);
        this.#addCell(token, this.width - emptyTokenColumns(ids[token] as number), this.width, false);
        token++;
        before = -1;
        continue;
      }
      while (at < tokenEnd && at < end.byte) {
        const packed = decodeAt(bytes, at);
        const code = packed >>> 3;
        const columns = columnsOf(code, before);
        const charEnd = at + (packed & 7);
        before = code === INVALID ? -1 : code;
        if (columns === 0 && this.charCount > 0) this.byteTo[this.charCount - 1] = charEnd;
        else this.#addChar(code, at, charEnd, columns, token);
        if (charEnd <= tokenEnd) this.#addCell(token, this.width - columns, this.width, false);
        else this.#addShared(layout, token, at, charEnd, this.width - columns, columns);
        at = charEnd;
      }
      if (at >= end.byte && (byteEnds[token] as number) > end.byte) break;
      token++;
      before = -1;
    }
    return this;
  }

  /** The cell at a column, or −1. A column right of the text gives −1. */
  cellAt(column: number): number {
    for (let cell = 0; cell < this.cellCount; cell++)
      if (column >= (this.from[cell] as number) && column < (this.to[cell] as number)) return cell;
    return -1;
  }

  #addChar(code: number, from: number, to: number, columns: number, token: number): void {
    if (this.charCount === this.code.length) this.#growChars();
    const at = this.charCount++;
    this.code[at] = code;
    this.byteFrom[at] = from;
    this.byteTo[at] = to;
    this.column[at] = this.width;
    this.columns[at] = columns;
    this.charToken[at] = token;
    this.width += columns;
  }

  /** Tokens that share one character split its columns by their bytes. */
  #addShared(layout: TokenLayout, first: number, from: number, to: number, column: number, columns: number): void {
    let left = from;
    for (let token = first; left < to; token++) {
      const right = Math.min(to, layout.tokens.byteEnds[token] as number);
      if (right === left && token !== first) continue;
      const scale = columns / (to - from);
      this.#addCell(token, column + (left - from) * scale, column + (right - from) * scale, left > from);
      left = right;
    }
  }

  #addCell(token: number, from: number, to: number, inside: boolean): void {
    const last = this.cellCount - 1;
    if (last >= 0 && this.cellToken[last] === token) {
      this.to[last] = to;
      return;
    }
    if (this.cellCount === this.from.length) this.#growCells();
    const at = this.cellCount++;
    this.cellToken[at] = token;
    this.from[at] = from;
    this.to[at] = to;
    this.inside[at] = inside ? 1 : 0;
  }

  #growChars(): void {
    for (const name of ['code', 'byteFrom', 'byteTo', 'charToken'] as const) {
      const larger = new Uint32Array(this[name].length * 2);
      larger.set(this[name]);
      this[name] = larger;
    }
    for (const name of ['column', 'columns'] as const) {
      const larger = new Uint16Array(this[name].length * 2);
      larger.set(this[name]);
      this[name] = larger;
    }
  }

  #growCells(): void {
    for (const name of ['from', 'to'] as const) {
      const larger = new Float32Array(this[name].length * 2);
      larger.set(this[name]);
      this[name] = larger;
    }
    const tokens = new Uint32Array(this.cellToken.length * 2);
    tokens.set(this.cellToken);
    this.cellToken = tokens;
    const inside = new Uint8Array(this.inside.length * 2);
    inside.set(this.inside);
    this.inside = inside;
  }
}

function lastCodeBefore(bytes: Uint8Array, start: number, at: number): number {
  let from = at - 1;
  while (from > start && from > at - 4 && ((bytes[from] as number) & 0xc0) === 0x80) from--;
  const packed = decodeAt(bytes, from);
  return packed >>> 3 === INVALID || from + (packed & 7) !== at ? -1 : packed >>> 3;
}
