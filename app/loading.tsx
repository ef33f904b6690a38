import { getTranslations } from 'next-intl/server';
import { PageHeader } from '@/components/ui/page-header';
import { Skeleton, SkeletonRows } from '@/components/ui/skeleton';

export default async function Loading() {
  const t = await getTranslations('list');
  return (
    <>
      <PageHeader title={<Skeleton className="h-4 w-32" />} />
      <SkeletonRows rows={8} label={t('loading')} />
    </>
  );
}
