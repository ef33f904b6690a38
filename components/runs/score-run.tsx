'use client';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useTranslations } from 'next-intl';
import { useState } from 'react';
import { useMay } from '@/components/people/use-may';
import { ON_ITS_OWN, useTRPC } from '@/components/trpc';
import { Button } from '@/components/ui/button';
import { Dialog } from '@/components/ui/dialog';
import { Field, Select } from '@/components/ui/field';
import { count } from '@/components/ui/numbers';
import { Progress } from '@/components/ui/progress';
import { useErrorSentence } from '@/components/ui/query-view';
import { Notice } from '@/components/ui/state';
import type { ScoreJobView, ScoreTarget } from '@/server/core/views';

/** How often a scoring under way is looked at. */
const EVERY_MS = 1_000;

/** The button that fills log-probabilities of reference or policy, and what it asks first. */
export function ScoreRun({ runId }: { runId: string }) {
  const t = useTranslations('score');
  const mayScore = useMay('operator');
  const [open, setOpen] = useState(false);
  return (
    <>
      <Button disabled={!mayScore} title={t('hint')} onClick={() => setOpen(true)}>
        {t('button')}
      </Button>
      <Dialog open={open} title={t('title')} onClose={() => setOpen(false)}>
        <ScoreForm runId={runId} onClose={() => setOpen(false)} />
      </Dialog>
    </>
  );
}

function ScoreForm({ runId, onClose }: { runId: string; onClose: () => void }) {
  const t = useTranslations('score');
  const trpc = useTRPC();
  const queryClient = useQueryClient();
  const sentence = useErrorSentence();
  const backends = useQuery(trpc.backends.list.queryOptions(undefined, ON_ITS_OWN));
  const [as, setAs] = useState<ScoreTarget>('ref');
  const [backend, setBackend] = useState('');
  const [alternatives, setAlternatives] = useState('0');
  const [entropy, setEntropy] = useState(false);
  const [again, setAgain] = useState(false);
  const start = useMutation(
    trpc.runs.score.mutationOptions({
      ...ON_ITS_OWN,
      onSuccess: async () => {
        await queryClient.invalidateQueries(trpc.runs.scores.queryFilter({ runId }));
        onClose();
      },
    }),
  );
  const able = backends.data?.filter(({ canScore }) => canScore !== false) ?? [];
  const chosen = backend || able[0]?.name || '';
  return (
    <form
      className="flex flex-col gap-3"
      onSubmit={(event) => {
        event.preventDefault();
        start.mutate({ runId, as, backend: chosen, alternatives: Number(alternatives), entropy, again });
      }}
    >
      <p className="text-ink-2">{t('explain')}</p>
      <div className="grid grid-cols-2 gap-3">
        <Field label={t('as')} hint={t(`asHint.${as}`)}>
          {(wiring) => (
            <Select
              {...wiring}
              value={as}
              onChange={({ target }) => setAs(target.value === 'policy' ? 'policy' : 'ref')}
            >
              <option value="ref">{t('targets.ref')}</option>
              <option value="policy">{t('targets.policy')}</option>
            </Select>
          )}
        </Field>
        <Field label={t('backend')} hint={t('backendHint')}>
          {(wiring) => (
            <Select {...wiring} value={chosen} onChange={({ target }) => setBackend(target.value)}>
              {(backends.data ?? []).map(({ name, canScore }) => (
                <option key={name} value={name} disabled={canScore === false}>
                  {canScore === false ? t('cannotScore', { name }) : name}
                </option>
              ))}
            </Select>
          )}
        </Field>
        <Field label={t('alternatives')} hint={t('alternativesHint')}>
          {(wiring) => (
            <Select {...wiring} value={alternatives} onChange={({ target }) => setAlternatives(target.value)}>
              {[0, 1, 2, 3, 4, 5].map((k) => (
                <option key={k} value={k}>
                  {k === 0 ? t('none') : k}
                </option>
              ))}
            </Select>
          )}
        </Field>
        <div className="flex flex-col justify-center gap-2">
          <Check label={t('entropy')} checked={entropy} onChange={setEntropy} />
          <Check label={t('again')} checked={again} onChange={setAgain} />
        </div>
      </div>
      {backends.isError ? <Notice tone="bad">{sentence(backends.error)}</Notice> : null}
      {backends.isSuccess && able.length === 0 ? <Notice>{t('noneScores')}</Notice> : null}
      {start.isError ? <Notice tone="bad">{sentence(start.error)}</Notice> : null}
      <div className="flex flex-wrap items-center gap-2">
        <Button type="submit" kind="primary" busy={start.isPending} disabled={chosen === ''}>
          {t('start')}
        </Button>
        <Button kind="quiet" onClick={onClose}>
          {t('close')}
        </Button>
      </div>
    </form>
  );
}

function Check({ label, checked, onChange }: { label: string; checked: boolean; onChange: (on: boolean) => void }) {
  return (
    <label className="flex items-center gap-2">
      <input type="checkbox" checked={checked} onChange={({ target }) => onChange(target.checked)} />
      {label}
    </label>
  );
}

/** How a scoring of the run goes on, and how the last of each target ended; nothing when there was none. */
export function ScoreStatus({ runId }: { runId: string }) {
  const t = useTranslations('score');
  const trpc = useTRPC();
  const queryClient = useQueryClient();
  const mayScore = useMay('operator');
  const filter = trpc.runs.scores.queryFilter({ runId });
  const { data: jobs = [] } = useQuery(
    trpc.runs.scores.queryOptions(
      { runId },
      { refetchInterval: ({ state }) => (state.data?.some(isRunning) ? EVERY_MS : false) },
    ),
  );
  const cancel = useMutation(
    trpc.runs.cancelScore.mutationOptions({ onSettled: () => queryClient.invalidateQueries(filter) }),
  );
  return jobs.map((job) =>
    isRunning(job) ? (
      <div key={job.as} className="flex flex-wrap items-center gap-3 border-b px-4 py-1.5 text-sm" data-score="running">
        <span className="flex min-w-0 flex-1 flex-wrap items-center gap-x-3 gap-y-1">
          <span className="foreign-text">{t('running', { as: t(`targets.${job.as}`), backend: job.backendName })}</span>
          <Progress done={job.done} total={job.total} className="w-80 max-w-full" />
        </span>
        <span className="text-ink-2 tabular-nums">
          {count(job.done)} / {count(job.total)}
        </span>
        {mayScore ? (
          <Button kind="quiet" busy={cancel.isPending} onClick={() => cancel.mutate({ runId })}>
            {t('cancel')}
          </Button>
        ) : null}
      </div>
    ) : (
      <div key={job.as} data-score={job.status}>
        <Notice tone={job.status === 'succeeded' ? 'ok' : job.status === 'failed' ? 'bad' : 'warn'}>
          <Ended job={job} />
        </Notice>
      </div>
    ),
  );
}

const isRunning = ({ status }: ScoreJobView): boolean => status === 'running';

function Ended({ job }: { job: ScoreJobView }) {
  const t = useTranslations('score');
  const about = { as: t(`targets.${job.as}`), backend: job.backendName, scored: job.scored };
  const parts = [
    t(`ended.${job.status === 'succeeded' || job.status === 'cancelled' ? job.status : 'failed'}`, about),
    ...(job.error ? [job.error] : []),
    ...(job.alreadyScored > 0 ? [t('alreadyScored', { count: job.alreadyScored })] : []),
    ...(job.approximate > 0 ? [t('approximate', { count: job.approximate })] : []),
  ];
  return <>{parts.join(' ')}</>;
}
