'use client';
import { useQuery } from '@tanstack/react-query';
import { useTranslations } from 'next-intl';
import { ON_ITS_OWN, useTRPC } from '@/components/trpc';
import { Notice } from '@/components/ui/state';
import type { BackendSummary } from '@/server/core/views';

/** More servers than this are counted. */
const MOST_NAMED = 3;

/** That no run begins on a backend, and why each of its servers cannot be used. */
export function UnusableBackend({ backend, refused }: { backend: BackendSummary; refused: boolean }) {
  const t = useTranslations('start.unusable');
  const trpc = useTRPC();
  const { name, urls, health } = backend;
  const detail = useQuery(
    trpc.backends.get.queryOptions({ name }, { ...ON_ITS_OWN, enabled: urls.length > 0, retry: false }),
  );
  const answered = urls.length === 0 || !detail.isPending;
  const reasons = detail.data?.replicas.flatMap(({ url, reason }) => (reason === null ? [] : [{ url, reason }])) ?? [];
  return (
    <Notice tone={refused ? 'bad' : 'warn'}>
      {t(refused ? 'refused' : 'would', { name })}
      {answered && reasons.length === 0 ? <p>{health.message}</p> : null}
      {reasons.slice(0, MOST_NAMED).map(({ url, reason }) => (
        <p key={url}>{reason.includes(url) ? reason : `${url}: ${reason}`}</p>
      ))}
      {reasons.length > MOST_NAMED ? <p>{t('others', { count: reasons.length - MOST_NAMED })}</p> : null}
    </Notice>
  );
}
