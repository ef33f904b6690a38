'use client';
import { useQuery } from '@tanstack/react-query';
import { useTranslations } from 'next-intl';
import { ON_ITS_OWN, useTRPC } from '@/components/trpc';
import { Button } from '@/components/ui/button';
import { Chip } from '@/components/ui/chip';
import { ABSENT } from '@/components/ui/numbers';
import { PageHeader } from '@/components/ui/page-header';
import { QueryView } from '@/components/ui/query-view';
import { SkeletonRows } from '@/components/ui/skeleton';
import { EmptyState } from '@/components/ui/state';
import { ROW_CLASS, Table, Td, Th } from '@/components/ui/table';

/** Where generations come from, and whether each answers now. */
export function BackendsPage() {
  const t = useTranslations('backends');
  const trpc = useTRPC();
  const query = useQuery(trpc.backends.list.queryOptions(undefined, { ...ON_ITS_OWN, refetchInterval: 15_000 }));
  return (
    <>
      <PageHeader
        title={t('title')}
        actions={
          <Button busy={query.isRefetching} onClick={() => query.refetch()}>
            {t('check')}
          </Button>
        }
      />
      <QueryView query={query} failed={t('failed')} loading={<SkeletonRows rows={3} label={t('loading')} />}>
        {(backends) =>
          backends.length === 0 ? (
            <EmptyState title={t('none')}>{t('noneHint')}</EmptyState>
          ) : (
            <Table label={t('title')}>
              <thead>
                <tr>
                  <Th>{t('columns.name')}</Th>
                  <Th>{t('columns.health')}</Th>
                  <Th className="max-sm:hidden">{t('columns.kind')}</Th>
                  <Th className="max-md:hidden">{t('columns.model')}</Th>
                </tr>
              </thead>
              <tbody>
                {backends.map(({ name, kind, modelName, isDefault, health }) => (
                  <tr key={name} className={ROW_CLASS}>
                    <Td className="max-w-64">
                      <span className="flex min-w-0 items-baseline gap-2">
                        <span className="foreign-line font-medium" title={name}>
                          {name}
                        </span>
                        {isDefault ? <Chip label={t('default')} /> : null}
                      </span>
                    </Td>
                    <Td className="w-1/2">
                      <span className={health.ok ? 'text-ok' : 'text-bad'}>
                        {health.ok ? t('answers') : t('silent')}
                      </span>
                      {health.message ? <span className="foreign-text ml-2 text-ink-2">{health.message}</span> : null}
                    </Td>
                    <Td className="text-ink-2 max-sm:hidden">{kind}</Td>
                    <Td className="text-ink-2 max-md:hidden">{modelName ?? ABSENT}</Td>
                  </tr>
                ))}
              </tbody>
            </Table>
          )
        }
      </QueryView>
    </>
  );
}
