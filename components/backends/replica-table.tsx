'use client';
import { useTranslations } from 'next-intl';
import { Fragment, type ReactNode, useState } from 'react';
import { TONE_TEXT, type Tone } from '@/components/ui/chip';
import { EndLine } from '@/components/ui/end-line';
import { ABSENT, count, decimal, percent } from '@/components/ui/numbers';
import { NoteRow, ROW_CLASS, Table, Td, Th } from '@/components/ui/table';
import type { ReplicaView } from '@/server/core/views';
import { areMany, CHOSEN_COLOUR, colourOf, ServerStroke } from './server-stroke';
import { shortAddresses } from './short-addresses';

const TONES: Record<ReplicaView['state'], Tone> = {
  healthy: 'ok',
  down: 'bad',
  paused: 'warn',
  updating: 'accent',
  unknown: 'dim',
};
const COLUMNS = 12;

/**
 * Every server of a backend as it is now: our requests with it, and what it tells of itself. Of many, one is chosen here
 * whose line the charts show.
 */
export function ReplicaTable({
  replicas,
  chosenUrl,
  onChoose,
}: {
  replicas: readonly ReplicaView[];
  chosenUrl: string | null;
  onChoose: (url: string | null) => void;
}) {
  const t = useTranslations('backend.replicas');
  const short = shortAddresses(replicas.map(({ url }) => url));
  return (
    <Table label={t('title')}>
      <thead>
        <tr>
          <Th className="min-w-60">{t('server')}</Th>
          <Th>{t('state')}</Th>
          <Th>{t('weights')}</Th>
          <Th numeric title={t('oursTitle')}>
            {t('ours')}
          </Th>
          <Th numeric title={t('runningTitle')}>
            {t('running')}
          </Th>
          <Th numeric title={t('waitingTitle')}>
            {t('waiting')}
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
        {replicas.map((replica, server) => (
          <Replica
            key={replica.url}
            replica={replica}
            short={short[server] ?? replica.url}
            line={
              areMany(replicas.length) ? (
                <LineSwitch
                  server={short[server] ?? replica.url}
                  on={replica.url === chosenUrl}
                  onChange={(on) => onChoose(on ? replica.url : null)}
                />
              ) : replicas.length > 1 ? (
                <ServerStroke colour={colourOf(server)} />
              ) : null
            }
          />
        ))}
      </tbody>
    </Table>
  );
}

/** Never parted within its port. */
function Address({ url }: { url: string }) {
  const [whole = url, before = url, port = ''] = /^(.*)(:\d{1,5})/.exec(url) ?? [];
  return (
    <>
      {before}
      {port ? (
        <>
          <wbr />
          <span className="whitespace-nowrap">{port}</span>
          {url.slice(whole.length)}
        </>
      ) : null}
    </>
  );
}

function LineSwitch({ server, on, onChange }: { server: string; on: boolean; onChange: (on: boolean) => void }) {
  const t = useTranslations('backend.replicas');
  const says = t(on ? 'hideLine' : 'showLine', { server });
  return (
    <button
      type="button"
      aria-pressed={on}
      aria-label={says}
      title={says}
      onClick={() => onChange(!on)}
      className="-mx-1 flex shrink-0 rounded p-1 text-ink-3 hover:text-ink max-sm:py-2.5"
    >
      <ServerStroke colour={on ? CHOSEN_COLOUR : 'currentColor'} />
    </button>
  );
}

/** @param line how the server's line in the charts looks, or is chosen; null where there is but one */
function Replica({ replica, short, line }: { replica: ReplicaView; short: string; line: ReactNode }) {
  const t = useTranslations('backend.replicas');
  const [open, setOpen] = useState(false);
  const [whole, setWhole] = useState(false);
  const { url, state, reason, figures, weightVersion, errors, lastError } = replica;
  const waiting = figures?.waiting;
  const shown = open && lastError !== null;
  return (
    <Fragment>
      <tr className={reason || shown ? undefined : ROW_CLASS} data-replica={state}>
        {/* Takes what the others leave, so that no column moves when a number gets longer. */}
        <Td className="w-full max-w-0">
          <span className="flex items-center gap-2">
            {line}
            {short === url ? (
              <span className="foreign-text font-mono text-sm">
                <Address url={url} />
              </span>
            ) : (
              <button
                type="button"
                aria-expanded={whole}
                title={whole ? undefined : url}
                onClick={() => setWhole(!whole)}
                className="foreign-text text-left font-mono text-sm hover:underline"
              >
                {whole ? <Address url={url} /> : short}
              </button>
            )}
          </span>
        </Td>
        <Td className={`whitespace-nowrap ${TONE_TEXT[TONES[state]]}`}>{t(`states.${state}`)}</Td>
        <Td className="max-w-36 xl:max-w-56">
          {weightVersion === null ? ABSENT : <EndLine text={weightVersion} className="block font-mono text-sm" />}
        </Td>
        <Td numeric title={t('tokensInFlight', { tokens: count(replica.tokensInFlight) })}>
          {count(replica.inFlight)}
        </Td>
        <Td numeric>{count(figures?.running)}</Td>
        <Td numeric className={waiting ? 'text-warn' : undefined}>
          {count(waiting)}
        </Td>
        <Td numeric>{count(figures?.timeToFirstTokenMs)}</Td>
        <Td numeric>{decimal(figures?.timePerOutputTokenMs, 1)}</Td>
        <Td numeric>{count(figures?.tokensPerSecond)}</Td>
        <Td numeric>{percent(figures?.kvCacheUse)}</Td>
        <Td numeric>{percent(figures?.prefixHitRate)}</Td>
        <Td numeric className={errors > 0 ? 'text-bad' : 'text-ink-3'}>
          {lastError === null ? (
            count(errors)
          ) : (
            <button
              type="button"
              aria-expanded={open}
              title={t('lastErrorTitle')}
              onClick={() => setOpen(!open)}
              className="underline decoration-line underline-offset-3 hover:decoration-bad max-sm:py-1.5"
            >
              {count(errors)}
            </button>
          )}
        </Td>
      </tr>
      {reason || shown ? (
        <NoteRow columns={COLUMNS}>
          {reason ? <p className="foreign-text max-h-40 overflow-y-auto">{reason}</p> : null}
          {shown ? (
            <p className="foreign-text max-h-40 overflow-y-auto">{t('lastError', { error: lastError })}</p>
          ) : null}
        </NoteRow>
      ) : null}
    </Fragment>
  );
}
