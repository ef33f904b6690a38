'use client';
import { useInfiniteQuery } from '@tanstack/react-query';
import { useTranslations } from 'next-intl';
import { Fragment, useState } from 'react';
import { useTRPC } from '@/components/trpc';
import { TONE_TEXT, type Tone } from '@/components/ui/chip';
import { EndLine } from '@/components/ui/end-line';
import { FoldedText } from '@/components/ui/folded-text';
import { LoadMore } from '@/components/ui/load-more';
import { ABSENT, count, duration } from '@/components/ui/numbers';
import { NoteRow, ROW_CLASS, Table, Td, Th } from '@/components/ui/table';
import { Time } from '@/components/ui/time';
import type { WeightUpdateView } from '@/server/core/views';
import { withOlder } from './with-older';

const TONES: Record<WeightUpdateView['status'], Tone> = { running: 'accent', succeeded: 'ok', failed: 'bad' };
const COLUMNS = 8;
const OLDER_AT_ONCE = 100;

/** Which weights came when, from where, and what became of it: the newest, and the older ones when asked for. */
export function WeightUpdates({ name, newest }: { name: string; newest: readonly WeightUpdateView[] }) {
  const t = useTranslations('backend.weights');
  const trpc = useTRPC();
  const [older, setOlder] = useState(false);
  const query = useInfiniteQuery(
    trpc.backends.weightUpdates.infiniteQueryOptions(
      { name, limit: OLDER_AT_ONCE },
      { enabled: older, getNextPageParam: (page) => page.nextCursor },
    ),
  );
  if (newest.length === 0) return <p className="px-4 py-4 text-ink-2">{t('none')}</p>;
  const updates = withOlder(newest, query.data?.pages.flatMap(({ items }) => items) ?? []);
  // They are numbered from 1 without gaps.
  const total = newest[0]?.number ?? 0;
  const { isFetchNextPageError, fetchNextPage } = query;
  const more = {
    hasNextPage: updates.length < total,
    isFetchingNextPage: query.isFetchingNextPage || query.isLoading,
    isFetchNextPageError: isFetchNextPageError || query.isLoadingError,
    error: query.error,
    fetchNextPage: () => (query.data ? fetchNextPage() : older ? query.refetch() : setOlder(true)),
  };
  return (
    <>
      <Table label={t('title')}>
        <thead>
          <tr>
            <Th numeric>{t('number')}</Th>
            <Th>{t('version')}</Th>
            <Th>{t('status')}</Th>
            <Th className="min-w-44">{t('source')}</Th>
            <Th title={t('inFlight')}>{t('inFlightShort')}</Th>
            <Th numeric>{t('took')}</Th>
            <Th>{t('by')}</Th>
            <Th numeric>{t('when')}</Th>
          </tr>
        </thead>
        <tbody>
          {updates.map((update) => (
            <Fragment key={update.id}>
              <tr className={update.error ? undefined : ROW_CLASS} data-update={update.status}>
                <Td numeric className="text-ink-2">
                  {count(update.number)}
                </Td>
                <Td className="max-w-32">
                  <EndLine text={update.version} className="block font-mono text-sm" />
                </Td>
                <Td className={`whitespace-nowrap ${TONE_TEXT[TONES[update.status]]}`}>
                  {t(`statuses.${update.status}`)}
                </Td>
                <Td className="w-full max-w-0 text-ink-2">
                  {t(`sources.${update.source.kind}`)}
                  {update.source.path ? (
                    <EndLine text={update.source.path} className="block font-mono text-sm" />
                  ) : null}
                </Td>
                <Td className="whitespace-nowrap text-ink-2">{t(`inFlights.${update.inFlight}`)}</Td>
                <Td numeric className="text-ink-2">
                  {update.finishedAtMs === null ? ABSENT : duration(update.finishedAtMs - update.startedAtMs)}
                </Td>
                <Td className="max-w-28 text-ink-2">
                  <span className="foreign-line block" title={update.requestedBy ?? undefined}>
                    {update.requestedBy ?? ABSENT}
                  </span>
                </Td>
                <Td numeric className="text-ink-2">
                  <Time atMs={update.startedAtMs} />
                </Td>
              </tr>
              {update.error ? (
                <NoteRow columns={COLUMNS}>
                  <FoldedText text={update.error} />
                </NoteRow>
              ) : null}
            </Fragment>
          ))}
        </tbody>
      </Table>
      {total > newest.length ? <LoadMore shown={updates.length} total={total} query={more} /> : null}
    </>
  );
}
