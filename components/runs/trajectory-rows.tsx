'use client';
import { useVirtualizer } from '@tanstack/react-virtual';
import Link from 'next/link';
import { type ReactNode, useRef } from 'react';
import { classNames } from '@/components/ui/class-names';
import { count, decimal, duration, signed } from '@/components/ui/numbers';
import { ScrollFrame } from '@/components/ui/scroll-frame';
import { StatusWord } from '@/components/ui/status-word';
import { ROW_CLASS, ROW_LINK_CLASS, Td } from '@/components/ui/table';
import type { TableRow } from './run-figures';
import { StepBars } from './step-bars';
import { useReasonWords } from './use-reason-words';

/** Up to this many rows all are written; beyond, the table gets a frame of its own and writes what is in sight. */
export const VIRTUAL_ABOVE = 200;
const ROW_HEIGHT = 33;

interface Rows {
  runId: string;
  rows: readonly TableRow[];
  label: string;
  head: ReactNode;
  columnCount: number;
}

export function TrajectoryRows(props: Rows) {
  return props.rows.length > VIRTUAL_ABOVE ? <VirtualRows {...props} /> : <AllRows {...props} />;
}

function AllRows({ runId, rows, label, head }: Rows) {
  return (
    <ScrollFrame label={label} className="overflow-x-auto scroll-edges">
      <table className="w-full border-collapse text-left">
        <thead>{head}</thead>
        <tbody>
          {rows.map((row) => (
            <Row key={row.trajectoryId} runId={runId} row={row} />
          ))}
        </tbody>
      </table>
    </ScrollFrame>
  );
}

function VirtualRows({ runId, rows, label, head, columnCount }: Rows) {
  const frame = useRef<HTMLElement>(null);
  const virtualizer = useVirtualizer({
    count: rows.length,
    getScrollElement: () => frame.current,
    estimateSize: () => ROW_HEIGHT,
    overscan: 20,
  });
  const items = virtualizer.getVirtualItems();
  const above = items[0]?.start ?? 0;
  const below = virtualizer.getTotalSize() - (items.at(-1)?.end ?? 0);
  return (
    <ScrollFrame ref={frame} label={label} className="h-[min(70dvh,48rem)] overflow-auto">
      <table aria-rowcount={rows.length + 1} className="w-full border-separate border-spacing-0 text-left">
        <thead className="sticky top-0 z-10">{head}</thead>
        <tbody>
          <Gap height={above} columnCount={columnCount} />
          {items.map(({ index }) => {
            const row = rows[index];
            return row ? <Row key={row.trajectoryId} runId={runId} row={row} position={index + 2} /> : null;
          })}
          <Gap height={below} columnCount={columnCount} />
        </tbody>
      </table>
    </ScrollFrame>
  );
}

function Gap({ height, columnCount }: { height: number; columnCount: number }) {
  if (height <= 0) return null;
  return (
    <tr>
      <td colSpan={columnCount} style={{ height, padding: 0 }} />
    </tr>
  );
}

function Row({ runId, row, position }: { runId: string; row: TableRow; position?: number }) {
  return (
    <tr className={ROW_CLASS} aria-rowindex={position} style={{ height: ROW_HEIGHT }}>
      <Td className="max-w-56 min-w-20">
        <Link
          href={`/runs/${runId}/trajectories/${row.trajectoryId}`}
          prefetch={false}
          title={row.taskId}
          className={`flex min-w-0 ${ROW_LINK_CLASS}`}
        >
          <span className="foreign-line foreign-end">
            <bdi>{row.taskId}</bdi>
          </span>
          <span className="shrink-0 pl-1 sm:hidden">#{row.member + 1}</span>
        </Link>
      </Td>
      <Td numeric className="text-ink-2 max-sm:hidden">
        #{row.member + 1}
      </Td>
      <Td>
        <StatusWord status={row.status} />
      </Td>
      <Td numeric className="font-semibold">
        {decimal(row.reward)}
      </Td>
      <Td numeric className={classNames('max-sm:hidden', advantageClass(row.meanAdvantage))}>
        {signed(row.meanAdvantage)}
      </Td>
      <Td numeric>{count(row.stepRewards.length)}</Td>
      <Td className="max-sm:hidden">
        <StepBars rewards={row.stepRewards} advantages={row.advantages} />
      </Td>
      <Td numeric className="text-ink-2 max-md:hidden">
        {count(row.generatedTokens)} <span className="text-ink-3">/ {count(row.totalTokens)}</span>
      </Td>
      <Td numeric className="text-ink-2 max-md:hidden">
        {duration(row.durationMs)}
      </Td>
      <Td className="w-1/4 max-w-0 max-lg:hidden">
        <EndedBy row={row} />
      </Td>
    </tr>
  );
}

function EndedBy({ row }: { row: TableRow }) {
  const words = useReasonWords();
  const reason = row.errorMessage ?? row.endReason;
  if (reason === null) return null;
  return (
    <span className={classNames('foreign-line block', row.errorMessage ? 'text-bad' : 'text-ink-2')} title={reason}>
      {words(reason)}
    </span>
  );
}

/** The data's own two colours: above is orange, below is blue. */
function advantageClass(advantage: number | null): string {
  if (advantage === null || Math.abs(advantage) < 0.005) return 'text-ink-3';
  return advantage > 0 ? 'text-positive-ink' : 'text-negative-ink';
}
