'use client';
import { useQuery } from '@tanstack/react-query';
import Link from 'next/link';
import { useTranslations } from 'next-intl';
import { useState } from 'react';
import { useMay } from '@/components/people/use-may';
import { ON_ITS_OWN, useTRPC } from '@/components/trpc';
import { Button, ButtonLink } from '@/components/ui/button';
import { Chip } from '@/components/ui/chip';
import { EndLine } from '@/components/ui/end-line';
import { FoldedText } from '@/components/ui/folded-text';
import { ABSENT, count } from '@/components/ui/numbers';
import { PageHeader } from '@/components/ui/page-header';
import { QueryView } from '@/components/ui/query-view';
import { SkeletonRows } from '@/components/ui/skeleton';
import { EmptyState } from '@/components/ui/state';
import { ROW_CLASS, ROW_LINK_CLASS, Table, Td, Th } from '@/components/ui/table';

/** Where generations come from, and whether each answers now. */
export function BackendsPage() {
  const t = useTranslations('backends');
  const trpc = useTRPC();
  const mayAdd = useMay('operator');
  const query = useQuery(trpc.backends.list.queryOptions(undefined, { ...ON_ITS_OWN, refetchInterval: 15_000 }));
  // Only what a person asked for is shown as under way: the page also asks by itself.
  const [asked, setAsked] = useState(false);
  const ask = async () => {
    setAsked(true);
    await query.refetch();
    setAsked(false);
  };
  return (
    <>
      <PageHeader
        title={t('title')}
        actions={
          <>
            <Button busy={asked} onClick={ask}>
              {t('check')}
            </Button>
            {mayAdd ? (
              <ButtonLink kind="primary" href="/backends/new">
                {t('add')}
              </ButtonLink>
            ) : null}
          </>
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
                  <Th numeric className="max-sm:hidden">
                    {t('columns.servers')}
                  </Th>
                </tr>
              </thead>
              <tbody>
                {backends.map(({ name, kind, modelName, isDefault, health, urls }) => (
                  <tr key={name} className={ROW_CLASS}>
                    <Td className="max-w-64 max-sm:max-w-36">
                      <span className="flex min-w-0 items-baseline gap-2">
                        <Link
                          href={`/backends/${encodeURIComponent(name)}`}
                          className={`foreign-line ${ROW_LINK_CLASS}`}
                          title={name}
                        >
                          {name}
                        </Link>
                        {isDefault ? <Chip label={t('default')} /> : null}
                      </span>
                    </Td>
                    <Td className="w-1/2 max-sm:w-full">
                      <span className={health.ok ? 'text-ok' : health.held ? 'text-warn' : 'text-bad'}>
                        {health.ok ? t('answers') : health.held ? t('held') : t('silent')}
                      </span>
                      {health.message ? (
                        <div className="text-sm text-ink-2">
                          <FoldedText text={health.message} />
                        </div>
                      ) : null}
                    </Td>
                    <Td className="whitespace-nowrap text-ink-2 max-sm:hidden">{kind}</Td>
                    <Td className="max-w-60 text-ink-2 max-md:hidden xl:max-w-112">
                      {modelName === null ? ABSENT : <EndLine text={modelName} />}
                    </Td>
                    <Td numeric className="text-ink-2 max-sm:hidden">
                      {urls.length === 0 ? t('inside') : count(urls.length)}
                    </Td>
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
