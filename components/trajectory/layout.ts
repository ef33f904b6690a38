/**
 * Where every token stands: rows of monospace columns, in blocks by step and segment, held in typed arrays.
 *
 * A row is a place in the byte stream, not a list of tokens, because a token may be longer than a row and a
 * character may be split over tokens. Layout runs in slices (`advance`), so that the first rows can be painted
 * at once and a million tokens never hold a frame.
 */
import type { WireTokens } from '../../server/core/tokens/wire';
import { SEGMENT_KINDS, segmentCode } from '../../server/core/vocabulary';
import { breaksAnywhere, columnsOf, decodeAt, INVALID } from './characters';

export interface LayoutMetrics {
  /** Columns of a row; at least 8. */
  columns: number;
  /** Pixels. */
  rowHeight: number;
  /** Space above a block, and above one that begins a step (there the step's header stands). */
  blockGap: number;
  stepGap: number;
}

const STOP = segmentCode('stop');
const OBSERVATION = segmentCode('observation');
const SPACE = 32;
const NEWLINE = 10;

/** Columns a token without bytes takes: its id in a box, `⟨151645⟩`. */
export const emptyTokenColumns = (id: number): number => String(id).length + 2;

function grow(values: Uint32Array<ArrayBuffer>): Uint32Array<ArrayBuffer> {
  const larger = new Uint32Array(values.length * 2);
  larger.set(values);
  return larger;
}

export class TokenLayout {
  readonly tokens: WireTokens;
  readonly metrics: LayoutMetrics;
  readonly length: number;

  /** First token that touches row r, and the byte the row starts at. */
  rowToken = new Uint32Array(1024);
  rowByte = new Uint32Array(1024);
  rowCount = 0;

  /** First token and first row of block b, and the y of that row. */
  blockToken = new Uint32Array(256);
  blockRow = new Uint32Array(256);
  blockY = new Float64Array(256);
  blockCount = 0;

  /** Tokens laid out so far. */
  done = 0;

  #byte = 0;
  #column = 0;
  #pendingBreak = true;
  #before = -1;
  // The last place in this row where a break is welcome.
  #breakToken = 0;
  #breakByte = 0;
  #breakColumn = -1;

  constructor(tokens: WireTokens, metrics: LayoutMetrics) {
    this.tokens = tokens;
    this.metrics = { ...metrics, columns: Math.max(8, Math.floor(metrics.columns)) };
    this.length = tokens.ids.length;
  }

  get finished(): boolean {
    return this.done >= this.length;
  }

  /** Lays out up to `count` further tokens. True when all are placed. */
  advance(count: number): boolean {
    const { ids, bytes, byteEnds } = this.tokens;
    const { columns } = this.metrics;
    const until = Math.min(this.length, this.done + count);
    for (let token = this.done; token < until; token++) {
      const end = byteEnds[token] as number;
      const start = token === 0 ? 0 : (byteEnds[token - 1] as number);
      // From here `#byte` may already lie past `start`: an earlier token began a character that ends in this one.
      if (this.#startsBlock(token)) this.#openBlock(token, Math.max(start, this.#byte));
      this.#before = -1;
      if (start === end) {
        this.#place(token, Math.max(start, this.#byte), emptyTokenColumns(ids[token] as number), columns, true);
        continue;
      }
      while (this.#byte < end) {
        const packed = decodeAt(bytes, this.#byte);
        const code = packed >>> 3;
        if (code === NEWLINE) {
          if (this.#pendingBreak) this.#openRow(token, this.#byte);
          this.#pendingBreak = true;
        } else {
          // " word" moves to the next row with its space, so that the token stays whole; a lone space stays behind.
          const leads = code === SPACE && this.#byte === start && end > start + 1;
          const width = columnsOf(code, this.#before);
          this.#place(token, this.#byte, width, columns, leads || (width > 0 && breaksAnywhere(code)));
          if (code === SPACE && !leads) this.#breakAfter(token, this.#byte + 1);
        }
        this.#before = code === INVALID ? -1 : code;
        this.#byte += packed & 7;
      }
    }
    this.done = until;
    return this.finished;
  }

  #startsBlock(token: number): boolean {
    if (token === 0) return true;
    const { segment, stepIndex } = this.tokens;
    if (stepIndex[token] !== stepIndex[token - 1]) return true;
    if (segment[token] === segment[token - 1]) return false;
    // "Observation:" is the stop string the policy wrote; what the tool said goes on in the same row.
    return !(segment[token] === OBSERVATION && segment[token - 1] === STOP);
  }

  #openBlock(token: number, byte: number): void {
    const block = this.blockCount;
    if (block === this.blockToken.length) {
      this.blockToken = grow(this.blockToken);
      this.blockRow = grow(this.blockRow);
      const heights = new Float64Array(this.blockY.length * 2);
      heights.set(this.blockY);
      this.blockY = heights;
    }
    const step = this.tokens.stepIndex[token] as number;
    const newStep = step >= 0 && (token === 0 || step !== this.tokens.stepIndex[token - 1]);
    const gap = newStep ? this.metrics.stepGap : this.metrics.blockGap;
    this.blockY[block] = (block === 0 ? 0 : this.height) + gap;
    this.blockToken[block] = token;
    this.blockRow[block] = this.rowCount;
    this.blockCount++;
    this.#openRow(token, byte);
  }

  #openRow(token: number, byte: number): void {
    if (this.rowCount === this.rowToken.length) {
      this.rowToken = grow(this.rowToken);
      this.rowByte = grow(this.rowByte);
    }
    this.rowToken[this.rowCount] = token;
    this.rowByte[this.rowCount] = byte;
    this.rowCount++;
    this.#column = 0;
    this.#breakColumn = -1;
    this.#pendingBreak = false;
  }

  #breakAfter(token: number, byte: number): void {
    const end = this.tokens.byteEnds[token] as number;
    this.#breakToken = byte < end ? token : token + 1;
    this.#breakByte = byte;
    this.#breakColumn = this.#column;
  }

