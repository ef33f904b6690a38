'use client';
import { useTranslations } from 'next-intl';
import type { ReactNode } from 'react';
import { readServerProblem } from '@/components/server-errors';
import { Button } from './button';
import { ErrorState, Notice } from './state';

interface Answer<T> {
  data: T | undefined;
  error: unknown;
  isFetching: boolean;
  refetch: () => unknown;
}

/** A query's three faces: on its way, failed (with the server's sentence and a second try), there. */
export function QueryView<T>({
  query,
  failed,
  loading,
  children,
}: {
  query: Answer<T>;
  /** What could not be loaded, as a sentence. */
  failed: string;
  loading: ReactNode;
  children: (data: T) => ReactNode;
}) {
  const t = useTranslations('errors');
  const sentence = useErrorSentence();
  if (query.data !== undefined)
    return (
      <>
        {query.error ? <Notice>{t('stale', { why: sentence(query.error) })}</Notice> : null}
        {children(query.data)}
      </>
    );
  if (!query.error) return loading;
  return (
    <ErrorState
      title={failed}
      message={sentence(query.error)}
      action={
        <Button busy={query.isFetching} onClick={() => query.refetch()}>
          {t('again')}
        </Button>
      }
    />
  );
}

/** The server's own sentence, or one of ours where no server answered. */
export function useErrorSentence(): (error: unknown) => string {
  const t = useTranslations('errors');
  return (error) => {
    const { code, message } = readServerProblem(error);
    return code === null ? t('unreachable') : message;
  };
}
