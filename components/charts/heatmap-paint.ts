/** Paints the visible part of a heatmap. */
import type { GroupRow, TrajectoryRow } from '../../server/core/views';
import type { TrajectoryStatus } from '../../server/core/vocabulary';
import type { CanvasTheme } from './canvas-theme';
import { hatchPattern } from './hatch';
import { columnsFor, columnValue, counted, type HeatmapLayout } from './heatmap-layout';
import { css, DATA_COLOURS, ramp } from './palette';
import { rampIndex, type Scale } from './scale';

export type HeatmapMeasure = 'advantage' | 'reward';

export interface HeatmapCell {
  row: number;
  step: number;
}

export interface HeatmapScene {
  groups: readonly GroupRow[];
  layout: HeatmapLayout;
  scale: Scale;
  measure: HeatmapMeasure;
  theme: CanvasTheme;
  /** Pixels left of the cells. */
  labelWidth: number;
  rowHeight: number;
  cursor: HeatmapCell | null;
  hovered: HeatmapCell | null;
  outlined: string | null;
  words: { noSignal: string; status: (status: TrajectoryStatus) => string };
  compact: boolean;
}

/** Room right of the cells for a status word. */
const WORD = 64;

export function heatmapColumns(scene: Pick<HeatmapScene, 'layout' | 'labelWidth' | 'compact'>, width: number) {
  const word = scene.layout.allCounted ? 4 : WORD;
  return columnsFor(scene.layout.steps, width - scene.labelWidth - word, 3, scene.compact ? 40 : 52);
}

export function valuesOf(trajectory: TrajectoryRow, measure: HeatmapMeasure): readonly number[] | null {
  return measure === 'reward' ? trajectory.stepRewards : trajectory.advantages;
}

export function paintHeatmap(
  context: CanvasRenderingContext2D,
  scene: HeatmapScene,
  top: number,
  width: number,
  height: number,
): void {
  const { layout, theme, groups } = scene;
  context.fillStyle = theme.bg;
  context.fillRect(0, 0, width, height);
  context.textBaseline = 'middle';
  let group = firstVisible(layout, top);
  for (; group < groups.length; group++) {
    const y = (layout.groupY[group] as number) - top;
    if (y > height) break;
    if (!scene.compact) paintGroupName(context, scene, group, y);
    const end = layout.groupRow[group + 1] as number;
    for (let row = layout.groupRow[group] as number; row < end; row++) paintRow(context, scene, row, top, width);
  }
}

function firstVisible(layout: HeatmapLayout, top: number): number {
  let low = 0;
  let high = Math.max(0, layout.groupY.length - 2);
  while (low < high) {
    const middle = (low + high + 1) >>> 1;
    if ((layout.groupY[middle] as number) <= top) low = middle;
    else high = middle - 1;
  }
  return low;
}

function paintGroupName(context: CanvasRenderingContext2D, scene: HeatmapScene, index: number, y: number): void {
  const { theme, groups, labelWidth, words } = scene;
  const group = groups[index] as GroupRow;
  context.textAlign = 'left';
  context.font = `550 12px ${theme.sans}`;
  context.fillStyle = theme.ink;
  context.fillText(shortened(context, group.taskId, labelWidth - 12), 0, y + 8);
  if (group.hasSignal === false) {
    context.font = `11px ${theme.sans}`;
    context.fillStyle = theme.warn;
    context.fillText(words.noSignal, 0, y + 24);
  }
}

function shortened(context: CanvasRenderingContext2D, text: string, width: number): string {
  if (text.length < 60 && context.measureText(text).width <= width) return text;
  let end = Math.min(text.length, 60);
  while (end > 1 && context.measureText(`${text.slice(0, end)}…`).width > width) end--;
  return `${text.slice(0, end)}…`;
}

function paintRow(
  context: CanvasRenderingContext2D,
  scene: HeatmapScene,
  index: number,
  top: number,
  width: number,
): void {
  const { layout, theme, rowHeight, scale, measure, labelWidth, groups } = scene;
  const row = layout.rows[index];
  if (!row) return;
  const { trajectory } = row;
  const y = row.y - top;
  const columns = heatmapColumns(scene, width);
  const cellHeight = rowHeight - 1;
  const gap = columns.width > 5 ? 1 : 0;
  const colours = ramp(theme.name, scale.kind);
  const taken = Math.max(trajectory.stepRewards.length, trajectory.advantages?.length ?? 0);
  const used = Math.ceil(taken / columns.stepsEach);
  const values = valuesOf(trajectory, measure);
  const isCounted = counted(trajectory);
  const silent = measure === 'advantage' && groups[row.group]?.hasSignal === false;
  for (let column = 0; column < used; column++) {
    const x = labelWidth + column * columns.width;
    const w = columns.width - gap;
    const value = columnValue(values, column, columns.stepsEach);
    if (!isCounted && trajectory.status !== 'running') {
      context.fillStyle = hatchPattern(context, theme.hatch, top);
      context.fillRect(x, y, w, cellHeight);
    } else if (silent) {
      context.fillStyle = css(DATA_COLOURS[theme.name].neutral);
      context.fillRect(x, y, w, cellHeight);
    } else if (Number.isNaN(value)) {
      // A step that is done while its group still runs: there is a reward, and no advantage yet.
      context.strokeStyle = theme.line;
      context.lineWidth = 1;
      context.strokeRect(x + 0.5, y + 0.5, Math.max(1, w - 1), cellHeight - 1);
    } else {
      context.fillStyle = colours[rampIndex(scale, value)] as string;
      context.fillRect(x, y, w, cellHeight);
    }
  }
  if (!isCounted) {
    const x = labelWidth + used * columns.width + 5;
    context.textAlign = 'left';
    context.font = `${Math.min(10.5, rowHeight)}px ${theme.sans}`;
    const { status } = trajectory;
    context.fillStyle =
      status === 'failed' || status === 'timed_out' ? theme.bad : status === 'running' ? theme.ok : theme.ink3;
    context.fillText(scene.words.status(status), x, y + cellHeight / 2 + 0.5);
  }
  if (scene.outlined === trajectory.trajectoryId) {
    context.strokeStyle = theme.accent;
    context.lineWidth = 2;
    context.strokeRect(labelWidth - 2, y - 1, Math.max(1, used) * columns.width + 3, rowHeight + 1);
  }
  for (const [cell, colour, line] of [
    [scene.hovered, theme.ink2, 1],
    [scene.cursor, theme.ink, 2],
  ] as const) {
    if (!cell || cell.row !== index) continue;
    const x = labelWidth + Math.floor(cell.step / columns.stepsEach) * columns.width;
    context.strokeStyle = colour;
    context.lineWidth = line;
    context.strokeRect(x - 0.5, y - 0.5, columns.width, rowHeight);
  }
}