  #place(token: number, byte: number, width: number, columns: number, breakable: boolean): void {
    if (this.#pendingBreak) this.#openRow(token, byte);
    if (breakable && this.#column > 0) {
      this.#breakToken = token;
      this.#breakByte = byte;
      this.#breakColumn = this.#column;
    }
    if (this.#column + width > columns && this.#column > 0) {
      const carried = this.#column - this.#breakColumn;
      // A break that would leave more than half of the row empty reads worse than a word cut in two.
      if (this.#breakColumn > columns / 2 && this.#breakToken <= token && carried + width <= columns) {
        this.#openRow(this.#breakToken, this.#breakByte);
        this.#column = carried;
      } else this.#openRow(token, byte);
    }
    this.#column += width;
  }

  /** Pixels down to the end of what is laid out. */
  get height(): number {
    if (this.blockCount === 0) return 0;
    const last = this.blockCount - 1;
    return (this.blockY[last] as number) + (this.rowCount - (this.blockRow[last] as number)) * this.metrics.rowHeight;
  }

  /** Height of everything: exact when finished, else as the rows so far promise. */
  get estimatedHeight(): number {
    return this.finished || this.done === 0 ? this.height : (this.height / this.done) * this.length;
  }

  blockOfRow(row: number): number {
    return lastAtMost(this.blockRow, this.blockCount, row);
  }

  yOfRow(row: number): number {
    const block = this.blockOfRow(row);
    return (this.blockY[block] as number) + (row - (this.blockRow[block] as number)) * this.metrics.rowHeight;
  }

  /** The row at height y, or the nearest one above it. */
  rowAt(y: number): number {
    if (this.rowCount === 0) return 0;
    const block = lastAtMost(this.blockY, this.blockCount, y);
    const first = this.blockRow[block] as number;
    const end = block + 1 < this.blockCount ? (this.blockRow[block + 1] as number) : this.rowCount;
    const inside = Math.floor((y - (this.blockY[block] as number)) / this.metrics.rowHeight);
    return Math.max(first, Math.min(end - 1, first + inside));
  }

  byteStart(token: number): number {
    return token === 0 ? 0 : (this.tokens.byteEnds[token - 1] as number);
  }

  /** The row a token begins in. */
  rowOfToken(token: number): number {
    const start = this.byteStart(token);
    const empty = start === this.tokens.byteEnds[token];
    let low = 0;
    let high = this.rowCount - 1;
    while (low < high) {
      const middle = (low + high + 1) >>> 1;
      const first = this.rowToken[middle] as number;
      if (first < token || (first === token && (empty || (this.rowByte[middle] as number) <= start))) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  /** One past the last token and byte of a row. A token that goes on in the next row counts here too. */
  rowEnd(row: number): { token: number; byte: number } {
    if (row + 1 >= this.rowCount) {
      const token = this.done;
      return { token, byte: token === 0 ? 0 : (this.tokens.byteEnds[token - 1] as number) };
    }
    const byte = this.rowByte[row + 1] as number;
    const next = this.rowToken[row + 1] as number;
    const start = this.byteStart(next);
    return { token: byte > start && start < (this.tokens.byteEnds[next] as number) ? next + 1 : next, byte };
  }

  segmentName(token: number): (typeof SEGMENT_KINDS)[number] {
    return SEGMENT_KINDS[this.tokens.segment[token] as number] ?? 'template';
  }
}

/** The last index below `count` whose value is at most `wanted`; values rise. */
export function lastAtMost(values: ArrayLike<number>, count: number, wanted: number): number {
  let low = 0;
  let high = count - 1;
  while (low < high) {
    const middle = (low + high + 1) >>> 1;
    if ((values[middle] as number) <= wanted) low = middle;
    else high = middle - 1;
  }
  return Math.max(0, low);
}
