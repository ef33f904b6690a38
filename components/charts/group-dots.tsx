'use client';
import { useTranslations } from 'next-intl';
import { type KeyboardEvent, useMemo, useRef, useState } from 'react';
import { decimal } from '@/components/ui/numbers';
import { EmptyState } from '@/components/ui/state';
import type { GroupRow } from '@/server/core/views';
import { COUNTED_STATUSES } from '@/server/core/vocabulary';
import { ChartTip, type TipAt } from './chart-tip';
import { type Axis, type Dot, dotsOf, rewardAxis, share, spreadOf } from './dots-layout';
import { fittedName, sharedBeginning } from './group-name';
import { type Surface, useCanvas } from './use-canvas';

const ROW = 22;
const TALLEST = 420;
const LABEL = 84;
const RIGHT = 62;
const AXIS = 20;

interface Line {
  group: GroupRow;
  dots: Dot[];
  spread: { mean: number; std: number } | null;
  lost: number;
}

/** Every group a line on one reward axis: its trajectories as dots, mean ± one standard deviation as a bar. */
export function GroupDots({ groups, onOpen }: { groups: readonly GroupRow[]; onOpen: (trajectoryId: string) => void }) {
  const t = useTranslations('charts');
  const [cursor, setCursor] = useState<{ line: number; dot: number } | null>(null);
  const [hovered, setHovered] = useState<{ line: number; dot: number } | null>(null);
  const [tip, setTip] = useState<TipAt | null>(null);
  const scroller = useRef<HTMLDivElement | null>(null);
  const width = useRef(0);
  const axis = useMemo(() => rewardAxis(groups), [groups]);
  const shared = useMemo(() => sharedBeginning(groups.map((group) => group.taskId)), [groups]);
  const lines = useMemo<Line[]>(
    () =>
      groups.map((group) => {
        const dots = dotsOf(group);
        const ended = group.trajectories.filter(
          (row) =>
            row.finishedAtMs !== null ||
            row.status === 'failed' ||
            row.status === 'cancelled' ||
            row.status === 'timed_out',
        );
        return {
          group,
          dots,
          spread: spreadOf(group, dots),
          lost: ended.filter((row) => !COUNTED_STATUSES.includes(row.status)).length,
        };
      }),
    [groups],
  );

  const { canvasRef, invalidate } = useCanvas((surface: Surface) => {
    width.current = surface.width;
    paint(surface, lines, shared, axis, scroller.current?.scrollTop ?? 0, cursor, hovered);
  });

  function nearest(event: { clientX: number; clientY: number }): { line: number; dot: number } | null {
    if (!scroller.current) return null;
    const box = scroller.current.getBoundingClientRect();
    const index = Math.floor((event.clientY - box.top + scroller.current.scrollTop - AXIS) / ROW);
    const line = lines[index];
    if (!line || line.dots.length === 0) return null;
    const x = event.clientX - box.left;
    let best = 0;
    line.dots.forEach((dot, i) => {
      if (
        Math.abs(xOf(axis, dot.reward, width.current) - x) <
        Math.abs(xOf(axis, (line.dots[best] as Dot).reward, width.current) - x)
      )
        best = i;
    });
    return { line: index, dot: best };
  }

  function open(at: { line: number; dot: number } | null): void {
    const dot = at ? lines[at.line]?.dots[at.dot] : undefined;
    if (dot) onOpen(dot.trajectory.trajectoryId);
  }

  function onKeyDown(event: KeyboardEvent): void {
    if (event.key === 'Enter') {
      open(cursor);
      return;
    }
    const [down, right] = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[
      event.key
    ] ?? [0, 0];
    if (down === 0 && right === 0) return;
    event.preventDefault();
    event.stopPropagation();
    const line = Math.max(0, Math.min(lines.length - 1, cursor ? cursor.line + (down as number) : 0));
    const last = Math.max(0, (lines[line]?.dots.length ?? 1) - 1);
    setCursor({ line, dot: Math.max(0, Math.min(last, (cursor?.dot ?? 0) + (right as number))) });
    const view = scroller.current;
    const y = AXIS + line * ROW;
    if (view && y < view.scrollTop + AXIS) view.scrollTop = y - AXIS;
    else if (view && y + ROW > view.scrollTop + view.clientHeight) view.scrollTop = y + ROW - view.clientHeight;
  }

  if (lines.length === 0) return <EmptyState title={t('dots.empty')} />;
  const shown = hovered ?? cursor;
  const text = shown ? detail(shown) : null;
  return (
    <div className="relative" style={{ height: Math.min(TALLEST, AXIS + lines.length * ROW + 4) }}>
      <canvas ref={canvasRef} className="absolute inset-0 size-full" />
      <div
        ref={scroller}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: the chart takes arrow keys
        tabIndex={0}
        role="application"
        aria-label={`${t('dots.label')}. ${t('dots.keys')}`}
        className="absolute inset-0 cursor-pointer overflow-y-auto overflow-x-hidden"
        data-group-dots=""
        onScroll={invalidate}
        onPointerMove={(event) => {
          if (event.pointerType === 'touch') return;
          const at = nearest(event);
          setHovered(at);
          setTip(at ? { x: event.clientX, y: event.clientY } : null);
        }}
        onPointerLeave={() => {
          setHovered(null);
          setTip(null);
        }}
        onClick={(event) => open(nearest(event))}
        onKeyDown={onKeyDown}
      >
        <div style={{ height: AXIS + lines.length * ROW + 4 }} />
      </div>
      {tip && hovered && text ? (
        <ChartTip at={tip}>
          <p className="foreign-line font-semibold text-ink">{text.task}</p>
          <p>{text.member}</p>
          <p>{text.mean}</p>
          {text.lost ? <p className="text-bad">{text.lost}</p> : null}
        </ChartTip>
      ) : null}
      <p className="sr-only" aria-live="polite">
        {text ? `${text.task}, ${text.member}, ${text.mean}` : ''}
      </p>
    </div>
  );

  function detail(at: { line: number; dot: number }) {
    const line = lines[at.line];
    const dot = line?.dots[at.dot];
    if (!line) return null;
    return {
      task: line.group.taskId,
      member: dot
        ? t('dots.member', { member: dot.trajectory.member + 1, reward: String(dot.reward).replace('-', '−') })
        : t('dots.none'),
      mean: line.spread ? t('dots.mean', { mean: decimal(line.spread.mean, 4), std: decimal(line.spread.std, 4) }) : '',
      lost: line.lost > 0 ? t('dots.notCounted', { count: line.lost }) : null,
    };
  }
}

