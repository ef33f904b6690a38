/** Paints the visible part of a heatmap. */
import type { GroupRow, TrajectoryRow } from '../../server/core/views';
import type { TrajectoryStatus } from '../../server/core/vocabulary';
import type { CanvasTheme } from './canvas-theme';
import { fittedName } from './group-name';
import { hatchPattern } from './hatch';
import { bandAt, columnsFor, columnValue, counted, type HeatmapLayout, laneAt, PLANNED_STEPS } from './heatmap-layout';
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
  /** What the names of all groups begin with. */
  sharedBeginning: string;
  rowHeight: number;
  cursor: HeatmapCell | null;
  hovered: HeatmapCell | null;
  outlined: string | null;
  words: { noSignal: string; status: (status: TrajectoryStatus) => string };
  compact: boolean;
}

/** Room right of the cells for a status word. */
export const STATUS_WORD = 64;

export function heatmapColumns(scene: Pick<HeatmapScene, 'layout' | 'labelWidth' | 'compact'>, width: number) {
  const { layout, labelWidth, compact } = scene;
  const lane = laneAt(layout.lanes, 0, width).width;
  // Room for the word is kept where a run may still need it, so that cells do not grow when the last one ends.
  const word = compact && layout.allCounted ? 4 : STATUS_WORD;
  const room = lane - labelWidth - word;
  const most = compact ? 40 : Math.max(24, Math.min(72, room / PLANNED_STEPS));
  return columnsFor(layout.steps, room, 3, most);
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
  let group = bandAt(layout, top);
  for (; group < groups.length; group++) {
    const y = (layout.groupY[group] as number) - top;
    if (y > height) break;
    const { x } = laneAt(layout.lanes, group % layout.lanes, width);
    if (!scene.compact) paintGroupName(context, scene, group, x, y);
    const end = layout.groupRow[group + 1] as number;
    for (let row = layout.groupRow[group] as number; row < end; row++) paintRow(context, scene, row, top, x, width);
  }
}

function paintGroupName(
  context: CanvasRenderingContext2D,
  scene: HeatmapScene,
  index: number,
  x: number,
  y: number,
): void {
  const { theme, groups, labelWidth, words } = scene;
  const group = groups[index] as GroupRow;
  context.textAlign = 'left';
  context.font = `550 12px ${theme.sans}`;
  context.fillStyle = theme.ink;
  const measure = (text: string) => context.measureText(text).width;
  context.fillText(fittedName(group.taskId, scene.sharedBeginning, labelWidth - 12, measure), x, y + 8);
  if (group.hasSignal === false) {
    context.font = `11px ${theme.sans}`;
    context.fillStyle = theme.warn;
    context.fillText(words.noSignal, x, y + 24);
  }
}

function paintRow(
  context: CanvasRenderingContext2D,
  scene: HeatmapScene,
  index: number,
  top: number,
  laneX: number,
  width: number,
): void {
  const { layout, theme, rowHeight, scale, measure, groups } = scene;
  const left = laneX + scene.labelWidth;
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
    const x = left + column * columns.width;
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
    const x = left + used * columns.width + 5;
    context.textAlign = 'left';
    context.font = `${Math.min(10.5, rowHeight)}px ${theme.sans}`;
    const { status } = trajectory;
    // What is to be expected is a sign, what is not is a word: a hundred times "running" would drown it.
    if (status === 'running' || status === 'queued') {
      context.beginPath();
      context.arc(x + 3, y + cellHeight / 2, status === 'running' ? 3 : 1.5, 0, 2 * Math.PI);
      context.fillStyle = status === 'running' ? theme.ok : theme.ink3;
      context.fill();
    } else {
      context.fillStyle = status === 'failed' || status === 'timed_out' ? theme.bad : theme.ink3;
      context.fillText(scene.words.status(status), x, y + cellHeight / 2 + 0.5);
    }
  }
  if (scene.outlined === trajectory.trajectoryId) {
    context.strokeStyle = theme.accent;
    context.lineWidth = 2;
    context.strokeRect(left - 2, y - 1, Math.max(1, used) * columns.width + 3, rowHeight + 1);
  }
  for (const [cell, colour, line] of [
    [scene.hovered, theme.ink2, 1],
    [scene.cursor, theme.ink, 2],
  ] as const) {
    if (!cell || cell.row !== index) continue;
    const x = left + Math.floor(cell.step / columns.stepsEach) * columns.width;
    context.strokeStyle = colour;
    context.lineWidth = line;
    context.strokeRect(x - 0.5, y - 0.5, columns.width, rowHeight);
  }
}
