import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { TokenLayout } from './layout';
import { RowReader } from './row-cells';
import { type Piece, tokensOf } from './tokens-of';

const METRICS = { columns: 20, rowHeight: 20, blockGap: 6, stepGap: 22 };

function rowsOf(layout: TokenLayout): string[] {
  return Array.from({ length: layout.rowCount }, (_, row) => {
    const end = layout.rowEnd(row);
    return new TextDecoder().decode(layout.tokens.bytes.subarray(layout.rowByte[row], end.byte));
  });
}

function laidOut(pieces: readonly (Piece | string)[], columns = METRICS.columns): TokenLayout {
  const layout = new TokenLayout(tokensOf(pieces), { ...METRICS, columns });
  layout.advance(1e9);
  return layout;
}

describe('the layout of tokens', () => {
  it('breaks rows before a word with its space and after newlines', () => {
    expect(rowsOf(laidOut(['The', ' quick', ' brown', ' fox', ' jumps\n', 'over']))).toEqual([
      'The quick brown fox',
      ' jumps\n',
      'over',
    ]);
  });
  it('cuts a word that is longer than a row', () => {
    expect(rowsOf(laidOut(['x'.repeat(45)]))).toEqual(['x'.repeat(20), 'x'.repeat(20), 'x'.repeat(5)]);
  });
  it('keeps a newline in the row it ends, full or not, and adds no row for the last one', () => {
    expect(rowsOf(laidOut(['y'.repeat(20), '\n', '\n', 'z\n']))).toEqual([`${'y'.repeat(20)}\n`, '\n', 'z\n']);
  });
  it('begins a block where segment or step change, and none between the stop string and its observation', () => {
    const layout = laidOut([
      { bytes: 'act', segment: 'action', step: 0 },
      { bytes: 'Observation:', segment: 'stop', step: 0 },
      { bytes: ' low', segment: 'observation', step: 0 },
      { bytes: 'think', segment: 'thought', step: 1 },
    ]);
    expect(Array.from(layout.blockToken.subarray(0, layout.blockCount))).toEqual([0, 1, 3]);
    expect(rowsOf(layout)).toEqual(['act', 'Observation: low', 'think']);
    expect(layout.blockY[1]).toBe(22 + 20 + 6);
    expect(layout.blockY[2]).toBe(22 + 20 + 6 + 20 + 22);
  });
  it('gives wide characters two columns', () => {
    expect(rowsOf(laidOut(['中文字符测试宽度两列', '再来']))).toEqual(['中文字符测试宽度两列', '再来']);
    const reader = new RowReader().read(laidOut(['a中b😀']), 0);
    expect(Array.from(reader.column.subarray(0, reader.charCount))).toEqual([0, 1, 3, 4]);
    expect(reader.width).toBe(6);
  });
  it('shows an emoji split over two tokens as two cells of one character', () => {
    const emoji = new TextEncoder().encode('😀');
    const layout = laidOut(['a', { bytes: emoji.subarray(0, 2) }, { bytes: emoji.subarray(2) }, 'b']);
    const reader = new RowReader().read(layout, 0);
    expect(reader.charCount).toBe(3);
    expect(reader.code[1]).toBe(0x1f600);
    expect(Array.from(reader.cellToken.subarray(0, reader.cellCount))).toEqual([0, 1, 2, 3]);
    expect(Array.from(reader.from.subarray(0, 4))).toEqual([0, 1, 2, 3]);
    expect(Array.from(reader.inside.subarray(0, 4))).toEqual([0, 0, 1, 0]);
  });
  it('gives a token without bytes a cell of its own', () => {
    const layout = laidOut(['a', '', 'b']);
    const reader = new RowReader().read(layout, 0);
    expect(Array.from(reader.cellToken.subarray(0, reader.cellCount))).toEqual([0, 1, 2]);
    expect(reader.width).toBe(1 + 3 + 1);
  });
  it('is the same in slices as at once', () => {
    const pieces = Array.from({ length: 500 }, (_, i) => ({
      bytes: [' word', '\n', '中', 'longer-than-a-row-of-twenty', '', ' '][i % 6] as string,
      step: Math.floor(i / 50),
    }));
    const whole = laidOut(pieces);
    const sliced = new TokenLayout(tokensOf(pieces), METRICS);
    while (!sliced.advance(7));
    expect(sliced.rowCount).toBe(whole.rowCount);
    expect(sliced.rowByte.subarray(0, whole.rowCount)).toEqual(whole.rowByte.subarray(0, whole.rowCount));
    expect(sliced.height).toBe(whole.height);
  });
  it('holds for any bytes: rows cover them all in order, every token has a cell, none leaves the row', () => {
    const piece = fc.oneof(
      fc.uint8Array({ maxLength: 12 }),
      fc.string({ unit: 'grapheme', maxLength: 8 }),
      fc.constantFrom('\n', ' ', '‮', 'é', '́', '👨‍👩‍👧', '\u001b[31m', 'مرحبا', '', '�', ' the'),
    );
    fc.assert(
      fc.property(
        fc.array(piece, { minLength: 1, maxLength: 60 }),
        fc.integer({ min: 8, max: 40 }),
        (parts, columns) => {
          const layout = laidOut(
            parts.map((bytes) => ({ bytes })),
            columns,
          );
          const seen = new Set<number>();
          const reader = new RowReader();
          let byte = 0;
          for (let row = 0; row < layout.rowCount; row++) {
            expect(layout.rowByte[row]).toBe(byte);
            byte = layout.rowEnd(row).byte;
            reader.read(layout, row);
            // One more than the columns: a newline may hang over the edge.
            expect(reader.width).toBeLessThanOrEqual(layout.metrics.columns + 1);
            for (let cell = 0; cell < reader.cellCount; cell++) {
              seen.add(reader.cellToken[cell] as number);
              expect(reader.to[cell]).toBeGreaterThan(reader.from[cell] as number);
            }
            expect(layout.rowAt(layout.yOfRow(row) + 3)).toBe(row);
          }
          expect(byte).toBe(layout.tokens.bytes.length);
          expect(seen.size).toBe(parts.length);
          for (let token = 0; token < parts.length; token++) {
            const cells = reader.read(layout, layout.rowOfToken(token));
            expect(Array.from(cells.cellToken.subarray(0, cells.cellCount))).toContain(token);
          }
        },
      ),
      { numRuns: 300 },
    );
  });
});
