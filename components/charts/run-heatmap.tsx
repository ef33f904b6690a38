'use client';
import { useTranslations } from 'next-intl';
import { type KeyboardEvent, type PointerEvent, useCallback, useEffect, useMemo, useRef, useState } from 'react';
import { ABSENT, decimal, signed } from '@/components/ui/numbers';
import { Segmented } from '@/components/ui/segmented';
import { EmptyState } from '@/components/ui/state';
import type { GroupRow } from '@/server/core/views';
import { ChartTip, type TipAt } from './chart-tip';
import { sharedBeginning } from './group-name';
import {
  counted,
  type HeatmapLayout,
  laneAt,
  lanesFor,
  layOutHeatmap,
  movedRow,
  PLANNED_STEPS,
  type RowMove,
  rowAt,
} from './heatmap-layout';
import {
  type HeatmapCell,
  type HeatmapMeasure,
  heatmapColumns,
  paintHeatmap,
  STATUS_WORD,
  valuesOf,
} from './heatmap-paint';
import { divergingScale, sequentialScale } from './scale';
import { ScaleLegend } from './scale-legend';
import { type Surface, useCanvas } from './use-canvas';

const TALLEST = 560;

export interface RunHeatmapProps {
  groups: readonly GroupRow[];
  onOpen: (trajectoryId: string) => void;
  /** Outlined: the trajectory that is being looked at. */
  outlined?: string;
  /** One group beside a trajectory: no names, no legend, no measure to choose. */
  compact?: boolean;
}

