'use client';
import { useMutation, useQuery } from '@tanstack/react-query';
import { useTranslations } from 'next-intl';
import { useTRPC } from '@/components/trpc';
import { Skeleton } from '@/components/ui/skeleton';

/** Who is signed in, as what, and the way out. */
export function ViewerName() {
  const t = useTranslations();
  const trpc = useTRPC();
  const viewer = useQuery(trpc.viewer.me.queryOptions(undefined, { staleTime: 60_000 }));
  const signOut = useMutation({
    mutationFn: async () => {
      const answer = await fetch('/api/sign-out', { method: 'POST' });
      if (!answer.ok) throw new Error(answer.statusText);
    },
    onSuccess: () => window.location.assign('/sign-in'),
  });
  if (viewer.isPending) return <Skeleton className="h-4 w-24" />;
  if (!viewer.data) return <p>{t('shell.unknownViewer')}</p>;
  return (
    <div className="flex items-baseline justify-between gap-2">
      <p className="foreign-line" title={viewer.data.name}>
        <span className="text-ink-2">{viewer.data.name}</span>
        {viewer.data.name === viewer.data.role ? null : ` · ${t(`roles.${viewer.data.role}`)}`}
      </p>
      <button
        type="button"
        onClick={() => signOut.mutate()}
        className="shrink-0 hover:text-ink hover:underline max-md:py-2"
      >
        {signOut.isError ? t('shell.signOutFailed') : t('shell.signOut')}
      </button>
    </div>
  );
}
