import type { Metadata } from 'next';
import { getTranslations } from 'next-intl/server';
import { AddBackendPage } from '@/components/backends/add-backend-page';

export async function generateMetadata(): Promise<Metadata> {
  return { title: (await getTranslations('addBackend'))('title') };
}

export default function Page() {
  return <AddBackendPage />;
}
