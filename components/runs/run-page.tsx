'use client';
import { useRouter } from 'next/navigation';
import { useTranslations } from 'next-intl';
import { useCallback, useEffect } from 'react';
import { GroupDots } from '@/components/charts/group-dots';
import { RunHeatmap } from '@/components/charts/run-heatmap';
import { namesNothing } from '@/components/server-errors';
import { ButtonLink } from '@/components/ui/button';
import { PageHeader } from '@/components/ui/page-header';
import { Panel } from '@/components/ui/panel';
import { QueryView } from '@/components/ui/query-view';
import { Skeleton, SkeletonRows } from '@/components/ui/skeleton';
import { EmptyState, Notice } from '@/components/ui/state';
import type { RunDetail } from '@/server/core/views';
import { RunFailures } from './run-failures';
import { isLive } from './run-figures';
import { RunHeader } from './run-header';
import { RunStats } from './run-stats';
import { ScoreStatus } from './score-run';
import { TrajectoryTable } from './trajectory-table';
import { useLiveRun } from './use-live-run';

/** One run: its figures, where advantage lies step by step, its groups, what went wrong, and every trajectory. */
export function RunPage({ runId }: { runId: string }) {
  const t = useTranslations('run');
  const { query, run, connection } = useLiveRun(runId);
  const name = run?.name;
  useEffect(() => {
    if (name) document.title = `${name.slice(0, 80)} · ${t('title')}`;
  }, [name, t]);

  if (query.error && namesNothing(query.error))
    return (
      <EmptyState title={t('notFound')} action={<ButtonLink href="/runs">{t('toRuns')}</ButtonLink>}>
        {t('notFoundHint')}
      </EmptyState>
    );
  return (
    <QueryView query={{ ...query, data: run }} failed={t('failed')} loading={<RunSkeleton label={t('loading')} />}>
      {(detail) => <LoadedRun run={detail} connection={connection} />}
    </QueryView>
  );
}

function LoadedRun({ run, connection }: { run: RunDetail; connection: ReturnType<typeof useLiveRun>['connection'] }) {
  const t = useTranslations('run');
  const router = useRouter();
  const open = useCallback(
    (trajectoryId: string) => router.push(`/runs/${run.runId}/trajectories/${trajectoryId}`),
    [router, run.runId],
  );
  return (
    <>
      <RunHeader run={run} />
      {run.error ? <Notice tone="bad">{run.error}</Notice> : null}
      {run.notices.map((notice) => (
        <Notice key={notice}>{notice}</Notice>
      ))}
      {isLive(run) && connection === 'error' ? <Notice>{t('noSocket')}</Notice> : null}
      {run.redone > 0 ? <Notice>{t('redone', { count: run.redone })}</Notice> : null}
      <ScoreStatus runId={run.runId} />
      <RunStats run={run} />
      <div className="grid grid-cols-[minmax(0,1fr)] border-b xl:grid-cols-[minmax(0,1fr)_24rem]">
        <Panel title={t('heatmap')} aside={t('heatmapAside')} className="xl:border-r" bodyClassName="p-4">
          <RunHeatmap groups={run.groups} onOpen={open} />
        </Panel>
        <div className="min-w-0 max-xl:border-t">
          <Panel title={t('groups')} aside={<GroupsAside run={run} />} bodyClassName="p-4">
            <GroupDots groups={run.groups} onOpen={open} />
          </Panel>
          <RunFailures run={run} />
        </div>
      </div>
      <TrajectoryTable run={run} />
    </>
  );
}

function GroupsAside({ run }: { run: RunDetail }) {
  const t = useTranslations('run');
  if (run.groupsWithoutSignal === 0) return t('groupsAside');
  return <span className="text-warn">{t('withoutSignal', { groups: run.groupsWithoutSignal })}</span>;
}

function RunSkeleton({ label }: { label: string }) {
  return (
    <div role="status" aria-label={label}>
      <PageHeader title={<Skeleton className="h-4 w-40" />} facts={<Skeleton className="h-4 w-64 max-w-full" />} />
      <div className="grid grid-cols-2 border-b sm:grid-cols-3 xl:grid-cols-6">
        {[1, 2, 3, 4, 5, 6].map((cell) => (
          <div key={cell} className="flex flex-col gap-2 px-4 py-3">
            <Skeleton className="h-3 w-16" />
            <Skeleton className="h-5 w-20" />
          </div>
        ))}
      </div>
      <Skeleton className="m-4 h-48" />
      <SkeletonRows rows={6} label={label} />
    </div>
  );
}
