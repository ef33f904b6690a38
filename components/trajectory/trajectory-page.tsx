'use client';
import { useRouter } from 'next/navigation';
import { useTranslations } from 'next-intl';
import { useCallback, useEffect, useMemo, useRef, useState } from 'react';
import { namesNothing, readServerProblem } from '@/components/server-errors';
import { isTyping, usePageKeys } from '@/components/shell/page-keys';
import { Button, ButtonLink } from '@/components/ui/button';
import { decimal, signed } from '@/components/ui/numbers';
import { QueryView, useErrorSentence } from '@/components/ui/query-view';
import { Segmented } from '@/components/ui/segmented';
import { SkeletonRows } from '@/components/ui/skeleton';
import { EmptyState, ErrorState } from '@/components/ui/state';
import { useUrlState } from '@/components/ui/url-state';
import type { WireTokens } from '@/server/core/tokens/wire';
import type { TrajectoryDetail } from '@/server/core/views';
import { isChannel } from './channels';
import type { StepHead } from './paint';
import { SequenceChoice } from './sequence-choice';
import { StepCalls, StepScore, TrajectoryOutcome } from './step-details';
import { stepScores } from './step-scores';
import { StepsPane } from './steps-pane';
import { TokenInspector } from './token-inspector';
import { TokenView, type TokenViewHandle } from './token-view';
import { TrajectoryHeader } from './trajectory-header';
import { useTrajectory } from './use-trajectory';

const PANES = ['steps', 'tokens', 'inspector'] as const;
type Pane = (typeof PANES)[number];

/** One trajectory: its steps, its tokens and the token under the cursor, kept in step. */
export function TrajectoryPage({ runId, trajectoryId }: { runId: string; trajectoryId: string }) {
  const t = useTranslations('trajectory.page');
  const [url, setUrl] = useUrlState(['color', 'token', 'sequence']);
  const { query, tokens, sequence, live } = useTrajectory(
    trajectoryId,
    /^\d{1,6}$/.test(url.sequence) ? Number(url.sequence) : 0,
  );
  const sentence = useErrorSentence();
  if (query.error && namesNothing(query.error))
    return (
      <EmptyState title={t('notFound')} action={<ButtonLink href={`/runs/${runId}`}>{t('toRun')}</ButtonLink>}>
        {readServerProblem(query.error).message}
      </EmptyState>
    );
  return (
    <QueryView query={query} failed={t('loadFailed')} loading={<SkeletonRows rows={8} label={t('loading')} />}>
      {(detail) => (
        <Loaded
          detail={detail}
          tokens={tokens.data ?? null}
          tokensError={tokens.error ? sentence(tokens.error) : null}
          onRetry={() => void tokens.refetch()}
          live={live}
          sequence={sequence}
          url={url}
          setUrl={setUrl}
        />
      )}
    </QueryView>
  );
}

interface LoadedProps {
  detail: TrajectoryDetail;
  tokens: WireTokens | null;
  tokensError: string | null;
  onRetry: () => void;
  live: boolean;
  sequence: number;
  url: Record<'color' | 'token' | 'sequence', string>;
  setUrl: (key: 'color' | 'token' | 'sequence', value: string) => void;
}

