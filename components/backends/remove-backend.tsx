'use client';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useRouter } from 'next/navigation';
import { useTranslations } from 'next-intl';
import { useState } from 'react';
import { useTRPC } from '@/components/trpc';
import { Button } from '@/components/ui/button';
import { Dialog } from '@/components/ui/dialog';
import { useErrorSentence } from '@/components/ui/query-view';
import { Notice } from '@/components/ui/state';
import { useErrorWhile } from '@/components/ui/use-error-while';

/** Forgets the backend, after a question; the server refuses while a run was made with it. */
export function RemoveBackend({ name, state }: { name: string; state: string }) {
  const t = useTranslations('backend.remove');
  const trpc = useTRPC();
  const router = useRouter();
  const queryClient = useQueryClient();
  const sentence = useErrorSentence();
  const [asking, setAsking] = useState(false);
  const remove = useMutation(
    trpc.backends.remove.mutationOptions({
      onSuccess: () => {
        void queryClient.invalidateQueries(trpc.backends.list.pathFilter());
        router.push('/backends');
      },
    }),
  );
  const failed = useErrorWhile(`${state} ${asking}`, remove.error);
  return (
    <>
      <Button kind="quiet" onClick={() => setAsking(true)}>
        {t('button')}
      </Button>
      <Dialog open={asking} title={t('title')} onClose={() => setAsking(false)}>
        <p className="foreign-text mb-3 text-ink-2">{t('hint', { name })}</p>
        {failed ? <Notice tone="bad">{sentence(failed)}</Notice> : null}
        <div className="mt-3 flex flex-wrap justify-end gap-2">
          <Button onClick={() => setAsking(false)}>{t('keep')}</Button>
          <Button kind="danger" busy={remove.isPending || remove.isSuccess} onClick={() => remove.mutate({ name })}>
            {t('now')}
          </Button>
        </div>
      </Dialog>
    </>
  );
}
