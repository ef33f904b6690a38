'use client';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useRouter } from 'next/navigation';
import { useTranslations } from 'next-intl';
import { useState } from 'react';
import { useMay } from '@/components/people/use-may';
import { useTRPC } from '@/components/trpc';
import { Button } from '@/components/ui/button';
import { Field, INPUT_CLASS, TextInput } from '@/components/ui/field';
import { useErrorSentence } from '@/components/ui/query-view';
import { Notice } from '@/components/ui/state';

/** A JSON Lines file from the person's machine becomes a dataset; the server's sentence names the line that is wrong. */
export function ImportForm() {
  const t = useTranslations('datasets');
  const trpc = useTRPC();
  const router = useRouter();
  const queryClient = useQueryClient();
  const sentence = useErrorSentence();
  const mayImport = useMay('operator');
  const [file, setFile] = useState<File | null>(null);
  const [name, setName] = useState('');
  const [unreadable, setUnreadable] = useState(false);
  const send = useMutation(
    trpc.datasets.import.mutationOptions({
      // A file of many megabytes must not wait for, or hold up, the page's small queries.
      ...{ trpc: { context: { onItsOwn: true } } },
      onSuccess: async (dataset) => {
        await queryClient.invalidateQueries(trpc.datasets.pathFilter());
        router.push(`/datasets/${encodeURIComponent(dataset.name)}`);
      },
    }),
  );
  const choose = (chosen: File | null) => {
    setFile(chosen);
    setUnreadable(false);
    send.reset();
    if (chosen && name.trim() === '') setName(chosen.name.replace(/\.(jsonl|ndjson|json|txt)$/i, '').slice(0, 120));
  };
  return (
    <form
      className="flex flex-col gap-3 p-4"
      onSubmit={async (event) => {
        event.preventDefault();
        if (!file) return;
        const jsonl = await file.text().catch(() => null);
        if (jsonl === null) setUnreadable(true);
        else send.mutate({ name: name.trim(), jsonl });
      }}
    >
      <p className="text-ink-2">{t('importHint')}</p>
      <pre className="overflow-x-auto rounded bg-panel px-2 py-1.5 font-mono text-sm text-ink-2">{EXAMPLE_LINE}</pre>
      <Field label={t('file')}>
        {(wiring) => (
          <input
            {...wiring}
            type="file"
            accept=".jsonl,.ndjson,.json,.txt,application/jsonl,application/x-ndjson"
            onChange={({ target }) => choose(target.files?.[0] ?? null)}
            className={`${INPUT_CLASS} h-auto! py-1 file:mr-2 file:cursor-pointer file:rounded file:border file:border-line file:bg-bg file:px-2 file:py-0.5 file:text-ink`}
          />
        )}
      </Field>
      <Field label={t('name')} hint={t('nameHint')}>
        {(wiring) => (
          <TextInput {...wiring} value={name} maxLength={120} onChange={({ target }) => setName(target.value)} />
        )}
      </Field>
      {unreadable ? <Notice tone="bad">{t('unreadable')}</Notice> : null}
      {send.isError ? <Notice tone="bad">{sentence(send.error)}</Notice> : null}
      <div className="flex flex-wrap items-center gap-3">
        <Button
          type="submit"
          kind="primary"
          busy={send.isPending || send.isSuccess}
          disabled={!file || name.trim() === '' || !mayImport}
        >
          {t('importNow')}
        </Button>
        {mayImport ? null : <p className="text-sm text-ink-3">{t('notAllowed')}</p>}
      </div>
    </form>
  );
}

const EXAMPLE_LINE = '{"task_id":"t1","prompt":"…","answer":{"number":7}}';
