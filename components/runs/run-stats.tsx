'use client';
import { useTranslations } from 'next-intl';
import { type ReactNode, useMemo } from 'react';
import { count, decimal, percent } from '@/components/ui/numbers';
import { Progress } from '@/components/ui/progress';
import type { RunDetail } from '@/server/core/views';
import { failureCount, finishedCount, rewardFigures, totalCount } from './run-figures';
import { Took } from './runs-table';

/** The six figures of a run, in one strip. */
export function RunStats({ run }: { run: RunDetail }) {
  const t = useTranslations('run.stats');
  const { mean, standardError, counted } = useMemo(() => rewardFigures(run.groups), [run.groups]);
  const finished = finishedCount(run.counts);
  const total = totalCount(run.counts);
  const failures = failureCount(run.counts);
  const others = (['truncated', 'cancelled'] as const)
    .filter((status) => run.counts[status] > 0)
    .map((status) => t(status, { count: run.counts[status] }));
  return (
    <dl className="grid grid-cols-2 border-b sm:grid-cols-3 xl:grid-cols-6">
      <Stat name={t('reward')} title={t('rewardTitle', { counted })}>
        {decimal(mean)}
        {standardError === null ? null : <small className="text-base text-ink-3"> ± {decimal(standardError)}</small>}
      </Stat>
      <Stat name={t('success')}>{percent(run.successRate)}</Stat>
      <Stat name={t('finished')} below={<Progress done={finished} total={total} className="w-full max-w-40" />}>
        {count(finished)} <small className="text-base text-ink-3">/ {count(total)}</small>
      </Stat>
      <Stat name={t('generated')} title={t('generatedTitle')}>
        {count(run.generatedTokens)}
      </Stat>
      <Stat
        name={t('failures')}
        title={t('failuresTitle')}
        below={
          // A line is kept for what may still come, so that nothing moves when it does.
          <span className="text-sm text-ink-3">{others.join(' · ') || '\u00a0'}</span>
        }
      >
        <span className={failures > 0 ? 'text-bad' : undefined}>{count(failures)}</span>
      </Stat>
      <Stat name={t('took')}>
        <Took run={run} />
      </Stat>
    </dl>
  );
}

function Stat({
  name,
  title,
  below,
  children,
}: {
  name: string;
  title?: string;
  below?: ReactNode;
  children: ReactNode;
}) {
  return (
    <div title={title} className="min-w-0 border-line-soft px-4 py-2.5 not-last:border-r max-xl:border-b">
      <dt className="text-sm text-ink-2">{name}</dt>
      <dd>
        <span className="text-xl">{children}</span>
        {below ? <span className="block leading-none">{below}</span> : null}
      </dd>
    </div>
  );
}
