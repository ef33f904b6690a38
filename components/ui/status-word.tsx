'use client';
import { useTranslations } from 'next-intl';
import type { RunStatus, TrajectoryStatus } from '@/server/core/vocabulary';
import { TONE_TEXT, type Tone } from './chip';
import { classNames } from './class-names';

const TONES: Record<RunStatus | TrajectoryStatus, Tone> = {
  queued: 'dim',
  running: 'ok',
  completed: 'plain',
  truncated: 'warn',
  failed: 'bad',
  cancelled: 'dim',
  timed_out: 'bad',
};

/** The status of a run or trajectory as a word; what is running has a dot that breathes. */
export function StatusWord({ status, className }: { status: RunStatus | TrajectoryStatus; className?: string }) {
  const t = useTranslations('status');
  return (
    <span
      className={classNames('inline-flex items-center gap-1.5 whitespace-nowrap', TONE_TEXT[TONES[status]], className)}
    >
      {status === 'running' ? <span aria-hidden="true" className="pulse-soft size-1.5 rounded-full bg-ok" /> : null}
      {t(status)}
    </span>
  );
}
