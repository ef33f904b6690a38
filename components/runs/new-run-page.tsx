'use client';
import { useTranslations } from 'next-intl';
import { PageHeader } from '@/components/ui/page-header';
import { StartForm } from './start-form';

/** The start form on a page of its own; `?skill=` and `?dataset=` choose before the person does. */
export function NewRunPage() {
  const t = useTranslations();
  return (
    <>
      <PageHeader trail={[{ label: t('runs.title'), href: '/runs' }]} title={t('start.title')} />
      <div className="max-w-136">
        <StartForm />
      </div>
    </>
  );
}
