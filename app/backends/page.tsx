import type { Metadata } from 'next';
import { getTranslations } from 'next-intl/server';
import { BackendsPage } from '@/components/backends/backends-page';

export async function generateMetadata(): Promise<Metadata> {
  return { title: (await getTranslations('backends'))('title') };
}

export default function Page() {
  return <BackendsPage />;
}
