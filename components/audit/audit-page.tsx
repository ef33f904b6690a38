'use client';
import { useInfiniteQuery } from '@tanstack/react-query';
import { useTranslations } from 'next-intl';
import { useEffect, useState } from 'react';
import { useTRPC } from '@/components/trpc';
import { Button } from '@/components/ui/button';
import { classNames } from '@/components/ui/class-names';
import { Select, TextInput } from '@/components/ui/field';
import { FoldedText } from '@/components/ui/folded-text';
import { LoadMore } from '@/components/ui/load-more';
import { ABSENT } from '@/components/ui/numbers';
import { PageHeader } from '@/components/ui/page-header';
import { QueryView } from '@/components/ui/query-view';
import { SkeletonRows } from '@/components/ui/skeleton';
import { EmptyState } from '@/components/ui/state';
import { ROW_CLASS, Table, Td, Th } from '@/components/ui/table';
import { ExactTime } from '@/components/ui/time';
import { oneOf, useUrlState } from '@/components/ui/url-state';
import type { AuditEntryView } from '@/server/core/views';

const STATUSES = ['allowed', 'denied', 'started', 'success', 'error'] as const;
/** Suggestions; the field takes any word, since every administrative change has one of its own. */
const KNOWN_ACTIONS = [
  'permission_check',
  'approval_request',
  'approval_decision',
  'tool_execution_start',
  'tool_execution_complete',
  'tool_execution_error',
];

/** Who did what, when, to what, and how it went. The filters stand in the address. */
export function AuditPage() {
  const t = useTranslations('audit');
  const trpc = useTRPC();
  const [filters, set] = useUrlState(['agent', 'action', 'status']);
  const status = oneOf(filters.status, STATUSES);
  const query = useInfiniteQuery(
    trpc.audit.list.infiniteQueryOptions(
      { limit: 100, agentId: filters.agent || undefined, actionType: filters.action || undefined, status },
      { getNextPageParam: (page) => page.nextCursor },
    ),
  );
  const filtered = Boolean(filters.agent || filters.action || status);
  const clear = () => {
    set('agent', '');
    set('action', '');
    set('status', '');
  };
  return (
    <>
      <PageHeader
        title={t('title')}
        facts={
          <>
            <WordFilter
              label={t('action')}
              value={filters.action}
              onChange={(value) => set('action', value)}
              suggestions={KNOWN_ACTIONS}
            />
            <WordFilter label={t('agent')} value={filters.agent} onChange={(value) => set('agent', value)} />
            <Select
              aria-label={t('status')}
              className="w-36!"
              value={status ?? ''}
              onChange={({ target }) => set('status', target.value)}
            >
              <option value="">{t('everyStatus')}</option>
              {STATUSES.map((word) => (
                <option key={word} value={word}>
                  {t(`statuses.${word}`)}
                </option>
              ))}
            </Select>
            {filtered ? (
              <Button kind="quiet" onClick={clear}>
                {t('clear')}
              </Button>
            ) : null}
          </>
        }
        actions={
          <Button busy={query.isRefetching} onClick={() => query.refetch()}>
            {t('refresh')}
          </Button>
        }
      />
      <QueryView query={query} failed={t('failed')} loading={<SkeletonRows rows={12} label={t('loading')} />}>
        {({ pages }) => {
          const entries = pages.flatMap((page) => page.items);
          if (entries.length === 0)
            return (
              <EmptyState title={filtered ? t('nothingFits') : t('none')}>
                {filtered ? t('nothingFitsHint') : t('noneHint')}
              </EmptyState>
            );
          return (
            <>
              <Table label={t('title')} className="min-w-[40rem] table-fixed">
                <thead>
                  <tr>
                    <Th className="w-36">{t('columns.time')}</Th>
                    <Th className="w-52">{t('columns.action')}</Th>
                    <Th className="w-20">{t('columns.status')}</Th>
                    <Th className="w-32 max-md:hidden">{t('columns.who')}</Th>
                    <Th>{t('columns.resource')}</Th>
                    <Th className="w-24 max-lg:hidden">{t('columns.operation')}</Th>
                    <Th className="w-1/4 max-md:hidden">{t('columns.details')}</Th>
                  </tr>
                </thead>
                <tbody>
                  {entries.map((entry) => (
                    <Entry key={entry.id} entry={entry} />
                  ))}
                </tbody>
              </Table>
              <LoadMore shown={entries.length} total={pages.at(-1)?.total ?? entries.length} query={query} />
            </>
          );
        }}
      </QueryView>
    </>
  );
}

function Entry({ entry }: { entry: AuditEntryView }) {
  const t = useTranslations('audit');
  const known = oneOf(entry.status, STATUSES);
  const bad = known === 'denied' || known === 'error';
  return (
    <tr className={ROW_CLASS}>
      <Td className="text-ink-2">
        <ExactTime atMs={entry.atMs} />
      </Td>
      <Td>
        <span className="foreign-text">{entry.actionType}</span>
      </Td>
      <Td className={classNames(bad && 'text-bad', known === 'started' && 'text-ink-3')}>
        {known ? t(`statuses.${known}`) : entry.status}
      </Td>
      <Td className="max-md:hidden">
        <span className="foreign-line foreign-end block" title={entry.userName ?? entry.agentId ?? undefined}>
          <bdi>{entry.userName ?? entry.agentId ?? ABSENT}</bdi>
        </span>
      </Td>
      <Td>
        <FoldedText text={entry.resource} mono />
      </Td>
      <Td className="text-ink-2 max-lg:hidden">{entry.operation}</Td>
      <Td className="text-ink-2 max-md:hidden">
        {isEmpty(entry.details) ? (
          <span className="text-ink-3">{ABSENT}</span>
        ) : (
          <FoldedText text={JSON.stringify(entry.details)} mono />
        )}
      </Td>
    </tr>
  );
}

const isEmpty = (details: AuditEntryView['details']): boolean =>
  details === null || (typeof details === 'object' && Object.keys(details).length === 0);

/** A text filter that acts once the person pauses, so that not every letter is a question to the server. */
function WordFilter({
  label,
  value,
  suggestions,
  onChange,
}: {
  label: string;
  value: string;
  suggestions?: string[];
  onChange: (value: string) => void;
}) {
  const [typed, setTyped] = useState(value);
  useEffect(() => setTyped(value), [value]);
  useEffect(() => {
    if (typed === value) return;
    const timer = setTimeout(() => onChange(typed.trim().slice(0, 80)), 350);
    return () => clearTimeout(timer);
  }, [typed, value, onChange]);
  const listId = suggestions ? `suggest-${label}` : undefined;
  return (
    <>
      <TextInput
        type="search"
        aria-label={label}
        placeholder={label}
        list={listId}
        className="w-40!"
        value={typed}
        onChange={({ target }) => setTyped(target.value)}
      />
      {suggestions ? (
        <datalist id={listId}>
          {suggestions.map((word) => (
            <option key={word} value={word} />
          ))}
        </datalist>
      ) : null}
    </>
  );
}
