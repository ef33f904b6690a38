import type { Metadata } from 'next';
import { getTranslations } from 'next-intl/server';
import { NewRunPage } from '@/components/runs/new-run-page';

export async function generateMetadata(): Promise<Metadata> {
  return { title: (await getTranslations('start'))('title') };
}

export default function Page() {
  return <NewRunPage />;
}
