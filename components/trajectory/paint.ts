/** Paints the visible rows of a token layout. Knows pixels and colours; nothing of React, data loading or the mouse. */

import type { SegmentKind } from '../../server/core/vocabulary';
import type { CanvasTheme } from '../charts/canvas-theme';
import { hatchPattern } from '../charts/hatch';
import { categoryColour, ramp } from '../charts/palette';
import { rampIndex } from '../charts/scale';
import type { ChannelView } from './channels';
import type { Matches } from './find';
import { lastAtMost, type TokenLayout } from './layout';
import { paintRowText } from './paint-text';
import type { RowReader } from './row-cells';
import { isControlString } from './token-text';

export interface StepHead {
  /** Left: `Step 2 · mmseqs2`. */
  title: string;
  /** Right: `r 0.71 · A +1.31`. */
  figures: string;
  /** Signed, for the bar; null draws none. */
  advantage: number | null;
}

export interface Geometry {
  /** Where text begins; the gutter with the segment's name lies left of it. 0 gutter: names stand above the rows. */
  textLeft: number;
  gutter: number;
  cellWidth: number;
  fontSize: number;
}

export interface Marks {
  selected: number | null;
  hovered: number | null;
  /** Inclusive token positions. */
  range: { from: number; to: number } | null;
  matches: Matches;
  currentMatch: number;
}

export interface Scene {
  layout: TokenLayout;
  view: ChannelView;
  geometry: Geometry;
  marks: Marks;
  theme: CanvasTheme;
  reader: RowReader;
  segmentLabel: (kind: SegmentKind) => string;
  stepHead: (step: number) => StepHead | null;
}

export type Context = CanvasRenderingContext2D;

/** The fill of a token's cell; null where there is no number: it gets an outline instead. */
export function cellColour(view: ChannelView, token: number, theme: CanvasTheme): string | null {
  const value = view.valueAt(token);
  if (Number.isNaN(value)) return null;
  if (view.channel === 'mask') return categoryColour(theme.name, 0);
  if (!view.scale) return categoryColour(theme.name, value);
  return ramp(theme.name, view.scale.kind)[rampIndex(view.scale, value)] as string;
}

/** @param top content pixels above the window */
export function paintTokens(context: Context, scene: Scene, top: number, width: number, height: number): void {
  const { layout, theme } = scene;
  context.fillStyle = theme.bg;
  context.fillRect(0, 0, width, height);
  if (layout.rowCount === 0) return;
  context.direction = 'ltr';
  context.textBaseline = 'middle';
  context.textRendering = 'optimizeSpeed';
  context.fontKerning = 'none';
  const firstBlock = lastAtMost(layout.blockY, layout.blockCount, top);
  for (let block = firstBlock; block < layout.blockCount; block++) {
    const y = (layout.blockY[block] as number) - top;
    if (y - layout.metrics.stepGap > height) break;
    paintBlock(context, scene, block, y, top, width, height);
  }
}

function paintBlock(
  context: Context,
  scene: Scene,
  block: number,
  y: number,
  top: number,
  width: number,
  height: number,
): void {
  const { layout, geometry, theme } = scene;
  const { rowHeight } = layout.metrics;
  const firstRow = layout.blockRow[block] as number;
  const endRow = block + 1 < layout.blockCount ? (layout.blockRow[block + 1] as number) : layout.rowCount;
  const token = layout.blockToken[block] as number;
  const bottom = y + (endRow - firstRow) * rowHeight;
  paintHead(context, scene, block, y, width);
  if (geometry.gutter > 0) {
    // The name stays in sight while its block is being read.
    const at = Math.min(Math.max(y, 0), bottom - rowHeight);
    context.font = `550 11px ${theme.sans}`;
    context.textAlign = 'right';
    context.fillStyle = theme.ink2;
    context.fillText(blockName(scene, token), geometry.gutter - 8, at + rowHeight / 2);
  }
  const from = Math.max(firstRow, firstRow + Math.floor(-y / rowHeight));
  const to = Math.min(endRow, firstRow + Math.ceil((height - y) / rowHeight));
  for (let row = from; row < to; row++) paintRow(context, scene, row, y + (row - firstRow) * rowHeight, top);
}

