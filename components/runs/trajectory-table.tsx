'use client';
import { useTranslations } from 'next-intl';
import { useDeferredValue, useMemo } from 'react';
import { INPUT_CLASS, Select } from '@/components/ui/field';
import { count } from '@/components/ui/numbers';
import { PanelHeader } from '@/components/ui/panel';
import { EmptyState } from '@/components/ui/state';
import { Th } from '@/components/ui/table';
import { oneOf, useUrlState } from '@/components/ui/url-state';
import type { RunDetail } from '@/server/core/views';
import { TRAJECTORY_STATUSES } from '@/server/core/vocabulary';
import { SORT_KEYS, type SortKey, selectRows, tableRows } from './run-figures';
import { TrajectoryRows } from './trajectory-rows';

/** Columns in order; `numeric` ones stand right and are first sorted from high to low. */
const COLUMNS: { key: SortKey | 'member' | 'rewards' | 'end'; numeric?: boolean; className?: string }[] = [
  { key: 'task' },
  { key: 'member', numeric: true, className: 'max-sm:hidden' },
  { key: 'status' },
  { key: 'reward', numeric: true },
  { key: 'advantage', numeric: true, className: 'max-sm:hidden' },
  { key: 'steps', numeric: true },
  { key: 'rewards', className: 'max-sm:hidden' },
  { key: 'generated', numeric: true, className: 'max-md:hidden' },
  { key: 'duration', numeric: true, className: 'max-md:hidden' },
  { key: 'end', className: 'max-lg:hidden' },
];

/** Every trajectory of the run; what is looked for, kept and sorted by stands in the address. */
export function TrajectoryTable({ run }: { run: RunDetail }) {
  const t = useTranslations('run.table');
  const statusWord = useTranslations('status');
  const [state, set] = useUrlState(['find', 'status', 'sort', 'order']);
  const sort = oneOf(state.sort, SORT_KEYS) ?? 'task';
  const status = oneOf(state.status, TRAJECTORY_STATUSES);
  const descending = state.order === 'down';
  const find = useDeferredValue(state.find);
  const all = useMemo(() => tableRows(run.groups), [run.groups]);
  const rows = useMemo(
    () => selectRows(all, { find, status, sort, descending }),
    [all, find, status, sort, descending],
  );
  const sortBy = (key: SortKey, numeric: boolean) => {
    const turn = key === sort ? !descending : numeric;
    set('sort', key === 'task' ? '' : key);
    set('order', turn ? 'down' : '');
  };
  return (
    <section className="min-w-0">
      <PanelHeader
        title={t('title')}
        aside={
          <div className="flex flex-wrap items-center gap-2">
            <span role="status">
              {rows.length === all.length
                ? count(all.length)
                : t('some', { shown: count(rows.length), total: count(all.length) })}
            </span>
            <Select
              aria-label={t('statusFilter')}
              className="w-auto!"
              value={status ?? ''}
              onChange={(event) => set('status', event.target.value)}
            >
              <option value="">{t('everyStatus')}</option>
              {TRAJECTORY_STATUSES.map((word) => (
                <option key={word} value={word}>
                  {statusWord(word)} ({count(run.counts[word])})
                </option>
              ))}
            </Select>
            <input
              type="search"
              aria-label={t('find')}
              placeholder={t('find')}
              value={state.find}
              onChange={(event) => set('find', event.target.value)}
              className={`${INPUT_CLASS} w-44!`}
            />
          </div>
        }
      />
      {rows.length === 0 ? (
        <EmptyState title={all.length === 0 ? t('none') : t('nothingFits')}>
          {all.length === 0 ? t('noneHint') : t('nothingFitsHint')}
        </EmptyState>
      ) : (
        <TrajectoryRows
          runId={run.runId}
          rows={rows}
          label={t('title')}
          columnCount={COLUMNS.length}
          head={
            <tr>
              {COLUMNS.map(({ key, numeric = false, className }) => {
                const sortKey = oneOf(key, SORT_KEYS);
                const sorted = sortKey === sort;
                return (
                  <Th
                    key={key}
                    numeric={numeric}
                    className={`bg-bg ${className ?? ''}`}
                    aria-sort={sorted ? (descending ? 'descending' : 'ascending') : undefined}
                  >
                    {sortKey ? (
                      <button
                        type="button"
                        onClick={() => sortBy(sortKey, numeric)}
                        className={sorted ? 'font-semibold text-ink' : 'hover:text-ink'}
                      >
                        {t(`columns.${key}`)}
                        <span aria-hidden="true">{sorted ? (descending ? ' ↓' : ' ↑') : ''}</span>
                      </button>
                    ) : (
                      t(`columns.${key}`)
                    )}
                  </Th>
                );
              })}
            </tr>
          }
        />
      )}
    </section>
  );
}
