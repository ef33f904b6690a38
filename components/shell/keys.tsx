'use client';
import { useRouter } from 'next/navigation';
import { useTranslations } from 'next-intl';
import { useEffect, useRef } from 'react';
import { Dialog } from '@/components/ui/dialog';
import { Kbd } from '@/components/ui/kbd';
import { isTyping, useAnnouncedKeys } from './page-keys';
import { PLACES } from './places';

const CHORD_MS = 1_200;

/** `g` then a letter goes to a place; `?` shows what every key does. */
export function Keys({ open, onOpen, onClose }: { open: boolean; onOpen: () => void; onClose: () => void }) {
  const t = useTranslations();
  const router = useRouter();
  const goPressedAt = useRef(Number.NEGATIVE_INFINITY);
  const pageKeys = useAnnouncedKeys();

  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (isTyping(event)) return;
      if (event.key === '?') {
        event.preventDefault();
        onOpen();
        return;
      }
      if (event.timeStamp - goPressedAt.current < CHORD_MS) {
        goPressedAt.current = Number.NEGATIVE_INFINITY;
        const place = PLACES.find(({ key }) => key === event.key);
        if (!place) return;
        // The page's own letters must not act on the second half of the chord.
        event.preventDefault();
        event.stopImmediatePropagation();
        onClose();
        router.push(place.href);
      } else if (event.key === 'g') {
        goPressedAt.current = event.timeStamp;
      }
    };
    window.addEventListener('keydown', onKey, { capture: true });
    return () => window.removeEventListener('keydown', onKey, { capture: true });
  }, [router, onOpen, onClose]);

  return (
    <Dialog open={open} title={t('keys.title')} onClose={onClose}>
      {pageKeys.length > 0 ? (
        <KeyList title={t('keys.here')} rows={pageKeys.map(({ keys, does }) => ({ keys: [keys], does }))} />
      ) : null}
      <KeyList
        title={t('keys.everywhere')}
        rows={[
          ...PLACES.map(({ id, key }) => ({ keys: ['g', key], does: t(`places.${id}`) })),
          { keys: ['?'], does: t('keys.overview') },
          { keys: ['Esc'], does: t('keys.close') },
        ]}
      />
    </Dialog>
  );
}

function KeyList({ title, rows }: { title: string; rows: { keys: string[]; does: string }[] }) {
  return (
    <section className="mb-4 last:mb-0">
      <h3 className="mb-1 text-sm font-semibold text-ink-3">{title}</h3>
      <dl className="grid grid-cols-[5rem_1fr] gap-y-1">
        {rows.map(({ keys, does }) => (
          <div key={`${keys.join(' ')} ${does}`} className="contents">
            <dt className="flex gap-1">
              {keys.map((key) => (
                <Kbd key={key}>{key}</Kbd>
              ))}
            </dt>
            <dd>{does}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
}
