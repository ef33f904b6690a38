'use client';
import { useTranslations } from 'next-intl';
import { Button, ButtonLink } from '@/components/ui/button';
import { ErrorState } from '@/components/ui/state';

/** A page that broke while it was drawn; the frame round it stays. */
export default function PageError({ error, reset }: { error: Error & { digest?: string }; reset: () => void }) {
  const t = useTranslations('errors');
  return (
    <ErrorState
      className="m-4"
      title={t('pageBroke')}
      message={error.digest ? t('pageBrokeDigest', { digest: error.digest }) : error.message}
      action={
        <>
          <Button onClick={reset}>{t('again')}</Button>
          <ButtonLink kind="quiet" href="/">
            {t('toHome')}
          </ButtonLink>
        </>
      }
    />
  );
}
