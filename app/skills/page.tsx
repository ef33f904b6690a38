import type { Metadata } from 'next';
import { getTranslations } from 'next-intl/server';
import { SkillsPage } from '@/components/skills/skills-page';

export async function generateMetadata(): Promise<Metadata> {
  return { title: (await getTranslations('skills'))('title') };
}

export default function Page() {
  return <SkillsPage />;
}
