'use client';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import Link from 'next/link';
import { useTranslations } from 'next-intl';
import { useState } from 'react';
import { useMay } from '@/components/people/use-may';
import { useTRPC } from '@/components/trpc';
import { Button, buttonClass } from '@/components/ui/button';
import { Chip } from '@/components/ui/chip';
import { Dialog } from '@/components/ui/dialog';
import { count } from '@/components/ui/numbers';
import { PageHeader } from '@/components/ui/page-header';
import { useErrorSentence } from '@/components/ui/query-view';
import { Notice } from '@/components/ui/state';
import { StatusWord } from '@/components/ui/status-word';
import type { RunDetail } from '@/server/core/views';
import { finishedCount, isLive, totalCount } from './run-figures';
import { ScoreRun } from './score-run';

export function RunHeader({ run }: { run: RunDetail }) {
  const t = useTranslations('run');
  return (
    <PageHeader
      trail={[{ label: t('runs'), href: '/runs' }]}
      title={run.name}
      facts={
        <>
          <Chip>
            <StatusWord status={run.status} />
          </Chip>
          <Link
            href={`/skills/${encodeURIComponent(run.skillName)}?version=${run.skillVersion}`}
            className="max-w-72 min-w-0 rounded hover:bg-panel"
          >
            <Chip label={t('skill')} title={run.skillName}>
              {run.skillName} v{run.skillVersion}
            </Chip>
          </Link>
          <Link
            href={`/datasets/${encodeURIComponent(run.datasetName)}`}
            className="max-w-72 min-w-0 rounded hover:bg-panel"
          >
            <Chip label={t('dataset')} title={run.datasetName}>
              {run.datasetName}
            </Chip>
          </Link>
          <Link
            href={`/backends/${encodeURIComponent(run.backendName)}`}
            className="max-w-60 min-w-0 rounded hover:bg-panel"
          >
            <Chip label={t('backend')} title={run.backendName}>
              {run.backendName}
            </Chip>
          </Link>
          <Chip label={t('shape', { tasks: run.taskCount })}>× {count(run.groupSize)}</Chip>
          <Chip label={t('seed')}>{run.seed}</Chip>
          {run.sandboxLevels.length > 0 ? <Chip label={t('sandbox')}>{run.sandboxLevels.join(', ')}</Chip> : null}
        </>
      }
      actions={
        <>
          {isLive(run) ? <CancelRun run={run} /> : <ScoreRun runId={run.runId} />}
          <a href={`/api/runs/${run.runId}/export`} download className={buttonClass('outline')} title={t('exportHint')}>
            {t('export')}
          </a>
        </>
      }
    />
  );
}

function CancelRun({ run }: { run: RunDetail }) {
  const t = useTranslations('run');
  const trpc = useTRPC();
  const queryClient = useQueryClient();
  const sentence = useErrorSentence();
  const mayCancel = useMay('operator');
  const [asking, setAsking] = useState(false);
  const cancel = useMutation(
    trpc.runs.cancel.mutationOptions({
      onSuccess: async () => {
        await queryClient.invalidateQueries(trpc.runs.get.queryFilter({ runId: run.runId }));
        setAsking(false);
      },
    }),
  );
  return (
    <>
      <Button kind="danger" disabled={!mayCancel} onClick={() => setAsking(true)}>
        {t('cancel')}
      </Button>
      <Dialog open={asking} title={t('cancelTitle')} onClose={() => setAsking(false)}>
        <p className="mb-4 text-ink-2">
          {t('cancelHint', {
            finished: finishedCount(run.counts),
            rest: totalCount(run.counts) - finishedCount(run.counts),
          })}
        </p>
        {cancel.isError ? <Notice tone="bad">{sentence(cancel.error)}</Notice> : null}
        <div className="mt-3 flex flex-wrap justify-end gap-2">
          <Button onClick={() => setAsking(false)}>{t('keepRunning')}</Button>
          <Button kind="danger" busy={cancel.isPending} onClick={() => cancel.mutate({ runId: run.runId })}>
            {t('cancelNow')}
          </Button>
        </div>
      </Dialog>
    </>
  );
}
