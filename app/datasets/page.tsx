import type { Metadata } from 'next';
import { getTranslations } from 'next-intl/server';
import { DatasetsPage } from '@/components/datasets/datasets-page';

export async function generateMetadata(): Promise<Metadata> {
  return { title: (await getTranslations('datasets'))('title') };
}

export default function Page() {
  return <DatasetsPage />;
}
