'use client';
import { useTranslations } from 'next-intl';
import { Button } from './button';
import { count } from './numbers';
import { useErrorSentence } from './query-view';

/** The end of a list: how many of how many are shown, and the way to more. */
export function LoadMore({
  shown,
  total,
  query,
}: {
  shown: number;
  total: number;
  query: {
    hasNextPage: boolean;
    isFetchingNextPage: boolean;
    isFetchNextPageError: boolean;
    error: unknown;
    fetchNextPage: () => unknown;
  };
}) {
  const t = useTranslations('list');
  const sentence = useErrorSentence();
  return (
    <footer className="flex flex-wrap items-center gap-3 px-4 py-3 text-sm text-ink-3">
      <span role="status">
        {query.hasNextPage
          ? t('some', { shown: count(shown), total: count(total) })
          : t('all', { shown: count(shown) })}
      </span>
      {query.hasNextPage ? (
        <Button busy={query.isFetchingNextPage} onClick={() => query.fetchNextPage()}>
          {t('more')}
        </Button>
      ) : null}
      {query.isFetchNextPageError ? <span className="text-bad">{sentence(query.error)}</span> : null}
    </footer>
  );
}
