'use client';
import { useInfiniteQuery } from '@tanstack/react-query';
import { useTranslations } from 'next-intl';
import { namesNothing, readServerProblem } from '@/components/server-errors';
import { useTRPC } from '@/components/trpc';
import { ButtonLink } from '@/components/ui/button';
import { Chip } from '@/components/ui/chip';
import { FoldedText } from '@/components/ui/folded-text';
import { LoadMore } from '@/components/ui/load-more';
import { ABSENT, count } from '@/components/ui/numbers';
import { PageHeader } from '@/components/ui/page-header';
import { QueryView } from '@/components/ui/query-view';
import { SkeletonRows } from '@/components/ui/skeleton';
import { EmptyState } from '@/components/ui/state';
import { ROW_CLASS, Table, Td, Th } from '@/components/ui/table';
import type { Json } from '@/server/core/vocabulary';

/** The tasks of one dataset, as they were imported. */
export function DatasetPage({ name }: { name: string }) {
  const t = useTranslations('dataset');
  const trpc = useTRPC();
  const query = useInfiniteQuery(
    trpc.datasets.tasks.infiniteQueryOptions({ name, limit: 50 }, { getNextPageParam: (page) => page.nextCursor }),
  );
  if (query.error && namesNothing(query.error))
    return (
      <EmptyState title={t('notFound')} action={<ButtonLink href="/datasets">{t('toDatasets')}</ButtonLink>}>
        <span className="foreign-text">{readServerProblem(query.error).message}</span>
      </EmptyState>
    );
  const total = query.data?.pages[0]?.total;
  return (
    <>
      <PageHeader
        trail={[{ label: t('datasets'), href: '/datasets' }]}
        title={name}
        facts={total === undefined ? null : <Chip label={t('tasks')}>{count(total)}</Chip>}
        actions={
          <ButtonLink kind="primary" href={`/runs/new?dataset=${encodeURIComponent(name)}`}>
            {t('start')}
          </ButtonLink>
        }
      />
      <QueryView query={query} failed={t('failed')} loading={<SkeletonRows rows={10} label={t('loading')} />}>
        {({ pages }) => {
          const tasks = pages.flatMap((page) => page.items);
          if (tasks.length === 0) return <EmptyState title={t('none')} />;
          return (
            <>
              <Table label={t('tasks')} className="table-fixed">
                <thead>
                  <tr>
                    <Th className="w-36 max-sm:w-24">{t('columns.task')}</Th>
                    <Th>{t('columns.prompt')}</Th>
                    <Th className="w-1/5 max-sm:w-28">{t('columns.answer')}</Th>
                    <Th className="w-1/4 max-lg:hidden">{t('columns.metadata')}</Th>
                    <Th className="w-32 max-xl:hidden">{t('columns.skill')}</Th>
                  </tr>
                </thead>
                <tbody>
                  {tasks.map((task) => (
                    <tr key={task.taskId} className={ROW_CLASS}>
                      <Td>
                        <FoldedText text={task.taskId} />
                      </Td>
                      <Td>
                        <FoldedText text={task.prompt} />
                      </Td>
                      <Td>
                        <JsonText value={task.answer} />
                      </Td>
                      <Td className="max-lg:hidden">
                        <JsonText value={task.metadata} />
                      </Td>
                      <Td className="text-ink-2 max-xl:hidden">{task.skill ?? ABSENT}</Td>
                    </tr>
                  ))}
                </tbody>
              </Table>
              <LoadMore shown={tasks.length} total={total ?? tasks.length} query={query} />
            </>
          );
        }}
      </QueryView>
    </>
  );
}

function JsonText({ value }: { value: Json }) {
  const absent = value === null || (typeof value === 'object' && Object.keys(value).length === 0);
  if (absent) return <span className="text-ink-3">{ABSENT}</span>;
  return <FoldedText mono text={typeof value === 'string' ? value : JSON.stringify(value)} />;
}
