'use client';
import { useTranslations } from 'next-intl';
import { TONE_TEXT, type Tone } from '@/components/ui/chip';
import type { BackendCheck, CheckItem } from '@/server/core/inference';

const TONES: Record<CheckItem['status'], Tone> = { pass: 'ok', fail: 'bad', warn: 'warn', absent: 'dim' };

/** What was found out about a server: a line a question, with what was sent and what came back behind it. */
export function CheckList({ check }: { check: BackendCheck }) {
  const t = useTranslations('backend.check');
  const nothing = <span className="font-sans text-ink-3">{t('nothing')}</span>;
  return (
    <ul aria-label={t('title', { url: check.url })} data-check={check.ok ? 'ok' : 'failed'}>
      {check.items.map((item) => (
        <li key={item.id} className="border-b border-line-soft">
          <details className="group">
            <summary className="flex cursor-pointer list-none flex-wrap items-baseline gap-x-3 gap-y-0.5 px-4 py-1.5 hover:bg-panel [&::-webkit-details-marker]:hidden">
              <span className={`w-16 shrink-0 text-sm font-medium ${TONE_TEXT[TONES[item.status]]}`}>
                {t(`status.${item.status}`)}
              </span>
              <span className="w-40 shrink-0 font-medium max-sm:w-auto">{t(`item.${item.id}`)}</span>
              <span className="foreign-text min-w-0 flex-1 text-ink-2 max-sm:order-last max-sm:basis-full">
                {item.says}
              </span>
              <span aria-hidden="true" className="text-sm text-ink-3 group-open:invisible max-sm:ml-auto">
                {t('more')}
              </span>
            </summary>
            <dl className="grid grid-cols-[4rem_minmax(0,1fr)] gap-x-3 gap-y-1.5 bg-panel px-4 py-2 text-sm">
              <dt className="text-ink-3">{t('sent')}</dt>
              <dd className="foreign-text max-h-40 overflow-auto font-mono whitespace-pre-wrap">
                {item.sent ?? nothing}
              </dd>
              <dt className="text-ink-3">{t('received')}</dt>
              <dd className="foreign-text max-h-60 overflow-auto font-mono whitespace-pre-wrap">
                {item.received ?? nothing}
              </dd>
            </dl>
          </details>
        </li>
      ))}
    </ul>
  );
}
