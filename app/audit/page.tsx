import type { Metadata } from 'next';
import { getTranslations } from 'next-intl/server';
import { AuditPage } from '@/components/audit/audit-page';

export async function generateMetadata(): Promise<Metadata> {
  return { title: (await getTranslations('audit'))('title') };
}

export default function Page() {
  return <AuditPage />;
}