function Loaded({ detail, tokens, tokensError, onRetry, live, sequence, url, setUrl }: LoadedProps) {
  const t = useTranslations('trajectory.page');
  const router = useRouter();
  const canvas = useRef<TokenViewHandle | null>(null);
  const [pane, setPane] = useState<Pane>('tokens');
  const [chosen, setChosen] = useState<number | null>(() => (/^\d{1,9}$/.test(url.token) ? Number(url.token) : null));
  const [hovered, setHovered] = useState<number | null>(null);
  // A step without tokens in this sequence can be looked at too.
  const [chosenStep, setChosenStep] = useState<number | null>(null);
  const facts = detail.sequences.find((own) => own.index === sequence);
  const length = tokens?.ids.length ?? 0;
  const inRange = (token: number | null) => (token !== null && token < length ? token : null);
  // Until one is chosen the cursor stands on the first token the policy sampled: there is always one explained.
  const firstSampled = useMemo(() => (tokens ? tokens.mask.indexOf(1) : -1), [tokens]);
  const selected = chosen ?? (chosenStep === null && firstSampled >= 0 ? firstSampled : null);
  const shownToken = inRange(hovered) ?? inRange(selected);
  const tokenStep = shownToken === null ? null : (tokens?.stepIndex[shownToken] ?? null);
  const step = tokenStep !== null && tokenStep >= 0 ? tokenStep : chosenStep;
  const stepView = detail.steps.find((own) => own.stepNumber === step);

  const advantages = useMemo(() => {
    const known = detail.steps.some((own) => own.advantage !== null);
    if (!known) return null;
    const values: (number | null)[] = [];
    for (const own of detail.steps) values[own.stepNumber] = own.advantage;
    return values;
  }, [detail.steps]);
  const groupAdvantages = useMemo(() => detail.siblings.flatMap((row) => row.advantages ?? []), [detail.siblings]);
  const stepHead = useCallback(
    (number: number): StepHead | null => {
      const own = detail.steps.find((candidate) => candidate.stepNumber === number);
      const tools = [...new Set(own?.actions.map((action) => action.tool))].join(', ').slice(0, 40);
      return {
        title: `${t('stepTitle', { step: number })}${tools ? ` · ${tools}` : ''}`,
        figures: own ? `r ${decimal(own.reward)} · A ${signed(own.advantage)}` : '',
        advantage: own?.advantage ?? null,
      };
    },
    [detail.steps, t],
  );

  // The address follows the cursor at rest: browsers refuse more than a few changes a second.
  // On the way to another trajectory it stays as it is: a change would stop the router.
  const leaving = useRef(false);
  useEffect(() => {
    const write = () => {
      clearTimeout(timer);
      if (!leaving.current) setUrl('token', chosen === null ? '' : String(chosen));
    };
    const timer = setTimeout(write, 300);
    // What may lead to another page is met with the address written: afterwards it would be too late.
    const onKey = ({ key }: KeyboardEvent) => {
      if (key === 'g' || key === 'Enter') write();
    };
    window.addEventListener('pointerdown', write, { capture: true });
    window.addEventListener('keydown', onKey, { capture: true });
    return () => {
      clearTimeout(timer);
      window.removeEventListener('pointerdown', write, { capture: true });
      window.removeEventListener('keydown', onKey, { capture: true });
    };
  }, [chosen, setUrl]);

  // A link to a token opens at it.
  const opened = useRef(false);
  useEffect(() => {
    if (opened.current || length === 0) return;
    opened.current = true;
    if (chosen !== null && chosen < length) canvas.current?.reveal(chosen);
  }, [length, chosen]);

  const goToStep = useCallback(
    (number: number) => {
      setChosenStep(number);
      setHovered(null);
      const at = tokens ? firstOfStep(tokens, number) : -1;
      if (at < 0) return setChosen(null);
      setChosen(at);
      canvas.current?.reveal(at);
    },
    [tokens],
  );
  const showStep = useCallback(
    (number: number) => {
      goToStep(number);
      setPane('tokens');
    },
    [goToStep],
  );
  const openTrajectory = useCallback(
    (id: string) => {
      leaving.current = id !== detail.trajectoryId;
      const kept = new URLSearchParams(url.color ? { color: url.color } : {}).toString();
      router.push(`/runs/${detail.runId}/trajectories/${id}${kept ? `?${kept}` : ''}`);
    },
    [router, detail.runId, detail.trajectoryId, url.color],
  );
  const goToSibling = useCallback(
    (direction: 1 | -1) => {
      const members = [...detail.siblings].sort((a, b) => a.member - b.member);
      const at = members.findIndex((row) => row.trajectoryId === detail.trajectoryId);
      const next = members[(at + direction + members.length) % members.length];
      if (next && next.trajectoryId !== detail.trajectoryId) openTrajectory(next.trajectoryId);
    },
    [detail, openTrajectory],
  );

  usePageKeys([
    { keys: 'j k', does: t('key.siblings') },
    { keys: '↑ ↓', does: t('key.steps') },
    { keys: 'n p', does: t('key.tokenSteps') },
    { keys: '[ ]', does: t('key.sampled') },
    { keys: '/', does: t('key.find') },
  ]);
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (isTyping(event) || event.defaultPrevented || event.shiftKey) return;
      if (event.key === 'j' || event.key === 'k') return goToSibling(event.key === 'j' ? 1 : -1);
      if (event.key === '/') {
        event.preventDefault();
        canvas.current?.openFind();
        return;
      }
      if (event.key !== 'ArrowDown' && event.key !== 'ArrowUp') return;
      const at = detail.steps.findIndex((own) => own.stepNumber === step);
      const next = detail.steps[event.key === 'ArrowDown' ? at + 1 : Math.max(0, at - 1)];
      if (!next) return;
      event.preventDefault();
      goToStep(next.stepNumber);
    };
    window.addEventListener('keydown', onKey);
    return () => window.removeEventListener('keydown', onKey);
  }, [goToSibling, goToStep, detail.steps, step]);

  const only = (name: Pane) => (pane === name ? '' : 'max-lg:hidden');
  return (
    <div className="flex h-[calc(100dvh-var(--top-bar))] min-h-[30rem] flex-col">
      <TrajectoryHeader detail={detail} onSibling={goToSibling} />
      <div className="flex items-center border-b border-line-soft px-3 py-1 lg:hidden">
        <Segmented
          label={t('panes')}
          value={pane}
          options={PANES.map((value) => ({ value, label: t(`tab.${value}`) }))}
          onChange={setPane}
        />
      </div>
      <div className="grid min-h-0 flex-1 grid-cols-[minmax(0,1fr)] lg:grid-cols-[17rem_minmax(0,1fr)_18rem]">
        <div className={`min-h-0 border-line lg:border-r ${only('steps')}`}>
          <StepsPane detail={detail} step={step} onStep={showStep} onOpen={openTrajectory} />
        </div>
        <div className={`flex min-h-0 min-w-0 flex-col ${only('tokens')}`}>
          <SequenceChoice
            sequences={detail.sequences}
            current={sequence}
            onChoose={(index) => {
              setChosen(null);
              setChosenStep(null);
              setUrl('sequence', index === 0 ? '' : String(index));
            }}
          />
          <div className="min-h-0 flex-1">
            {tokensError && !tokens ? (
              <ErrorState
                title={t('tokensFailed')}
                message={tokensError}
                action={<Button onClick={onRetry}>{t('retry')}</Button>}
              />
            ) : !tokens && (detail.sequences.length > 0 || live) ? (
              live && detail.totalTokens === 0 ? (
                <p className="px-4 py-6 text-ink-2">{detail.status === 'queued' ? t('queued') : t('waiting')}</p>
              ) : (
                <SkeletonRows rows={10} label={t('tokensLoading')} />
              )
            ) : !tokens || length === 0 ? (
              <EmptyState title={live ? t('waiting') : t('noTokens')}>{live ? null : t('noTokensFailed')}</EmptyState>
            ) : (
              <TokenView
                ref={canvas}
                tokens={tokens}
                weights={facts?.weightVersions ?? []}
                advantages={advantages}
                groupAdvantages={groupAdvantages}
                channel={isChannel(url.color) ? url.color : advantages ? 'advantage' : 'mask'}
                selected={selected}
                stepHead={stepHead}
                live={live}
                onChannel={(channel) => setUrl('color', channel)}
                onSelect={setChosen}
                onHover={setHovered}
              />
            )}
          </div>
          {shownToken !== null && tokens ? (
            <button
              type="button"
              className="border-t border-line px-4 py-2.5 text-left text-sm text-accent lg:hidden"
              onClick={() => setPane('inspector')}
            >
              {t('openToken', { position: shownToken })}
            </button>
          ) : null}
        </div>
        <aside
          className={`min-h-0 overflow-y-auto border-line lg:border-l ${only('inspector')}`}
          aria-label={t('tab.inspector')}
        >
          {shownToken !== null && tokens ? (
            <TokenInspector
              tokens={tokens}
              position={shownToken}
              weights={facts?.weightVersions ?? []}
              advantages={advantages}
              member={detail.member + 1}
              logprobKind={facts?.logprobKind ?? 'unknown'}
              approximate={facts?.approximate ?? false}
              trajectoryId={detail.trajectoryId}
              policyScoredBy={facts?.policyScoredBy ?? null}
              refScoredBy={facts?.refScoredBy ?? null}
            />
          ) : length > 0 ? (
            <p className="px-4 py-3 text-sm text-ink-2">{t('noToken')}</p>
          ) : null}
          {stepView ? (
            <>
              <StepScore
                step={{ ...stepView, components: stepScores(stepView, detail) }}
                weights={detail.rewardWeights}
              />
              <StepCalls step={stepView} />
            </>
          ) : null}
          <TrajectoryOutcome detail={detail} />
        </aside>
      </div>
    </div>
  );
}

function firstOfStep(tokens: WireTokens, step: number): number {
  for (let at = 0; at < tokens.stepIndex.length; at++) if (tokens.stepIndex[at] === step) return at;
  return -1;
}
