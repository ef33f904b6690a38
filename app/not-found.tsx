import { getTranslations } from 'next-intl/server';
import { ButtonLink } from '@/components/ui/button';
import { EmptyState } from '@/components/ui/state';

export default async function NotFound() {
  const t = await getTranslations('errors');
  return (
    <EmptyState
      title={t('noPage')}
      action={
        <>
          <ButtonLink kind="primary" href="/">
            {t('toHome')}
          </ButtonLink>
          <ButtonLink href="/runs">{t('toRuns')}</ButtonLink>
        </>
      }
    >
      {t('noPageHint')}
    </EmptyState>
  );
}
