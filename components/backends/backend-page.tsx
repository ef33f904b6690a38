'use client';
import { keepPreviousData, useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import Link from 'next/link';
import { useTranslations } from 'next-intl';
import { useState } from 'react';
import { useMay } from '@/components/people/use-may';
import { namesNothing } from '@/components/server-errors';
import { ON_ITS_OWN, useTRPC } from '@/components/trpc';
import { Button, ButtonLink } from '@/components/ui/button';
import { Chip } from '@/components/ui/chip';
import { ABSENT, count } from '@/components/ui/numbers';
import { PageHeader } from '@/components/ui/page-header';
import { Panel } from '@/components/ui/panel';
import { QueryView, useErrorSentence } from '@/components/ui/query-view';
import { SkeletonRows } from '@/components/ui/skeleton';
import { EmptyState, Notice } from '@/components/ui/state';
import { Time } from '@/components/ui/time';
import { useUrlState } from '@/components/ui/url-state';
import { useErrorWhile } from '@/components/ui/use-error-while';
import type { BackendDetail } from '@/server/core/views';
import { CheckList } from './check-list';
import { FigureCharts } from './figure-charts';
import { RemoveBackend } from './remove-backend';
import { ReplicaTable } from './replica-table';
import { areMany } from './server-stroke';
import { UpdateWeights } from './update-weights';
import { WeightUpdates } from './weight-updates';

/** How often the live figures are asked for while the page is open. */
const EVERY_MS = 3_000;

/** One backend: its servers live, charts over time, its weights, and what it can do. */
export function BackendPage({ name }: { name: string }) {
  const t = useTranslations('backend');
  const list = useTranslations('backends');
  const trpc = useTRPC();
  const query = useQuery(trpc.backends.get.queryOptions({ name }, { ...ON_ITS_OWN, refetchInterval: EVERY_MS }));
  if (query.error && namesNothing(query.error))
    return (
      <EmptyState title={t('notFound')} action={<ButtonLink href="/backends">{t('toBackends')}</ButtonLink>}>
        {t('notFoundHint')}
      </EmptyState>
    );
  return (
    <QueryView
      query={query}
      failed={t('failed', { name })}
      loading={
        <>
          <PageHeader trail={[{ label: list('title'), href: '/backends' }]} title={name} />
          <SkeletonRows rows={6} label={t('loading')} />
        </>
      }
    >
      {(backend) => <Backend backend={backend} />}
    </QueryView>
  );
}

function Backend({ backend }: { backend: BackendDetail }) {
  const t = useTranslations('backend');
  const trpc = useTRPC();
  const { name, replicas, trouble, keyProblem, health } = backend;
  const remote = replicas.length > 0;
  const [{ server }, setFilter] = useUrlState(['server']);
  const history = useQuery(
    trpc.backends.history.queryOptions(
      { name },
      { ...ON_ITS_OWN, refetchInterval: EVERY_MS, enabled: remote, placeholderData: keepPreviousData },
    ),
  );
  return (
    <>
      <BackendHeader backend={backend} />
      {trouble ? <Notice>{trouble}</Notice> : null}
      {keyProblem ? <Notice tone="bad">{keyProblem}</Notice> : null}
      {!trouble && !health.ok ? <Notice tone="bad">{health.message}</Notice> : null}
      {remote ? (
        <>
          <Panel title={t('replicas.title')}>
            <ReplicaTable
              replicas={replicas}
              chosenUrl={server || null}
              onChoose={(url) => setFilter('server', url ?? '')}
            />
          </Panel>
          <Panel
            title={t('charts.titleAll')}
            aside={t(areMany(replicas.length) ? 'charts.windowOfMany' : 'charts.window')}
          >
            <QueryView
              query={history}
              failed={t('charts.failed')}
              loading={<SkeletonRows rows={6} label={t('charts.loading')} />}
            >
              {(points) => <FigureCharts history={points} urls={backend.urls} chosenUrl={server || null} />}
            </QueryView>
          </Panel>
        </>
      ) : null}
      <div className="grid grid-cols-[minmax(0,1fr)] xl:grid-cols-[minmax(0,1fr)_26rem]">
        <Panel title={t('weights.title')} className={remote ? 'border-t' : undefined}>
          <WeightUpdates name={name} newest={backend.weightUpdates} />
        </Panel>
        <Panel
          title={t('can.title')}
          className={remote ? 'border-t xl:border-l' : 'max-xl:border-t xl:border-l'}
          aside={remote ? <CheckAgain name={name} state={stateOf(backend)} /> : undefined}
        >
          <Capabilities backend={backend} />
          {remote ? <HowToChange name={name} /> : null}
        </Panel>
      </div>
      {backend.checks.map((check) => (
        <Panel
          key={check.url}
          className="border-t"
          title={
            <span className="foreign-line block" title={check.url}>
              {t('check.titleShort')} <span className="font-mono font-normal">{check.url}</span>
            </span>
          }
          aside={<Time atMs={check.checkedAtMs} />}
        >
          <CheckList check={check} />
        </Panel>
      ))}
    </>
  );
}

/** What a button that failed spoke of: when this changes, its sentence may not hold any more. */
function stateOf({ paused, trouble, health, weightVersion }: BackendDetail): string {
  return JSON.stringify([paused, trouble === null, health.ok, health.held === true, weightVersion]);
}

function BackendHeader({ backend }: { backend: BackendDetail }) {
  const t = useTranslations('backend');
  const list = useTranslations('backends');
  const trpc = useTRPC();
  const queryClient = useQueryClient();
  const sentence = useErrorSentence();
  const mayOperate = useMay('operator');
  const [updating, setUpdating] = useState(false);
  const { name, capabilities, paused, health } = backend;
  const refresh = () => queryClient.invalidateQueries(trpc.backends.get.queryFilter({ name }));
  const pause = useMutation(trpc.backends.pause.mutationOptions({ onSettled: refresh }));
  const resume = useMutation(trpc.backends.resume.mutationOptions({ onSettled: refresh }));
  const sources = capabilities?.weightSources ?? [];
  // Also one of them that somebody else paused, or an update left so, is resumed here.
  const hasServers = backend.kind !== 'embedded';
  const state = stateOf(backend);
  const pauseFailed = useErrorWhile(state, pause.error);
  const resumeFailed = useErrorWhile(state, resume.error);
  const failed = pauseFailed ?? resumeFailed;
  return (
    <>
      <PageHeader
        trail={[{ label: list('title'), href: '/backends' }]}
        title={name}
        facts={
          <>
            <Chip label={t('kind')}>{backend.kind}</Chip>
            <Chip tone={paused || health.held ? 'warn' : health.ok ? 'ok' : 'bad'} title={health.message}>
              {paused ? t('paused') : list(health.ok ? 'answers' : health.held ? 'held' : 'silent')}
            </Chip>
            {backend.modelName ? (
              <Chip label={t('model')} title={backend.modelName} keepEnd className="max-w-full lg:max-w-112">
                {backend.modelName}
              </Chip>
            ) : null}
            {backend.weightVersion ? (
              <Chip label={t('weightVersion')} title={backend.weightVersion} keepEnd className="max-w-full lg:max-w-80">
                {backend.weightVersion}
              </Chip>
            ) : null}
            {backend.isDefault ? <Chip label={list('default')} /> : null}
          </>
        }
        actions={
          mayOperate ? (
            <>
              <RemoveBackend name={name} state={state} />
              {hasServers && !paused && backend.trouble !== null ? (
                <Button busy={resume.isPending} onClick={() => resume.mutate({ name })}>
                  {t('resume')}
                </Button>
              ) : null}
              {/* One button for both, so that whoever pressed it by keyboard keeps the focus. */}
              {hasServers ? (
                <Button
                  busy={paused ? resume.isPending : pause.isPending}
                  onClick={() => (paused ? resume : pause).mutate({ name })}
                  title={paused ? undefined : t('pauseTitle')}
                >
                  {t(paused ? 'resume' : 'pause')}
                </Button>
              ) : null}
              {sources.length > 0 ? (
                <Button kind="primary" onClick={() => setUpdating(true)}>
                  {t('weights.update')}
                </Button>
              ) : null}
            </>
          ) : undefined
        }
      />
      {failed ? <Notice tone="bad">{sentence(failed)}</Notice> : null}
      <UpdateWeights name={name} state={state} sources={sources} open={updating} onClose={() => setUpdating(false)} />
    </>
  );
}

/** Asks the servers again what they can do; what they answer replaces the list below. */
function CheckAgain({ name, state }: { name: string; state: string }) {
  const t = useTranslations('backend');
  const trpc = useTRPC();
  const queryClient = useQueryClient();
  const sentence = useErrorSentence();
  const mayOperate = useMay('operator');
  const check = useMutation(
    trpc.backends.recheck.mutationOptions({
      ...ON_ITS_OWN,
      onSettled: () => queryClient.invalidateQueries(trpc.backends.get.queryFilter({ name })),
    }),
  );
  const failed = useErrorWhile(state, check.error);
  if (!mayOperate) return null;
  return (
    <span className="flex flex-wrap items-center gap-2">
      {failed ? <span className="foreign-text text-bad">{sentence(failed)}</span> : null}
      <Button kind="quiet" className="-my-1 -mr-2.5" busy={check.isPending} onClick={() => check.mutate({ name })}>
        {t('checkAgain')}
      </Button>
    </span>
  );
}

/** Settings are not changed one by one: what is added under the same name takes its place. */
function HowToChange({ name }: { name: string }) {
  const t = useTranslations('backend');
  if (!useMay('operator')) return null;
  return (
    <p className="foreign-text px-4 pb-3 text-sm text-ink-2">
      {t.rich('howToChange', {
        name,
        link: (text) => (
          <Link href="/backends/new" className="underline decoration-line underline-offset-3 hover:decoration-ink">
            {text}
          </Link>
        ),
      })}
    </p>
  );
}

function Capabilities({ backend }: { backend: BackendDetail }) {
  const t = useTranslations('backend.can');
  const { capabilities, hasKey, hasControlKey } = backend;
  if (!capabilities) return <p className="px-4 py-4 text-ink-2">{t('unknown')}</p>;
  const ownKeys = backend.replicas.filter(({ hasOwnKey }) => hasOwnKey).length;
  const keys = [...(hasKey ? [t('keySet')] : []), ...(ownKeys > 0 ? [t('ownKeys', { count: ownKeys })] : [])];
  const yes = (value: boolean) => (value ? t('yes') : t('no'));
  const facts: [name: string, value: string][] = [
    [t('tokenIds'), capabilities.tokenIds ? t('exact') : t('approximate')],
    [t('logprobs'), t(`logprobKind.${capabilities.logprobs}`)],
    [t('scoring'), yes(capabilities.canScore)],
    [t('entropy'), yes(capabilities.entropy)],
    [t('constraints'), capabilities.constraints.join(', ') || t('no')],
    [t('weightSources'), capabilities.weightSources.map((source) => t(`source.${source}`)).join(', ') || t('no')],
    [t('seeded'), yes(capabilities.seeded)],
    [t('embeddings'), yes(capabilities.embeddings)],
    [t('contextLength'), t('tokens', { tokens: count(capabilities.contextLength) })],
    [t('maxInFlight'), count(capabilities.maxInFlight)],
    ...(backend.replicas.length > 0 ? ([[t('key'), keys.join('; ') || ABSENT]] as [string, string][]) : []),
    ...(backend.kind === 'tensorrt-llm'
      ? ([[t('controlKey'), hasControlKey ? t('keySet') : ABSENT]] as [string, string][])
      : []),
  ];
  return (
    <dl className="grid grid-cols-[minmax(8rem,auto)_1fr] gap-x-3 gap-y-1 px-4 py-2.5">
      {facts.map(([fact, value]) => (
        <div key={fact} className="contents">
          <dt className="text-ink-3">{fact}</dt>
          <dd className="foreign-text">{value}</dd>
        </div>
      ))}
    </dl>
  );
}
