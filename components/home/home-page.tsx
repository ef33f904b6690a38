'use client';
import { useQuery } from '@tanstack/react-query';
import Link from 'next/link';
import { useTranslations } from 'next-intl';
import { isLive } from '@/components/runs/run-figures';
import { RunsTable } from '@/components/runs/runs-table';
import { StartForm } from '@/components/runs/start-form';
import { ON_ITS_OWN, useTRPC } from '@/components/trpc';
import { classNames } from '@/components/ui/class-names';
import { EndLine } from '@/components/ui/end-line';
import { count } from '@/components/ui/numbers';
import { PageHeader } from '@/components/ui/page-header';
import { Panel } from '@/components/ui/panel';
import { QueryView } from '@/components/ui/query-view';
import { Skeleton, SkeletonRows } from '@/components/ui/skeleton';
import { EmptyState } from '@/components/ui/state';

/** What is here at a glance: start a run, what there is to start it with, and what ran last. */
export function HomePage() {
  const t = useTranslations('home');
  const runs = useTranslations('runs');
  const trpc = useTRPC();
  const recent = useQuery(
    trpc.runs.list.queryOptions(
      { limit: 8 },
      { refetchInterval: ({ state }) => (state.data?.items.some(isLive) ? 2_000 : 15_000) },
    ),
  );
  return (
    <>
      <PageHeader title={t('title')} />
      <div className="grid grid-cols-[minmax(0,1fr)] border-b lg:grid-cols-[minmax(0,34rem)_minmax(0,1fr)]">
        <Panel title={t('start')} className="max-lg:border-b lg:border-r">
          <StartForm />
        </Panel>
        <Panel title={t('here')}>
          <Inventory />
        </Panel>
      </div>
      <Panel
        title={t('recent')}
        aside={
          <Link href="/runs" className="hover:text-ink hover:underline">
            {recent.data ? t('allRuns', { total: recent.data.total }) : runs('title')}
          </Link>
        }
      >
        <QueryView query={recent} failed={runs('failed')} loading={<SkeletonRows rows={4} label={runs('loading')} />}>
          {({ items }) =>
            items.length === 0 ? (
              <EmptyState title={t('nothingYet')}>
                <ol className="list-decimal space-y-1 pl-5">
                  <li>{t('firstStep')}</li>
                  <li>{t('secondStep')}</li>
                  <li>{t('thirdStep')}</li>
                </ol>
              </EmptyState>
            ) : (
              <RunsTable runs={items} label={t('recent')} />
            )
          }
        </QueryView>
      </Panel>
    </>
  );
}

function Inventory() {
  const t = useTranslations('home');
  const trpc = useTRPC();
  const skills = useQuery(trpc.skills.list.queryOptions());
  const datasets = useQuery(trpc.datasets.list.queryOptions());
  const backends = useQuery(trpc.backends.list.queryOptions(undefined, ON_ITS_OWN));
  const tasks = datasets.data?.reduce((sum, { taskCount }) => sum + taskCount, 0);
  return (
    <div>
      <dl className="grid grid-cols-3 border-b border-line-soft">
        <Figure name={t('skills')} href="/skills" value={skills.data?.length} failed={skills.isError} />
        <Figure name={t('datasets')} href="/datasets" value={datasets.data?.length} failed={datasets.isError} />
        <Figure name={t('tasks')} href="/datasets" value={tasks} failed={datasets.isError} />
      </dl>
      <QueryView query={backends} failed={t('backendsFailed')} loading={<SkeletonRows rows={1} label={t('loading')} />}>
        {(list) =>
          list.length === 0 ? (
            <p className="px-4 py-3 text-ink-3">{t('noBackends')}</p>
          ) : (
            <ul>
              {list.slice(0, 6).map(({ name, modelName, isDefault, health }) => (
                <li
                  key={name}
                  className="flex min-w-0 items-baseline gap-2 border-b border-line-soft px-4 py-1.5 last:border-b-0"
                >
                  <span
                    aria-hidden="true"
                    className={classNames(
                      'size-1.5 shrink-0 self-center rounded-full',
                      health.ok ? 'bg-ok' : health.held ? 'bg-warn' : 'bg-bad',
                    )}
                  />
                  <Link
                    href="/backends"
                    className="foreign-line max-w-[40%] shrink-0 font-medium hover:underline"
                    title={name}
                  >
                    {name}
                  </Link>
                  {isDefault ? <span className="shrink-0 text-sm text-ink-3">{t('default')}</span> : null}
                  {health.ok && modelName !== null ? (
                    <EndLine text={modelName} title={health.message} className="ml-auto text-sm text-ink-3" />
                  ) : (
                    <span
                      className={classNames(
                        'foreign-line ml-auto text-sm',
                        health.ok ? 'text-ink-3' : health.held ? 'text-warn' : 'text-bad',
                      )}
                      title={health.message}
                    >
                      {health.message}
                    </span>
                  )}
                </li>
              ))}
              {list.length > 6 ? (
                <li className="px-4 py-1.5 text-sm">
                  <Link href="/backends" className="text-ink-3 hover:underline">
                    {t('moreBackends', { more: list.length - 6 })}
                  </Link>
                </li>
              ) : null}
            </ul>
          )
        }
      </QueryView>
    </div>
  );
}

function Figure({
  name,
  href,
  value,
  failed,
}: {
  name: string;
  href: string;
  value: number | undefined;
  failed: boolean;
}) {
  return (
    <div className="border-line-soft px-4 py-2.5 not-last:border-r">
      <dt className="text-sm text-ink-2">{name}</dt>
      <dd className="text-xl">
        {value === undefined && !failed ? (
          <Skeleton className="my-1 h-4 w-8" />
        ) : (
          <Link href={href} className="hover:underline">
            {count(value)}
          </Link>
        )}
      </dd>
    </div>
  );
}
