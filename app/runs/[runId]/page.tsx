import type { Metadata } from 'next';
import { getTranslations } from 'next-intl/server';
import { RunPage } from '@/components/runs/run-page';

export async function generateMetadata(): Promise<Metadata> {
  return { title: (await getTranslations('run'))('title') };
}

export default async function Page({ params }: { params: Promise<{ runId: string }> }) {
  const { runId } = await params;
  return <RunPage key={runId} runId={runId} />;
}
