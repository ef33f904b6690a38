'use client';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useTranslations } from 'next-intl';
import { useState } from 'react';
import { useTRPC } from '@/components/trpc';
import { Button } from '@/components/ui/button';
import { Dialog } from '@/components/ui/dialog';
import { Field, Select, TextInput } from '@/components/ui/field';
import { useErrorSentence } from '@/components/ui/query-view';
import { Notice } from '@/components/ui/state';
import { useErrorWhile } from '@/components/ui/use-error-while';
import type { WeightSource } from '@/server/core/inference';

/** Asks for new weights: where they are, what they are called, and what becomes of the generations under way. */
export function UpdateWeights({
  name,
  state,
  sources,
  open,
  onClose,
}: {
  name: string;
  /** Of the backend: what failed in another says nothing of this one. */
  state: string;
  sources: readonly WeightSource[];
  open: boolean;
  onClose: () => void;
}) {
  const t = useTranslations('backend.weights');
  const trpc = useTRPC();
  const queryClient = useQueryClient();
  const sentence = useErrorSentence();
  const [kind, setKind] = useState<WeightSource>(sources[0] ?? 'checkpoint');
  const [path, setPath] = useState('');
  const [version, setVersion] = useState('');
  const [inFlight, setInFlight] = useState<'drain' | 'interrupt'>('drain');
  const update = useMutation(
    trpc.backends.updateWeights.mutationOptions({
      onSettled: () => queryClient.invalidateQueries(trpc.backends.get.queryFilter({ name })),
      onSuccess: onClose,
    }),
  );
  const failed = useErrorWhile(`${state} ${open}`, update.error);
  const ready = version.trim() !== '' && (kind === 'external' || path.trim() !== '');
  return (
    <Dialog open={open} title={t('update')} onClose={onClose}>
      <form
        className="flex flex-col gap-3"
        onSubmit={(event) => {
          event.preventDefault();
          const source = kind === 'external' ? { kind } : { kind, path: path.trim() };
          if (ready) update.mutate({ name, source, version: version.trim(), inFlight });
        }}
      >
        <Field label={t('form.source')} hint={t(`sourceHint.${kind}`)}>
          {(wiring) => (
            <Select
              {...wiring}
              value={kind}
              onChange={({ target }) => setKind(sources.find((one) => one === target.value) ?? kind)}
            >
              {sources.map((one) => (
                <option key={one} value={one}>
                  {t(`sources.${one}`)}
                </option>
              ))}
            </Select>
          )}
        </Field>
        {kind === 'external' ? null : (
          <Field label={t('form.path')} hint={t('pathHint')}>
            {(wiring) => (
              <TextInput {...wiring} value={path} maxLength={4096} onChange={({ target }) => setPath(target.value)} />
            )}
          </Field>
        )}
        <Field label={t('form.version')} hint={t('versionHint')}>
          {(wiring) => (
            <TextInput
              {...wiring}
              value={version}
              maxLength={120}
              onChange={({ target }) => setVersion(target.value)}
            />
          )}
        </Field>
        <Field label={t('form.inFlight')} hint={t(`inFlightHint.${inFlight}`)}>
          {(wiring) => (
            <Select
              {...wiring}
              value={inFlight}
              onChange={({ target }) => setInFlight(target.value === 'interrupt' ? 'interrupt' : 'drain')}
            >
              <option value="drain">{t('inFlights.drain')}</option>
              <option value="interrupt">{t('inFlights.interrupt')}</option>
            </Select>
          )}
        </Field>
        {failed ? <Notice tone="bad">{sentence(failed)}</Notice> : null}
        <div className="flex flex-wrap items-center gap-2">
          <Button type="submit" kind="primary" busy={update.isPending} disabled={!ready}>
            {t('updateNow')}
          </Button>
          <Button kind="quiet" onClick={onClose}>
            {update.isPending ? t('leave') : t('cancel')}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