/** Rows are trajectories sorted by reward within their group, columns are steps. Thousands of groups scroll. */
export function RunHeatmap({ groups, onOpen, outlined, compact = false }: RunHeatmapProps) {
  const t = useTranslations('charts');
  const status = useTranslations('status');
  const [measure, setMeasure] = useState<HeatmapMeasure>('advantage');
  const [cursor, setCursor] = useState<HeatmapCell | null>(null);
  const [hovered, setHovered] = useState<HeatmapCell | null>(null);
  const [tip, setTip] = useState<TipAt | null>(null);
  const scroller = useRef<HTMLDivElement | null>(null);
  const [width, setWidth] = useState(0);
  const measured = useCallback((element: HTMLDivElement | null) => {
    if (!element) return;
    const take = () => setWidth(element.clientWidth);
    take();
    const sizes = new ResizeObserver(take);
    sizes.observe(element);
    return () => sizes.disconnect();
  }, []);
  const rowHeight = compact ? 15 : 12;
  const labelWidth = compact ? 2 : width < 480 ? 74 : 104;
  const steps = useMemo(() => mostSteps(groups), [groups]);
  const lanes = compact ? 1 : lanesFor(steps, groups.length, width, labelWidth + STATUS_WORD);
  const layout = useMemo(
    () => layOutHeatmap(groups, { rowHeight, groupGap: 12, leastRows: compact ? 1 : 3, lanes }),
    [groups, rowHeight, compact, lanes],
  );
  const shared = useMemo(() => sharedBeginning(groups.map((group) => group.taskId)), [groups]);
  const scale = useMemo(() => {
    const values: number[] = [];
    for (const { trajectory } of layout.rows)
      if (measure === 'reward' ? trajectory.status === 'running' || counted(trajectory) : counted(trajectory))
        for (const value of valuesOf(trajectory, measure) ?? []) values.push(value);
    // Rewards may lie on both sides of zero; most run from 0 up.
    return measure === 'advantage' || values.some((value) => value < 0)
      ? divergingScale(values)
      : sequentialScale(values);
  }, [layout, measure]);

  const { canvasRef, invalidate } = useCanvas((surface: Surface) => {
    paintHeatmap(
      surface.context,
      { ...scene(), theme: surface.theme },
      (scroller.current?.scrollTop ?? 0) - 2,
      surface.width,
      surface.height,
    );
  });

  function scene() {
    return {
      groups,
      layout,
      scale,
      measure,
      labelWidth,
      sharedBeginning: shared,
      rowHeight,
      cursor,
      hovered,
      outlined: outlined ?? null,
      compact,
      words: { noSignal: t('heatmap.noSignal'), status: (word: Parameters<typeof status>[0]) => status(word) },
    };
  }

  // A growing run keeps the cursor on its row number; one past the end is dropped.
  useEffect(() => {
    setCursor((at) => (at && at.row < layout.rows.length ? at : null));
  }, [layout]);

  function cellAt(event: { clientX: number; clientY: number }): HeatmapCell | null {
    if (!scroller.current) return null;
    const box = scroller.current.getBoundingClientRect();
    const y = event.clientY - box.top + scroller.current.scrollTop - 2;
    const across = event.clientX - box.left;
    const lane = Math.max(0, Math.min(layout.lanes - 1, Math.floor((layout.lanes * across) / Math.max(1, width))));
    const row = rowAt(layout, lane, y, rowHeight);
    if (row < 0) return null;
    const columns = heatmapColumns({ layout, labelWidth, compact }, width);
    const column = Math.floor((across - laneAt(layout.lanes, lane, width).x - labelWidth) / columns.width);
    const last = Math.max(0, Math.ceil(stepsOf(layout, row) / columns.stepsEach) - 1);
    return { row, step: Math.max(0, Math.min(last, column)) * columns.stepsEach };
  }

  function open(cell: HeatmapCell | null): void {
    const row = cell ? layout.rows[cell.row] : undefined;
    if (row) onOpen(row.trajectory.trajectoryId);
  }

  function onPointerMove(event: PointerEvent): void {
    if (event.pointerType === 'touch') return;
    const cell = cellAt(event);
    if (cell?.row !== hovered?.row || cell?.step !== hovered?.step) setHovered(cell);
    setTip(cell ? { x: event.clientX, y: event.clientY } : null);
  }

  function onKeyDown(event: KeyboardEvent): void {
    if (event.key === 'Enter' && cursor) {
      open(cursor);
      return;
    }
    const at = cursor ?? { row: 0, step: 0 };
    const last = stepsOf(layout, at.row) - 1;
    const to = (move: RowMove, step = at.step): HeatmapCell => ({ row: movedRow(layout, at.row, move), step });
    const beside = (move: 'left' | 'right'): HeatmapCell => {
      const { row } = to(move);
      return row === at.row ? at : { row, step: move === 'left' ? stepsOf(layout, row) - 1 : 0 };
    };
    const moves: Record<string, HeatmapCell> = {
      ArrowUp: to('up'),
      ArrowDown: to('down'),
      ArrowLeft: at.step > 0 ? { ...at, step: at.step - 1 } : beside('left'),
      ArrowRight: at.step < last ? { ...at, step: at.step + 1 } : beside('right'),
      Home: { ...at, step: 0 },
      End: { ...at, step: last },
      PageUp: to('pageUp'),
      PageDown: to('pageDown'),
    };
    const move = moves[event.key];
    if (!move || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    event.stopPropagation();
    const wanted = cursor ? move : at;
    const { row } = wanted;
    const next = { row, step: Math.max(0, Math.min(stepsOf(layout, row) - 1, wanted.step)) };
    setCursor(next);
    setTip(null);
    const y = layout.rows[row]?.y ?? 0;
    const view = scroller.current;
    if (view && y < view.scrollTop) view.scrollTop = y - 20;
    else if (view && y + rowHeight > view.scrollTop + view.clientHeight - 8)
      view.scrollTop = y + rowHeight - view.clientHeight + 20;
  }

  if (layout.rows.length === 0) return <EmptyState title={t('heatmap.empty')}>{t('heatmap.emptyHint')}</EmptyState>;
  const described = hovered ?? cursor;
  const height = Math.min(compact ? 320 : TALLEST, layout.height + 6);
  return (
    <div className="min-w-0">
      {compact ? null : (
        <div className="mb-2 flex flex-wrap items-center justify-between gap-x-4 gap-y-1.5">
          <Segmented
            label={t('heatmap.show')}
            value={measure}
            options={[
              { value: 'advantage', label: t('heatmap.advantage') },
              { value: 'reward', label: t('heatmap.reward') },
            ]}
            onChange={setMeasure}
          />
          {scale.count === 0 ? (
            <span className="text-xs text-ink-3">{t('heatmap.waiting')}</span>
          ) : (
            <ScaleLegend
              scale={scale}
              low={scale.kind === 'diverging' ? signed(-scale.limit) : '0'}
              middle={scale.kind === 'diverging' ? '0' : null}
              high={scale.kind === 'diverging' ? signed(scale.limit) : decimal(scale.limit)}
              bound={scale.kind === 'diverging' ? `±${decimal(scale.limit)}` : decimal(scale.limit)}
            />
          )}
        </div>
      )}
      <div ref={measured} className="relative" style={{ height }}>
        <canvas ref={canvasRef} className="absolute inset-0 size-full" data-heatmap-canvas="" />
        <div
          ref={scroller}
          // biome-ignore lint/a11y/noNoninteractiveTabindex: the chart takes arrow keys
          tabIndex={0}
          role="application"
          aria-label={`${t('heatmap.label')}. ${t('heatmap.keys')}`}
          className={`absolute inset-0 cursor-pointer overflow-x-hidden ${layout.height + 6 > height ? 'overflow-y-auto' : 'overflow-y-hidden'}`}
          data-heatmap=""
          onScroll={invalidate}
          onPointerMove={onPointerMove}
          onPointerLeave={() => {
            setHovered(null);
            setTip(null);
          }}
          onClick={(event) => open(cellAt(event))}
          onKeyDown={onKeyDown}
        >
          <div style={{ height: layout.height + 6 }} />
        </div>
      </div>
      {tip && hovered ? <ChartTip at={tip}>{detail(hovered)}</ChartTip> : null}
      {cursor && !hovered && !compact ? (
        <div className="mt-2 border-l-2 border-line pl-2 text-xs text-ink-2">{detail(cursor)}</div>
      ) : null}
      <p className="sr-only" aria-live="polite">
        {described ? sentence(described) : ''}
      </p>
    </div>
  );

  function numbers(cell: HeatmapCell) {
    const row = layout.rows[cell.row];
    const trajectory = row?.trajectory;
    return {
      group: groups[row?.group ?? 0],
      trajectory,
      reward: trajectory?.stepRewards[cell.step],
      advantage: trajectory?.advantages?.[cell.step],
    };
  }

  function detail(cell: HeatmapCell) {
    const { group, trajectory, reward, advantage } = numbers(cell);
    if (!group || !trajectory) return null;
    const columns = heatmapColumns({ layout, labelWidth, compact }, width);
    return (
      <>
        <p className="foreign-line font-semibold text-ink">
          {group.taskId} · {t('heatmap.trajectory', { member: trajectory.member + 1 })} · {status(trajectory.status)}
        </p>
        <p>{t('heatmap.total', { reward: exact(trajectory.reward) })}</p>
        {reward === undefined ? (
          <p>{t('heatmap.noStep')}</p>
        ) : (
          <p>
            {t('heatmap.step', { step: cell.step })} · r {exact(reward)} · A{' '}
            {advantage === undefined || advantage === null
              ? counted(trajectory) || trajectory.status === 'running'
                ? t('heatmap.noAdvantage')
                : t('heatmap.notCounted')
              : exact(advantage)}
          </p>
        )}
        {columns.stepsEach > 1 ? (
          <p className="text-ink-3">
            {t('heatmap.steps', {
              from: cell.step,
              to: Math.min(trajectory.stepRewards.length, cell.step + columns.stepsEach) - 1,
              total: trajectory.stepRewards.length,
            })}
          </p>
        ) : null}
        {trajectory.errorMessage ? (
          <p className="foreign-text max-w-72 text-bad">{trajectory.errorMessage.slice(0, 200)}</p>
        ) : null}
      </>
    );
  }

  function sentence(cell: HeatmapCell): string {
    const { group, trajectory, reward, advantage } = numbers(cell);
    if (!group || !trajectory) return '';
    return t('heatmap.cell', {
      task: group.taskId,
      member: trajectory.member + 1,
      status: status(trajectory.status),
      step: cell.step,
      reward: exact(reward),
      advantage: exact(advantage),
    });
  }
}

/** Every digit there is, with a true minus sign. */
function exact(value: number | null | undefined): string {
  return value === null || value === undefined ? ABSENT : String(value).replace('-', '−');
}

function stepsOf(layout: HeatmapLayout, row: number): number {
  const trajectory = layout.rows[row]?.trajectory;
  return Math.max(1, trajectory?.stepRewards.length ?? 1, trajectory?.advantages?.length ?? 1);
}

function mostSteps(groups: readonly GroupRow[]): number {
  let steps = PLANNED_STEPS;
  for (const { trajectories } of groups)
    for (const row of trajectories) steps = Math.max(steps, row.stepRewards.length, row.advantages?.length ?? 0);
  return steps;
}
