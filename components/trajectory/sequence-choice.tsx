'use client';
import { useTranslations } from 'next-intl';
import { count } from '@/components/ui/numbers';
import { Segmented } from '@/components/ui/segmented';
import type { TrajectoryDetail } from '@/server/core/views';

/** Which token sequence is shown, where a trajectory has more than one: its context was compacted, or its prefix broke. */
export function SequenceChoice({
  sequences,
  current,
  onChoose,
}: {
  sequences: TrajectoryDetail['sequences'];
  current: number;
  onChoose: (index: number) => void;
}) {
  const t = useTranslations('trajectory.page');
  if (sequences.length < 2) return null;
  return (
    <div className="flex items-center gap-2 border-b border-line-soft px-3 py-1 text-sm text-ink-2">
      <span>{t('sequence')}</span>
      <Segmented
        label={t('sequence')}
        value={String(current)}
        options={sequences.map((own) => ({
          value: String(own.index),
          label: t('sequenceOption', {
            index: own.index,
            generated: count(own.generatedLength),
            total: count(own.length),
          }),
        }))}
        onChange={(value) => onChoose(Number(value))}
      />
    </div>
  );
}