function xOf(axis: Axis, reward: number, width: number): number {
  return LABEL + share(axis, reward) * (width - LABEL - RIGHT);
}

function paint(
  { context, width, height, theme }: Surface,
  lines: readonly Line[],
  shared: string,
  axis: Axis,
  top: number,
  cursor: { line: number; dot: number } | null,
  hovered: { line: number; dot: number } | null,
): void {
  context.fillStyle = theme.bg;
  context.fillRect(0, 0, width, height);
  context.textBaseline = 'middle';
  const measure = (text: string) => context.measureText(text).width;
  const first = Math.max(0, Math.floor((top - AXIS) / ROW));
  for (let index = first; index < lines.length; index++) {
    const y = AXIS + index * ROW - top + ROW / 2;
    if (y - ROW > height) break;
    const line = lines[index] as Line;
    context.textAlign = 'left';
    context.font = `11.5px ${theme.sans}`;
    context.fillStyle = theme.ink2;
    context.fillText(fittedName(line.group.taskId, shared, LABEL - 10, measure), 0, y);
    context.fillStyle = theme.lineSoft;
    context.fillRect(LABEL, y - 1, width - LABEL - RIGHT, 2);
    if (line.spread) {
      const from = xOf(axis, line.spread.mean - line.spread.std, width);
      const to = xOf(axis, line.spread.mean + line.spread.std, width);
      context.fillStyle = theme.line;
      context.fillRect(from, y - 3, Math.max(1, to - from), 6);
    }
    for (const [i, dot] of line.dots.entries()) {
      const marked = (cursor?.line === index && cursor.dot === i) || (hovered?.line === index && hovered.dot === i);
      context.fillStyle = marked ? theme.accent : theme.ink2;
      context.globalAlpha = marked ? 1 : 0.62;
      context.beginPath();
      context.arc(xOf(axis, dot.reward, width), y, marked ? 4.5 : 3, 0, Math.PI * 2);
      context.fill();
      context.globalAlpha = 1;
    }
    if (line.spread) {
      context.fillStyle = theme.ink;
      context.fillRect(xOf(axis, line.spread.mean, width) - 1, y - 6, 2, 12);
    }
    context.textAlign = 'right';
    context.fillStyle = line.spread ? theme.ink : theme.ink3;
    context.font = `550 11px ${theme.sans}`;
    context.fillText(line.spread ? decimal(line.spread.mean) : '–', width - 26, y);
    if (line.lost > 0) {
      context.fillStyle = theme.bad;
      context.fillText(`−${line.lost}`, width - 2, y);
    }
  }
  context.fillStyle = theme.bg;
  context.fillRect(0, 0, width, AXIS);
  context.font = `11px ${theme.sans}`;
  context.fillStyle = theme.ink3;
  for (const value of [axis.low, (axis.low + axis.high) / 2, axis.high]) {
    context.textAlign = 'center';
    context.fillText(decimal(value), xOf(axis, value, width), AXIS / 2 - 2);
  }
}
