'use client';
import { useLocale, useTranslations } from 'next-intl';
import { useEffect, useState } from 'react';

/** The time now, renewed every `everyMs`; still while `paused`. For pages that count seconds or say "3 minutes ago". */
export function useNow(everyMs: number, paused = false): number {
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    if (paused) return;
    setNow(Date.now());
    const timer = setInterval(() => setNow(Date.now()), everyMs);
    return () => clearInterval(timer);
  }, [everyMs, paused]);
  return now;
}

const UNITS = [
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
] as const;

/** "3 minutes ago" for the last week, then the date; the exact time, in the reader's own zone, on hover. */
export function Time({ atMs, className }: { atMs: number; className?: string }) {
  const locale = useLocale();
  const t = useTranslations('list');
  const now = useNow(30_000);
  const exact = new Intl.DateTimeFormat(locale, { dateStyle: 'medium', timeStyle: 'medium' }).format(atMs);
  return (
    <time dateTime={new Date(atMs).toISOString()} title={exact} className={className}>
      {ago(now - atMs, locale) ??
        (now - atMs < 60_000 ? t('justNow') : new Intl.DateTimeFormat(locale, { dateStyle: 'medium' }).format(atMs))}
    </time>
  );
}

function ago(ms: number, locale: string): string | null {
  if (ms > 7 * 86_400_000) return null;
  for (const [unit, length] of UNITS)
    if (ms >= length)
      return new Intl.RelativeTimeFormat(locale, { numeric: 'always', style: 'short' }).format(
        -Math.floor(ms / length),
        unit,
      );
  return null;
}

/** To the second, for logs that are read line by line. */
export function ExactTime({ atMs }: { atMs: number }) {
  const locale = useLocale();
  const day = new Intl.DateTimeFormat(locale, { month: 'short', day: 'numeric' }).format(atMs);
  const clock = new Intl.DateTimeFormat(locale, {
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
    hourCycle: 'h23',
  }).format(atMs);
  return (
    <time
      dateTime={new Date(atMs).toISOString()}
      title={new Intl.DateTimeFormat(locale, { dateStyle: 'full', timeStyle: 'long' }).format(atMs)}
      className="whitespace-nowrap"
    >
      {day} {clock}
    </time>
  );
}
