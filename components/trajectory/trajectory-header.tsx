'use client';
import { useTranslations } from 'next-intl';
import { useReasonWords } from '@/components/runs/use-reason-words';
import { Button } from '@/components/ui/button';
import { Chip } from '@/components/ui/chip';
import { Kbd } from '@/components/ui/kbd';
import { count, decimal } from '@/components/ui/numbers';
import { PageHeader } from '@/components/ui/page-header';
import { StatusWord } from '@/components/ui/status-word';
import type { TrajectoryDetail } from '@/server/core/views';

/** Where this is, and its facts: what was generated of what there is, never "length" alone. */
export function TrajectoryHeader({
  detail,
  onSibling,
}: {
  detail: TrajectoryDetail;
  onSibling: (direction: 1 | -1) => void;
}) {
  const t = useTranslations('trajectory.page');
  const all = useTranslations('trajectory');
  const words = useReasonWords();
  const versions = [
    ...new Set(detail.sequences.flatMap((sequence) => sequence.weightVersions.map((span) => span.version))),
  ];
  return (
    <PageHeader
      trail={[
        { label: t('runs'), href: '/runs' },
        { label: detail.runName, href: `/runs/${detail.runId}` },
      ]}
      title={`${detail.taskId} · ${t('member', { member: detail.member + 1, size: detail.groupSize })}`}
      facts={
        <>
          <Chip title={detail.endReason ? words(detail.endReason) : undefined}>
            <StatusWord status={detail.status} />
          </Chip>
          <Chip label={t('reward')} title={detail.reward === null ? undefined : String(detail.reward)}>
            {decimal(detail.reward)}
          </Chip>
          <Chip label={t('steps')}>{count(detail.steps.length)}</Chip>
          <Chip
            label={t.rich('generated', {
              generated: count(detail.generatedTokens),
              total: count(detail.totalTokens),
              b: (text) => <b className="text-ink">{text}</b>,
            })}
          />
          {detail.sequences.some((own) => own.approximate) ? (
            <Chip tone="warn" title={all('approximate')}>
              {t('approximateChip')}
            </Chip>
          ) : null}
          {/* Where the status says it already, twice is not more. */}
          {detail.status !== 'truncated' && detail.sequences.some((own) => own.truncated) ? (
            <Chip tone="warn">{t('sequenceTruncated')}</Chip>
          ) : null}
          {versions.length > 0 ? (
            <Chip label={t('weights')} title={versions.join(' → ')} keepEnd className="max-w-full sm:max-w-72">
              {versions.length > 3 ? `${versions[0]} → … → ${versions.at(-1)}` : versions.join(' → ')}
            </Chip>
          ) : null}
          <Chip label={t('sandboxes')}>
            {detail.sandboxLevels.length > 0 ? detail.sandboxLevels.join(', ') : t('noSandbox')}
          </Chip>
          <Chip label={t('skill')} title={detail.skillName} className="max-w-60 max-sm:hidden">
            {detail.skillName} v{detail.skillVersion}
          </Chip>
          <Chip label={t('backend')} title={detail.backendName} className="max-w-60 max-sm:hidden">
            {detail.backendName}
          </Chip>
        </>
      }
      actions={
        <>
          <Button
            kind="quiet"
            className="px-1 max-sm:px-3"
            title={t('previous')}
            aria-label={t('previous')}
            onClick={() => onSibling(-1)}
          >
            <KeyHint>k</KeyHint>↑
          </Button>
          <Button
            kind="quiet"
            className="px-1 max-sm:px-3"
            title={t('next')}
            aria-label={t('next')}
            onClick={() => onSibling(1)}
          >
            <KeyHint>j</KeyHint>↓
          </Button>
        </>
      }
    />
  );
}

/** Not where there are no keys. */
function KeyHint({ children }: { children: string }) {
  return (
    <span className="max-sm:hidden pointer-coarse:hidden">
      <Kbd>{children}</Kbd>{' '}
    </span>
  );
}