/** A block that begins with the stop string and goes on as observation bears the observation's name. */
function blockName(scene: Scene, token: number): string {
  const { layout, segmentLabel } = scene;
  const own = layout.segmentName(token);
  if (own !== 'stop') return segmentLabel(own);
  let next = token;
  const step = layout.tokens.stepIndex[token];
  while (next < layout.done && layout.segmentName(next) === 'stop' && next - token < 64) next++;
  const continued =
    next < layout.length && layout.tokens.stepIndex[next] === step && layout.segmentName(next) === 'observation';
  return segmentLabel(continued ? 'observation' : 'stop');
}

function paintHead(context: Context, scene: Scene, block: number, y: number, width: number): void {
  const { layout, geometry, theme } = scene;
  const token = layout.blockToken[block] as number;
  const step = layout.tokens.stepIndex[token] as number;
  const begins = step >= 0 && (token === 0 || layout.tokens.stepIndex[token - 1] !== step);
  const gap = begins ? layout.metrics.stepGap : layout.metrics.blockGap;
  if (y <= -2 && !begins) return;
  const narrow = geometry.gutter === 0;
  let labelLeft = geometry.textLeft;
  const middle = narrow ? y - 9 : y - gap / 2;
  if (begins) {
    const head = scene.stepHead(step);
    context.fillStyle = theme.lineSoft;
    context.fillRect(0, Math.round(y - gap + 3), width, 1);
    if (head) {
      const line = y - gap + 14;
      context.textAlign = 'left';
      context.font = `600 11px ${theme.sans}`;
      context.fillStyle = theme.ink;
      context.fillText(head.title, narrow ? geometry.textLeft : 12, line);
      context.font = `500 11px ${theme.sans}`;
      context.textAlign = 'right';
      context.fillStyle = theme.ink2;
      context.fillText(head.figures, width - 12, line);
    }
  }
  if (narrow) {
    context.textAlign = 'left';
    context.font = `550 11px ${theme.sans}`;
    context.fillStyle = theme.ink2;
    labelLeft = geometry.textLeft;
    context.fillText(blockName(scene, token), labelLeft, middle);
  }
}

function paintRow(context: Context, scene: Scene, row: number, y: number, top: number): void {
  const { layout, reader, geometry, theme, view, marks } = scene;
  const { rowHeight } = layout.metrics;
  const { cellWidth, textLeft } = geometry;
  const { mask } = layout.tokens;
  reader.read(layout, row);
  const cellTop = y + 1;
  const cellHeight = rowHeight - 2;

  let hatchFrom = -1;
  let anySampled = false;
  let hatch: CanvasPattern | string | null = null;
  for (let cell = 0; cell <= reader.cellCount; cell++) {
    const token = reader.cellToken[cell] as number;
    const off = cell < reader.cellCount && mask[token] !== 1;
    if (off) {
      if (hatchFrom < 0) hatchFrom = reader.from[cell] as number;
      continue;
    }
    const from = cell < reader.cellCount ? (reader.from[cell] as number) : reader.width;
    if (hatchFrom >= 0) {
      hatch ??= hatchPattern(context, theme.hatch, top);
      context.fillStyle = hatch;
      context.fillRect(textLeft + hatchFrom * cellWidth, cellTop, (from - hatchFrom) * cellWidth, cellHeight);
      hatchFrom = -1;
    }
    if (cell === reader.cellCount) break;
    anySampled = true;
    const x = textLeft + from * cellWidth;
    const w = ((reader.to[cell] as number) - from) * cellWidth;
    const colour = cellColour(view, token, theme);
    if (colour) {
      context.fillStyle = colour;
      // A hairline of background parts the cells; one that begins inside a character is parted by a divider instead.
      context.fillRect(x, cellTop, Math.max(1, w - 1), cellHeight);
    } else {
      context.strokeStyle = theme.line;
      context.lineWidth = 1;
      context.strokeRect(x + 0.5, cellTop + 0.5, Math.max(1, w - 2), cellHeight - 1);
    }
  }
  if (anySampled) {
    context.fillStyle = theme.ink2;
    context.fillRect(textLeft - 7, y, 3, rowHeight);
  } else {
    context.fillStyle = theme.lineSoft;
    context.fillRect(textLeft - 6, y, 1, rowHeight);
  }
  paintCellMarks(context, scene, y);
  paintRowText(context, scene, y);
  paintCursor(context, scene, y, marks);
}

