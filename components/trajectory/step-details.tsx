'use client';
import { useTranslations } from 'next-intl';
import { FoldedText } from '@/components/ui/folded-text';
import { ABSENT, count, decimal, duration } from '@/components/ui/numbers';
import { PanelHeader } from '@/components/ui/panel';
import type { StepView, TrajectoryDetail } from '@/server/core/views';
import { standingOf } from './standing';

/** Why a step scored what it scored: components × the skill's weights. */
export function StepScore({ step, weights }: { step: StepView; weights: Record<string, number> }) {
  const t = useTranslations('trajectory.page');
  return (
    <section className="border-t border-line-soft">
      <PanelHeader
        title={t('why', { reward: decimal(step.reward) })}
        aside={t('stepTitle', { step: step.stepNumber })}
      />
      <Components
        components={step.components}
        weights={weights}
        none={step.actions.length === 0 ? t('noCall') : t('noComponents')}
      />
    </section>
  );
}

/** The reward of the whole trajectory, how it compares with its group, its answer and what was asked for. */
export function TrajectoryOutcome({ detail }: { detail: TrajectoryDetail }) {
  const t = useTranslations('trajectory.page');
  const standing = standingOf(detail.trajectoryId, detail.siblings);
  return (
    <section className="border-t border-line-soft">
      <PanelHeader title={t('whyTrajectory', { reward: decimal(detail.reward) })} aside={t('outcome')} />
      <Components
        components={detail.rewardComponents}
        weights={detail.rewardWeights}
        none={detail.final ? t('noComponents') : t('notScored')}
      />
      {standing && standing.of > 1 ? (
        <dl className="grid grid-cols-[minmax(6.5rem,auto)_1fr] gap-x-3 gap-y-1 px-4 pb-2.5 text-sm">
          <dt className="text-ink-2">{t('rank')}</dt>
          <dd>
            <b>{standing.rank}</b> <span className="text-ink-2">{t('rankOf', { total: standing.of })}</span>
          </dd>
          <dt className="text-ink-2">{t('groupMean')}</dt>
          <dd title={`${standing.mean} ± ${standing.std}`}>
            <b>{decimal(standing.mean)}</b> <span className="text-ink-2">± {decimal(standing.std)}</span>
          </dd>
        </dl>
      ) : null}
      <dl className="space-y-1.5 px-4 pb-3 text-sm">
        <dt className="text-ink-2">{t('task')}</dt>
        <dd>
          <FoldedText text={detail.prompt} />
        </dd>
        <dt className="text-ink-2">{t('answer')}</dt>
        <dd>{detail.answer === null ? ABSENT : <FoldedText mono text={written(detail.answer)} />}</dd>
        <dt className="text-ink-2">{t('reference')}</dt>
        <dd>{detail.reference === null ? ABSENT : <FoldedText mono text={written(detail.reference)} />}</dd>
      </dl>
    </section>
  );
}

function Components({
  components,
  weights,
  none,
}: {
  components: Record<string, number>;
  weights: Record<string, number>;
  none: string;
}) {
  const t = useTranslations('trajectory.page');
  const rows = Object.entries(components);
  if (rows.length === 0) return <p className="px-4 py-2 text-sm text-ink-2">{none}</p>;
  return (
    <dl className="grid grid-cols-[minmax(6.5rem,auto)_1fr] gap-x-3 gap-y-1 px-4 py-2.5 text-sm">
      {rows.map(([name, value]) => (
        <div key={name} className="contents">
          <dt className="foreign-line text-ink-2">{name}</dt>
          <dd title={String(value)}>
            <b>{decimal(value)}</b>{' '}
            <span className="text-ink-2">
              {weights[name] === undefined
                ? t('noWeight')
                : `${t('times', { weight: decimal(weights[name]) })} = ${decimal(value * weights[name], 3)}`}
            </span>
          </dd>
        </div>
      ))}
    </dl>
  );
}

/** What the step did: its calls with permission and rule, and what came back, as text only. */
export function StepCalls({ step }: { step: StepView }) {
  const t = useTranslations('trajectory');
  if (step.actions.length === 0 && step.results.length === 0) return null;
  const calls = Math.max(step.actions.length, ...step.results.map((result) => result.callIndex + 1));
  return (
    <section className="border-t border-line-soft">
      <PanelHeader title={t('page.calls')} aside={t('page.stepTitle', { step: step.stepNumber })} />
      {Array.from({ length: calls }, (_, index) => {
        const action = step.actions.find((own) => own.index === index);
        const result = step.results.find((own) => own.callIndex === index);
        return (
          // biome-ignore lint/suspicious/noArrayIndexKey: a call is its index
          <div key={index} className="border-b border-line-soft px-4 py-2.5 last:border-b-0">
            <p className="foreign-line mb-1 font-mono text-sm font-semibold">{action?.tool ?? result?.tool}</p>
            {action ? (
              <FoldedText mono text={action.arguments === null ? action.raw : written(action.arguments)} />
            ) : null}
            {result ? (
              <>
                <dl className="mt-1.5 grid grid-cols-[minmax(6.5rem,auto)_1fr] gap-x-3 gap-y-1 text-sm">
                  <dt className="text-ink-2">{t('page.status')}</dt>
                  <dd className={result.status === 'success' ? 'font-semibold text-ok' : 'font-semibold text-bad'}>
                    {t(`toolStatus.${result.status}`)}
                  </dd>
                  <dt className="text-ink-2">{t('page.rule')}</dt>
                  <dd className="font-mono break-all">
                    {result.permission ? (
                      result.permission.rule
                    ) : (
                      <span className="font-sans text-ink-3">{t('page.noRule')}</span>
                    )}
                  </dd>
                  {result.permission ? (
                    <>
                      <dt className="text-ink-2">{t('page.level')}</dt>
                      <dd className="font-mono">{result.permission.level}</dd>
                      <dt className="text-ink-2">{t('page.permission')}</dt>
                      <dd>{t(`outcome.${result.permission.outcome}`)}</dd>
                    </>
                  ) : null}
                  <dt className="text-ink-2">{t('page.sandbox')}</dt>
                  <dd>{result.sandboxLevel ?? t('page.noSandbox')}</dd>
                  <dt className="text-ink-2">{t('page.duration')}</dt>
                  <dd>{duration(result.durationMs)}</dd>
                </dl>
                {result.error ? <p className="foreign-text mt-1.5 text-sm text-bad">{result.error}</p> : null}
                <p className="mt-1.5 text-sm text-ink-2">{t('page.observation')}</p>
                <FoldedText mono text={result.observation} />
                {result.truncated ? (
                  <p className="mt-1 text-sm text-warn">
                    {t('page.truncated', {
                      total: count(result.truncated.totalBytes),
                      kept: count(result.truncated.keptBytes),
                    })}{' '}
                    <a
                      className="underline"
                      href={`/api/outputs/${encodeURIComponent(result.truncated.outputId)}`}
                      download
                    >
                      {t('page.wholeOutput')}
                    </a>
                  </p>
                ) : null}
              </>
            ) : null}
          </div>
        );
      })}
    </section>
  );
}

/** JSON on one line where it is short, else a line a value. */
function written(value: unknown): string {
  const line = JSON.stringify(value);
  return line.length <= 32 ? line : JSON.stringify(value, null, 1);
}
