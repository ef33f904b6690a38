import type { Metadata } from 'next';
import { BackendPage } from '@/components/backends/backend-page';

interface Props {
  params: Promise<{ name: string }>;
}

export async function generateMetadata({ params }: Props): Promise<Metadata> {
  return { title: nameOf((await params).name) };
}

export default async function Page({ params }: Props) {
  return <BackendPage name={nameOf((await params).name)} />;
}

/** Next hands over the part of the address as written; a broken escape stays as it is and is simply not found. */
function nameOf(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
