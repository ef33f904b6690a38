'use client';
import { useTranslations } from 'next-intl';
import { TONE_TEXT, type Tone } from '@/components/ui/chip';
import { ABSENT, count, decimal, percent } from '@/components/ui/numbers';
import { ROW_CLASS, Table, Td, Th } from '@/components/ui/table';
import type { ReplicaView } from '@/server/core/views';

const TONES: Record<ReplicaView['state'], Tone> = {
  healthy: 'ok',
  down: 'bad',
  paused: 'warn',
  updating: 'accent',
  unknown: 'dim',
};

/** Every server of a backend as it is now: our requests with it, and what it tells of itself. */
export function ReplicaTable({ replicas }: { replicas: readonly ReplicaView[] }) {
  const t = useTranslations('backend.replicas');
  return (
    <Table label={t('title')}>
      <thead>
        <tr>
          <Th>{t('server')}</Th>
          <Th>{t('state')}</Th>
          <Th>{t('weights')}</Th>
          <Th numeric title={t('oursTitle')}>
            {t('ours')}
          </Th>
          <Th numeric title={t('runningTitle')}>
            {t('running')}
          </Th>
          <Th numeric title={t('ttftTitle')}>
            {t('ttft')}
          </Th>
          <Th numeric title={t('tpotTitle')}>
            {t('tpot')}
          </Th>
          <Th numeric>{t('tokens')}</Th>
          <Th numeric title={t('kvTitle')}>
            {t('kv')}
          </Th>
          <Th numeric title={t('prefixTitle')}>
            {t('prefix')}
          </Th>
          <Th numeric>{t('errors')}</Th>
        </tr>
      </thead>
      <tbody>
        {replicas.map((replica) => {
          const { url, state, reason, figures, weightVersion } = replica;
          const waiting = figures?.waiting ?? null;
          return (
            <tr key={url} className={ROW_CLASS} data-replica={state}>
              <Td className="max-w-80">
                <span className="foreign-line block font-mono text-sm" title={url}>
                  {url}
                </span>
                {reason ? <span className="foreign-text block text-sm text-ink-2">{reason}</span> : null}
              </Td>
              <Td className={`whitespace-nowrap ${TONE_TEXT[TONES[state]]}`}>{t(`states.${state}`)}</Td>
              <Td className="max-w-48">
                <span className="foreign-line block font-mono text-sm" title={weightVersion ?? undefined}>
                  {weightVersion ?? ABSENT}
                </span>
              </Td>
              <Td numeric title={t('tokensInFlight', { tokens: count(replica.tokensInFlight) })}>
                {count(replica.inFlight)}
              </Td>
              <Td numeric>
                {figures?.running == null ? ABSENT : count(figures.running)}
                {waiting ? <span className="text-warn"> +{count(waiting)}</span> : null}
              </Td>
              <Td numeric>{decimal(figures?.timeToFirstTokenMs, 0)}</Td>
              <Td numeric>{decimal(figures?.timePerOutputTokenMs, 1)}</Td>
              <Td numeric>{decimal(figures?.tokensPerSecond, 0)}</Td>
              <Td numeric>{percent(figures?.kvCacheUse)}</Td>
              <Td numeric>{percent(figures?.prefixHitRate)}</Td>
              <Td
                numeric
                className={replica.errors > 0 ? 'text-bad' : 'text-ink-3'}
                title={replica.lastError ?? undefined}
              >
                {count(replica.errors)}
              </Td>
            </tr>
          );
        })}
      </tbody>
    </Table>
  );
}