/** What lies under the text: dividers, control strings, the stop string, the chosen range, search matches. */
function paintCellMarks(context: Context, scene: Scene, y: number): void {
  const { layout, reader, geometry, theme, marks } = scene;
  const { rowHeight } = layout.metrics;
  const { cellWidth, textLeft } = geometry;
  const { bytes, byteEnds, mask } = layout.tokens;
  for (let cell = 0; cell < reader.cellCount; cell++) {
    const token = reader.cellToken[cell] as number;
    const x = textLeft + (reader.from[cell] as number) * cellWidth;
    const w = ((reader.to[cell] as number) - (reader.from[cell] as number)) * cellWidth;
    if (marks.range && token >= marks.range.from && token <= marks.range.to) {
      context.fillStyle = theme.selection;
      context.globalAlpha = 0.75;
      context.fillRect(x, y, w, rowHeight);
      context.globalAlpha = 1;
    }
    if (reader.inside[cell] === 1) {
      context.fillStyle = theme.ink;
      context.fillRect(Math.round(x), y + 2, 1, rowHeight - 4);
    } else if (mask[token] !== 1 && cell > 0) {
      context.fillStyle = theme.line;
      context.fillRect(Math.round(x) - 1, y + rowHeight - 5, 1, 3);
    }
    const start = layout.byteStart(token);
    const end = byteEnds[token] as number;
    if (start === end || (bytes[start] === 60 && isControlString(bytes, start, end))) {
      context.strokeStyle = theme.ink3;
      context.lineWidth = 1;
      context.beginPath();
      context.roundRect(x + 0.5, y + 2.5, Math.max(2, w - 2), rowHeight - 5, 3);
      context.stroke();
    }
    if (layout.segmentName(token) === 'stop') {
      context.fillStyle = theme.ink2;
      for (let dash = 0; dash < w - 2; dash += 4) context.fillRect(x + dash, y + rowHeight - 3, 2, 1);
    }
  }
  paintMatches(context, scene, y);
}

function paintMatches(context: Context, scene: Scene, y: number): void {
  const { layout, reader, geometry, theme, marks } = scene;
  const { starts, length } = marks.matches;
  if (starts.length === 0 || reader.charCount === 0) return;
  const rowFrom = reader.byteFrom[0] as number;
  const rowTo = reader.byteTo[reader.charCount - 1] as number;
  let match = lastAtMost(starts, starts.length, Math.max(0, rowFrom - length + 1));
  if ((starts[match] as number) + length <= rowFrom) match++;
  for (; match < starts.length && (starts[match] as number) < rowTo; match++) {
    const from = starts[match] as number;
    let first = -1;
    let last = -1;
    for (let char = 0; char < reader.charCount; char++) {
      if ((reader.byteTo[char] as number) <= from || (reader.byteFrom[char] as number) >= from + length) continue;
      if (first < 0) first = reader.column[char] as number;
      last = (reader.column[char] as number) + (reader.columns[char] as number);
    }
    if (first < 0) continue;
    const x = geometry.textLeft + first * geometry.cellWidth - 1;
    const w = (last - first) * geometry.cellWidth + 1;
    context.fillStyle = theme.selection;
    context.fillRect(x, y, w, layout.metrics.rowHeight);
    context.lineWidth = match === marks.currentMatch ? 2 : 1;
    context.strokeStyle = match === marks.currentMatch ? theme.ink : theme.ink3;
    context.strokeRect(x + 0.5, y + 0.5, w - 1, layout.metrics.rowHeight - 1);
  }
}

function paintCursor(context: Context, scene: Scene, y: number, marks: Marks): void {
  const { reader, geometry, theme, layout } = scene;
  for (const [token, colour, width] of [
    [marks.hovered, theme.ink2, 1],
    [marks.selected, theme.accent, 2],
  ] as const) {
    if (token === null) continue;
    for (let cell = 0; cell < reader.cellCount; cell++) {
      if (reader.cellToken[cell] !== token) continue;
      const x = geometry.textLeft + (reader.from[cell] as number) * geometry.cellWidth;
      const w = ((reader.to[cell] as number) - (reader.from[cell] as number)) * geometry.cellWidth;
      context.strokeStyle = colour;
      context.lineWidth = width;
      context.beginPath();
      context.roundRect(x - 1, y, Math.max(5, w + 1), layout.metrics.rowHeight, 3);
      context.stroke();
    }
  }
}
