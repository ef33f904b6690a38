'use client';
import { useTranslations } from 'next-intl';
import { memo, useEffect, useMemo, useRef } from 'react';
import { RunHeatmap } from '@/components/charts/run-heatmap';
import { useReasonWords } from '@/components/runs/use-reason-words';
import { decimal, signed } from '@/components/ui/numbers';
import { PanelHeader } from '@/components/ui/panel';
import type { StepView, TrajectoryDetail } from '@/server/core/views';
import { visibleLine } from './visible-line';

/** The steps, each with reward and advantage, and the group as a heatmap in which this trajectory is outlined. */
export const StepsPane = memo(function StepsPane({
  detail,
  step,
  onStep,
  onOpen,
}: {
  detail: TrajectoryDetail;
  step: number | null;
  onStep: (step: number) => void;
  onOpen: (trajectoryId: string) => void;
}) {
  const t = useTranslations('trajectory.page');
  const words = useReasonWords();
  const list = useRef<HTMLOListElement | null>(null);
  useEffect(() => {
    if (step !== null) list.current?.querySelector(`[data-step="${step}"]`)?.scrollIntoView({ block: 'nearest' });
  }, [step]);
  const largest = useMemo(() => largestAdvantage(detail), [detail]);
  const group = useMemo(
    () => [
      {
        groupId: detail.groupId,
        position: detail.groupPosition,
        taskId: detail.taskId,
        prompt: detail.prompt,
        completed: detail.siblings.every((row) => row.finishedAtMs !== null),
        meanReward: null,
        stdReward: null,
        hasSignal: hasSignal(detail),
        trajectories: detail.siblings,
      },
    ],
    [detail],
  );
  return (
    <div className="flex h-full min-h-0 flex-col">
      <PanelHeader title={t('stepsHeading')} aside={t('rewardAdvantage')} />
      <div className="min-h-0 flex-1 overflow-y-auto">
        {detail.steps.length === 0 ? (
          <p className="px-4 py-3 text-ink-2">{detail.status === 'queued' ? t('queued') : t('noSteps')}</p>
        ) : (
          <ol ref={list}>
            {detail.steps.map((own) => (
              <StepItem
                key={own.stepNumber}
                step={own}
                largest={largest}
                current={own.stepNumber === step}
                onStep={onStep}
              />
            ))}
          </ol>
        )}
        {detail.error ? (
          <details className="border-l-2 border-bad px-4 py-2" open={detail.steps.length === 0}>
            <summary className="foreign-text text-bad">{detail.error.message}</summary>
            {detail.error.stack ? (
              <pre className="foreign-text mt-1 max-h-80 overflow-auto font-mono text-xs text-ink-2">
                {detail.error.stack}
              </pre>
            ) : null}
          </details>
        ) : detail.endReason ? (
          <p className="foreign-text px-4 py-2 text-sm text-ink-2">
            {t('endReason', { reason: words(detail.endReason) })}
          </p>
        ) : null}
      </div>
      <div className="shrink-0 border-t border-line">
        <PanelHeader title={t('groupHeading')} aside={t('siblings', { count: detail.siblings.length - 1 })} />
        <div className="px-3 py-2">
          <RunHeatmap groups={group} onOpen={onOpen} outlined={detail.trajectoryId} compact />
        </div>
      </div>
    </div>
  );
});

/** The advantage whose bar is full: the largest of the group, so that siblings can be compared. */
function largestAdvantage(detail: TrajectoryDetail): number {
  let largest = 1e-9;
  for (const row of detail.siblings)
    for (const value of row.advantages ?? []) largest = Math.max(largest, Math.abs(value));
  for (const own of detail.steps) largest = Math.max(largest, Math.abs(own.advantage ?? 0));
  return largest;
}

function hasSignal(detail: TrajectoryDetail): boolean | null {
  const known = detail.siblings.flatMap((row) => row.advantages ?? []);
  return known.length === 0 ? null : known.some((value) => value !== 0);
}

const StepItem = memo(function StepItem({
  step,
  largest,
  current,
  onStep,
}: {
  step: StepView;
  largest: number;
  current: boolean;
  onStep: (step: number) => void;
}) {
  const t = useTranslations('trajectory');
  const call = step.actions[0];
  const bad = step.results.find((result) => result.status !== 'success');
  const share = step.advantage === null ? 0 : Math.abs(step.advantage) / largest;
  const doing = call
    ? `${call.tool} ${call.arguments === null ? call.raw : JSON.stringify(call.arguments)}`
    : step.answer
      ? JSON.stringify(step.answer)
      : (step.problem ?? '');
  return (
    <li
      data-step={step.stepNumber}
      className={`border-b border-line-soft [contain-intrinsic-size:auto_3.5rem] [content-visibility:auto] ${current ? 'bg-panel shadow-[inset_3px_0_var(--accent)]' : ''}`}
    >
      <button
        type="button"
        aria-current={current ? 'step' : undefined}
        onClick={() => onStep(step.stepNumber)}
        className="grid w-full grid-cols-[1.25rem_minmax(0,1fr)_3.5rem] gap-x-2 gap-y-0.5 px-4 py-2 text-left hover:bg-panel focus-visible:-outline-offset-2"
      >
        <span className="text-ink-3">{step.stepNumber}</span>
        <span className="foreign-line text-ink-2">{visibleLine(step.thought) || '…'}</span>
        <span className="text-right" title={step.reward === null ? undefined : String(step.reward)}>
          {decimal(step.reward)}
        </span>
        <span />
        <span className="foreign-line font-mono text-sm" title={visibleLine(doing, 600)}>
          {step.answer && !call ? <span className="font-sans text-ink-2">{t('page.answer')} </span> : null}
          {visibleLine(doing)}
          {step.actions.length > 1 ? <span className="text-ink-3"> +{step.actions.length - 1}</span> : null}
        </span>
        <span className="relative h-2 self-center" title={signed(step.advantage, 6)}>
          <span className="absolute inset-y-0 left-1/2 w-px bg-line" />
          {step.advantage === null ? null : (
            <span
              className={`absolute inset-y-0 ${step.advantage >= 0 ? 'left-1/2 bg-positive' : 'right-1/2 bg-negative'}`}
              style={{ width: `${share * 50}%` }}
            />
          )}
        </span>
        {bad ? (
          <>
            <span />
            <span className="foreign-line col-span-2 text-sm text-bad">
              {t(`toolStatus.${bad.status}`)}
              {bad.error ? `: ${visibleLine(bad.error)}` : ''}
            </span>
          </>
        ) : step.problem ? (
          <>
            <span />
            <span className="foreign-line col-span-2 text-sm text-warn">{visibleLine(step.problem)}</span>
          </>
        ) : null}
      </button>
    </li>
  );
});
