'use client';
import Link from 'next/link';
import { useTranslations } from 'next-intl';
import { count, decimal, duration, percent } from '@/components/ui/numbers';
import { Progress } from '@/components/ui/progress';
import { StatusWord } from '@/components/ui/status-word';
import { ROW_CLASS, ROW_LINK_CLASS, Table, Td, Th } from '@/components/ui/table';
import { Time, useNow } from '@/components/ui/time';
import type { RunSummary } from '@/server/core/views';
import { failureCount, finishedCount, isLive, totalCount } from './run-figures';

/** Runs, newest first, a line each. On a phone the columns that matter least leave. */
export function RunsTable({ runs, label }: { runs: readonly RunSummary[]; label: string }) {
  const t = useTranslations('runs.columns');
  return (
    <Table label={label}>
      <thead>
        <tr>
          <Th>{t('name')}</Th>
          <Th>{t('status')}</Th>
          <Th numeric>{t('finished')}</Th>
          <Th numeric>{t('reward')}</Th>
          <Th numeric className="max-sm:hidden">
            {t('success')}
          </Th>
          <Th numeric className="max-md:hidden">
            {t('failures')}
          </Th>
          <Th className="max-md:hidden">{t('skill')}</Th>
          <Th className="max-lg:hidden">{t('dataset')}</Th>
          <Th className="max-xl:hidden">{t('backend')}</Th>
          <Th numeric className="max-lg:hidden">
            {t('shape')}
          </Th>
          <Th numeric className="max-lg:hidden">
            {t('took')}
          </Th>
          <Th numeric className="max-sm:hidden">
            {t('created')}
          </Th>
        </tr>
      </thead>
      <tbody>
        {runs.map((run) => (
          <RunRow key={run.runId} run={run} />
        ))}
      </tbody>
    </Table>
  );
}

function RunRow({ run }: { run: RunSummary }) {
  const done = finishedCount(run.counts);
  const total = totalCount(run.counts);
  const failures = failureCount(run.counts);
  return (
    <tr className={ROW_CLASS}>
      <Td className="max-w-60 min-w-20 max-sm:max-w-28">
        {/* On a phone it wraps: what tells names apart is often at their end. */}
        <Link
          href={`/runs/${run.runId}`}
          className={`foreign-line block max-sm:line-clamp-3 max-sm:whitespace-normal max-sm:wrap-anywhere ${ROW_LINK_CLASS}`}
          title={run.name}
        >
          {run.name}
        </Link>
      </Td>
      <Td>
        <StatusWord status={run.status} />
      </Td>
      <Td numeric>
        {isLive(run) ? <Progress done={done} total={total} className="mr-2 w-12 max-sm:hidden" /> : null}
        {done === total ? count(total) : `${count(done)} / ${count(total)}`}
      </Td>
      <Td numeric className="font-semibold">
        {decimal(run.meanReward)}
      </Td>
      <Td numeric className="max-sm:hidden">
        {percent(run.successRate)}
      </Td>
      <Td numeric className={failures > 0 ? 'text-bad max-md:hidden' : 'text-ink-3 max-md:hidden'}>
        {count(failures)}
      </Td>
      <Td className="max-w-36 max-md:hidden">
        <span className="foreign-line block text-ink-2" title={run.skillName}>
          {run.skillName} v{run.skillVersion}
        </span>
      </Td>
      <Td className="max-w-32 max-lg:hidden">
        <span className="foreign-line block text-ink-2" title={run.datasetName}>
          {run.datasetName}
        </span>
      </Td>
      <Td className="max-w-32 max-xl:hidden">
        <span className="foreign-line block text-ink-2" title={run.backendName}>
          {run.backendName}
        </span>
      </Td>
      <Td numeric className="text-ink-2 max-lg:hidden">
        {count(run.taskCount)} × {count(run.groupSize)}
      </Td>
      <Td numeric className="text-ink-2 max-lg:hidden">
        <Took run={run} />
      </Td>
      <Td numeric className="text-ink-2 max-sm:hidden">
        <Time atMs={run.createdAtMs} />
      </Td>
    </tr>
  );
}

/** Seconds from the start to the end, or to now. */
export function Took({ run }: { run: Pick<RunSummary, 'status' | 'createdAtMs' | 'finishedAtMs'> }) {
  const now = useNow(1_000, run.finishedAtMs !== null || !isLive(run));
  return duration((run.finishedAtMs ?? now) - run.createdAtMs);
}
