'use client';
import { useQuery } from '@tanstack/react-query';
import Link from 'next/link';
import { useTranslations } from 'next-intl';
import { useTRPC } from '@/components/trpc';
import { count } from '@/components/ui/numbers';
import { PageHeader } from '@/components/ui/page-header';
import { Panel } from '@/components/ui/panel';
import { QueryView } from '@/components/ui/query-view';
import { SkeletonRows } from '@/components/ui/skeleton';
import { EmptyState } from '@/components/ui/state';
import { ROW_CLASS, ROW_LINK_CLASS, Table, Td, Th } from '@/components/ui/table';
import { Time } from '@/components/ui/time';
import { ImportForm } from './import-form';

export function DatasetsPage() {
  const t = useTranslations('datasets');
  const trpc = useTRPC();
  const query = useQuery(trpc.datasets.list.queryOptions());
  return (
    <>
      <PageHeader title={t('title')} />
      <div className="grid grid-cols-[minmax(0,1fr)] xl:min-h-[calc(100dvh-2.75rem)] xl:grid-cols-[minmax(0,1fr)_26rem]">
        <div className="min-w-0">
          <QueryView query={query} failed={t('failed')} loading={<SkeletonRows label={t('loading')} />}>
            {(datasets) =>
              datasets.length === 0 ? (
                <EmptyState title={t('none')}>{t('noneHint')}</EmptyState>
              ) : (
                <Table label={t('title')}>
                  <thead>
                    <tr>
                      <Th>{t('columns.name')}</Th>
                      <Th numeric>{t('columns.tasks')}</Th>
                      <Th numeric>{t('columns.created')}</Th>
                    </tr>
                  </thead>
                  <tbody>
                    {datasets.map(({ name, taskCount, createdAtMs }) => (
                      <tr key={name} className={ROW_CLASS}>
                        <Td className="w-full max-w-0">
                          <Link
                            href={`/datasets/${encodeURIComponent(name)}`}
                            title={name}
                            className={`foreign-line block w-fit max-w-full ${ROW_LINK_CLASS}`}
                          >
                            {name}
                          </Link>
                        </Td>
                        <Td numeric>{count(taskCount)}</Td>
                        <Td numeric className="text-ink-2">
                          <Time atMs={createdAtMs} />
                        </Td>
                      </tr>
                    ))}
                  </tbody>
                </Table>
              )
            }
          </QueryView>
        </div>
        <Panel title={t('import')} className="max-xl:border-t xl:border-l">
          <ImportForm />
        </Panel>
      </div>
    </>
  );
}
