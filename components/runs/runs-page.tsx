'use client';
import { useInfiniteQuery } from '@tanstack/react-query';
import { useTranslations } from 'next-intl';
import { useTRPC } from '@/components/trpc';
import { ButtonLink } from '@/components/ui/button';
import { LoadMore } from '@/components/ui/load-more';
import { PageHeader } from '@/components/ui/page-header';
import { QueryView } from '@/components/ui/query-view';
import { Segmented } from '@/components/ui/segmented';
import { SkeletonRows } from '@/components/ui/skeleton';
import { EmptyState } from '@/components/ui/state';
import { oneOf, useUrlState } from '@/components/ui/url-state';
import { RUN_STATUSES } from '@/server/core/vocabulary';
import { isLive } from './run-figures';
import { RunsTable } from './runs-table';

/** Every run, newest first; `?status=` keeps one kind. What is live is asked for again every two seconds. */
export function RunsPage() {
  const t = useTranslations('runs');
  const status = useTranslations('status');
  const trpc = useTRPC();
  const [filters, setFilter] = useUrlState(['status']);
  const wanted = oneOf(filters.status, RUN_STATUSES);
  const query = useInfiniteQuery(
    trpc.runs.list.infiniteQueryOptions(
      { status: wanted, limit: 50 },
      {
        getNextPageParam: (page) => page.nextCursor,
        refetchInterval: ({ state }) => (state.data?.pages.some((page) => page.items.some(isLive)) ? 2_000 : 15_000),
      },
    ),
  );
  return (
    <>
      <PageHeader
        title={t('title')}
        facts={
          <Segmented
            label={t('filter')}
            value={wanted ?? 'all'}
            options={[
              { value: 'all' as const, label: t('everything') },
              ...RUN_STATUSES.map((value) => ({ value, label: status(value) })),
            ]}
            onChange={(value) => setFilter('status', value === 'all' ? '' : value)}
          />
        }
        actions={
          <ButtonLink kind="primary" href="/runs/new">
            {t('start')}
          </ButtonLink>
        }
      />
      <QueryView query={query} failed={t('failed')} loading={<SkeletonRows rows={8} label={t('loading')} />}>
        {({ pages }) => {
          const runs = pages.flatMap((page) => page.items);
          if (runs.length === 0)
            return wanted ? (
              <EmptyState title={t('noneOfKind', { status: status(wanted) })}>{t('noneOfKindHint')}</EmptyState>
            ) : (
              <EmptyState title={t('none')} action={<ButtonLink href="/runs/new">{t('start')}</ButtonLink>}>
                {t('noneHint')}
              </EmptyState>
            );
          return (
            <>
              <RunsTable runs={runs} label={t('title')} />
              <LoadMore shown={runs.length} total={pages.at(-1)?.total ?? runs.length} query={query} />
            </>
          );
        }}
      </QueryView>
    </>
  );
}
