import type { Metadata } from 'next';
import { getTranslations } from 'next-intl/server';
import { TrajectoryPage } from '@/components/trajectory/trajectory-page';

export async function generateMetadata(): Promise<Metadata> {
  return { title: (await getTranslations('trajectory'))('title') };
}

export default async function Page({ params }: { params: Promise<{ runId: string; trajectoryId: string }> }) {
  const { runId, trajectoryId } = await params;
  return <TrajectoryPage key={trajectoryId} runId={runId} trajectoryId={trajectoryId} />;
}
