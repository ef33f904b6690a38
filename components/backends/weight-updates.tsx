'use client';
import { useTranslations } from 'next-intl';
import { Fragment } from 'react';
import { TONE_TEXT, type Tone } from '@/components/ui/chip';
import { FoldedText } from '@/components/ui/folded-text';
import { ABSENT, count, duration } from '@/components/ui/numbers';
import { ROW_CLASS, Table, Td, Th } from '@/components/ui/table';
import { Time } from '@/components/ui/time';
import type { WeightUpdateView } from '@/server/core/views';

const TONES: Record<WeightUpdateView['status'], Tone> = { running: 'accent', succeeded: 'ok', failed: 'bad' };

/** Which weights came when, from where, and what became of it. */
export function WeightUpdates({ updates }: { updates: readonly WeightUpdateView[] }) {
  const t = useTranslations('backend.weights');
  if (updates.length === 0) return <p className="px-4 py-4 text-ink-2">{t('none')}</p>;
  return (
    <Table label={t('title')}>
      <thead>
        <tr>
          <Th numeric>{t('number')}</Th>
          <Th>{t('version')}</Th>
          <Th>{t('status')}</Th>
          <Th>{t('source')}</Th>
          <Th>{t('inFlight')}</Th>
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
              <Td className="max-w-48">
                <span className="foreign-line block font-mono text-sm" title={update.version}>
                  {update.version}
                </span>
              </Td>
              <Td className={`whitespace-nowrap ${TONE_TEXT[TONES[update.status]]}`}>
                {t(`statuses.${update.status}`)}
              </Td>
              <Td className="max-w-80 text-ink-2">
                {t(`sources.${update.source.kind}`)}
                {update.source.path ? (
                  <span className="foreign-line block font-mono text-sm" title={update.source.path}>
                    {update.source.path}
                  </span>
                ) : null}
              </Td>
              <Td className="whitespace-nowrap text-ink-2">{t(`inFlights.${update.inFlight}`)}</Td>
              <Td numeric className="text-ink-2">
                {update.finishedAtMs === null ? ABSENT : duration(update.finishedAtMs - update.startedAtMs)}
              </Td>
              <Td className="max-w-40 text-ink-2">
                <span className="foreign-line block">{update.requestedBy ?? ABSENT}</span>
              </Td>
              <Td numeric className="text-ink-2">
                <Time atMs={update.startedAtMs} />
              </Td>
            </tr>
            {update.error ? (
              <tr>
                <Td colSpan={8} className="max-w-0 bg-panel text-sm text-ink-2">
                  <FoldedText text={update.error} />
                </Td>
              </tr>
            ) : null}
          </Fragment>
        ))}
      </tbody>
    </Table>
  );
}
