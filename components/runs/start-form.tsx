'use client';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useRouter, useSearchParams } from 'next/navigation';
import { useTranslations } from 'next-intl';
import { useState } from 'react';
import { useMay } from '@/components/people/use-may';
import { readServerProblem } from '@/components/server-errors';
import { ON_ITS_OWN, useTRPC } from '@/components/trpc';
import { Button, ButtonLink } from '@/components/ui/button';
import { Field, Select, TextInput } from '@/components/ui/field';
import { count } from '@/components/ui/numbers';
import { QueryView, useErrorSentence } from '@/components/ui/query-view';
import { Skeleton } from '@/components/ui/skeleton';
import { EmptyState, Notice } from '@/components/ui/state';
import { useErrorWhile } from '@/components/ui/use-error-while';
import type { BackendSummary, DatasetSummary, SkillSummary } from '@/server/core/views';
import { type NumberField, readStartRun, type StartRunFields, USUAL_GROUP_SIZE, USUAL_TASKS } from './start-run-fields';
import { UnusableBackend } from './unusable-backend';

/** A model's name of more characters may not fit beside its backend's. */
const LONG_MODEL = 24;

const ASK_AGAIN_MS = 5_000;

/** The start panel: waits for what can be chosen, says what is missing, and then shows the form. */
export function StartForm() {
  const t = useTranslations('start');
  const trpc = useTRPC();
  const skills = useQuery(trpc.skills.list.queryOptions());
  const datasets = useQuery(trpc.datasets.list.queryOptions());
  const backends = useQuery(
    trpc.backends.list.queryOptions(undefined, {
      ...ON_ITS_OWN,
      // One that has not answered yet is asked again, so that what is said of it is what holds.
      refetchInterval: ({ state }) => (state.data?.some(({ health }) => !health.ok) ? ASK_AGAIN_MS : false),
    }),
  );
  const loading = <FormSkeleton label={t('loading')} />;
  return (
    <QueryView query={skills} failed={t('skillsFailed')} loading={loading}>
      {(skillList) => (
        <QueryView query={datasets} failed={t('datasetsFailed')} loading={loading}>
          {(datasetList) => {
            if (skillList.length === 0)
              return (
                <EmptyState
                  title={t('noSkills')}
                  action={<ButtonLink href="/skills?new=1">{t('writeSkill')}</ButtonLink>}
                >
                  {t('noSkillsHint')}
                </EmptyState>
              );
            if (datasetList.length === 0)
              return (
                <EmptyState
                  title={t('noDatasets')}
                  action={<ButtonLink href="/datasets">{t('importDataset')}</ButtonLink>}
                >
                  {t('noDatasetsHint')}
                </EmptyState>
              );
            // A backend list that fails or is slow does not hold up the form: the default backend needs no choice.
            return <FilledForm skills={skillList} datasets={datasetList} backends={backends.data} />;
          }}
        </QueryView>
      )}
    </QueryView>
  );
}

function FilledForm({
  skills,
  datasets,
  backends,
}: {
  skills: SkillSummary[];
  datasets: DatasetSummary[];
  backends: BackendSummary[] | undefined;
}) {
  const t = useTranslations('start');
  const trpc = useTRPC();
  const router = useRouter();
  const queryClient = useQueryClient();
  const sentence = useErrorSentence();
  const mayStart = useMay('operator');
  const asked = useSearchParams();
  const [fields, setFields] = useState<StartRunFields>(() => initialFields(skills, datasets, asked));
  const start = useMutation(
    trpc.runs.start.mutationOptions({
      // What the server found out about the backend is said below.
      onError: () => queryClient.invalidateQueries(trpc.backends.list.pathFilter()),
      onSuccess: ({ runId }) => {
        void queryClient.invalidateQueries(trpc.runs.list.pathFilter());
        router.push(`/runs/${runId}`);
      },
    }),
  );
  const known = backends ?? [];
  const read = readStartRun(fields);
  const dataset = datasets.find(({ name }) => name === fields.dataset);
  const backend = known.find(({ name, isDefault }) => (fields.backend === '' ? isDefault : name === fields.backend));
  const judge = known.find(({ name }) => name === fields.judge);
  const unusable = [backend, judge].find((one) => one && !one.health.ok && !one.health.held);
  const failed = useErrorWhile(JSON.stringify([fields, unusable?.name]), start.error);
  // Said once: why it cannot be used is why the run was refused.
  const refused = Boolean(unusable && failed && readServerProblem(failed).code === 'SERVICE_UNAVAILABLE');
  const taskCount = Math.min(read.input?.tasks ?? dataset?.taskCount ?? 0, dataset?.taskCount ?? 0);
  const set = (field: keyof StartRunFields) => (event: { target: { value: string } }) =>
    setFields((before) => ({ ...before, [field]: event.target.value }));
  const bounds = (field: NumberField) => {
    const wrong = read.wrong?.[field];
    return wrong ? t('between', { min: count(wrong.min), max: count(wrong.max) }) : null;
  };
  return (
    <form
      className="flex flex-col gap-3 p-4"
      onSubmit={(event) => {
        event.preventDefault();
        if (read.input && mayStart) start.mutate(read.input);
      }}
    >
      <div className="grid grid-cols-2 gap-3">
        <Field label={t('skill')} className="max-sm:col-span-2">
          {(wiring) => (
            <Select {...wiring} value={fields.skill} onChange={set('skill')}>
              {skills.map(({ name, version }) => (
                <option key={name} value={name}>
                  {name} v{version}
                </option>
              ))}
            </Select>
          )}
        </Field>
        <Field label={t('dataset')} className="max-sm:col-span-2">
          {(wiring) => (
            <Select {...wiring} value={fields.dataset} onChange={set('dataset')}>
              {datasets.map(({ name, taskCount: tasks }) => (
                <option key={name} value={name}>
                  {t('datasetOption', { name, tasks })}
                </option>
              ))}
            </Select>
          )}
        </Field>
        <Field label={t('backend')} className="col-span-2">
          {(wiring) => (
            <Select {...wiring} value={fields.backend} onChange={set('backend')}>
              <option value="">
                {known.length === 0
                  ? t('defaultBackend')
                  : t('defaultBackendNamed', { name: known.find((b) => b.isDefault)?.name ?? '–' })}
              </option>
              {known
                .filter(({ isDefault }) => !isDefault)
                .map(({ name, modelName }) => (
                  <option key={name} value={name}>
                    {modelName ? `${name} · ${shortModel(modelName)}` : name}
                  </option>
                ))}
            </Select>
          )}
        </Field>
        <Field label={t('groupSize')} hint={t('groupSizeHint')} error={bounds('groupSize')}>
          {(wiring) => (
            <TextInput {...wiring} inputMode="numeric" value={fields.groupSize} onChange={set('groupSize')} />
          )}
        </Field>
        <Field label={t('tasks')} hint={t('tasksHint', { tasks: dataset?.taskCount ?? 0 })} error={bounds('tasks')}>
          {(wiring) => (
            <TextInput
              {...wiring}
              inputMode="numeric"
              placeholder={t('allTasks')}
              value={fields.tasks}
              onChange={set('tasks')}
            />
          )}
        </Field>
      </div>
      <details
        className="group"
        open={Boolean(read.wrong?.seed || read.wrong?.temperature || read.wrong?.maxStaleness) || undefined}
      >
        <summary className="w-fit rounded text-sm text-ink-2 hover:text-ink max-sm:py-2">{t('more')}</summary>
        <div className="mt-2 grid grid-cols-2 gap-3">
          <Field label={t('seed')} hint={t('seedHint')} error={bounds('seed')}>
            {(wiring) => (
              <TextInput
                {...wiring}
                inputMode="numeric"
                placeholder={t('random')}
                value={fields.seed}
                onChange={set('seed')}
              />
            )}
          </Field>
          <Field label={t('temperature')} hint={t('temperatureHint')} error={bounds('temperature')}>
            {(wiring) => (
              <TextInput
                {...wiring}
                inputMode="decimal"
                placeholder={t('fromSkill')}
                value={fields.temperature}
                onChange={set('temperature')}
              />
            )}
          </Field>
          <Field label={t('judge')} hint={t('judgeHint')}>
            {(wiring) => (
              <Select {...wiring} value={fields.judge} onChange={set('judge')}>
                <option value="">{t('noJudge')}</option>
                {known.map(({ name }) => (
                  <option key={name} value={name}>
                    {name}
                  </option>
                ))}
              </Select>
            )}
          </Field>
          <Field label={t('noSignal')} hint={t('noSignalHint')}>
            {(wiring) => (
              <Select {...wiring} value={fields.noSignal} onChange={set('noSignal')}>
                <option value="keep">{t('keepNoSignal')}</option>
                <option value="drop">{t('dropNoSignal')}</option>
              </Select>
            )}
          </Field>
          <Field label={t('maxStaleness')} hint={t('maxStalenessHint')} error={bounds('maxStaleness')}>
            {(wiring) => (
              <TextInput
                {...wiring}
                inputMode="numeric"
                placeholder={t('noLimit')}
                value={fields.maxStaleness}
                onChange={set('maxStaleness')}
              />
            )}
          </Field>
          <Field label={t('stale')} hint={t('staleHint')}>
            {(wiring) => (
              <Select
                {...wiring}
                value={fields.stale}
                disabled={fields.maxStaleness.trim() === ''}
                onChange={set('stale')}
              >
                <option value="redo">{t('redoStale')}</option>
                <option value="drop">{t('dropStale')}</option>
              </Select>
            )}
          </Field>
          <Field label={t('name')} className="col-span-2">
            {(wiring) => (
              <TextInput
                {...wiring}
                maxLength={120}
                placeholder={t('namePlaceholder')}
                value={fields.name}
                onChange={set('name')}
              />
            )}
          </Field>
        </div>
      </details>
      {backends?.length === 0 ? <Notice>{t('noBackend')}</Notice> : null}
      {backend?.health.held ? (
        <Notice>{t('backendHeld', { name: backend.name, why: backend.health.message })}</Notice>
      ) : null}
      {unusable ? <UnusableBackend backend={unusable} refused={refused} /> : null}
      {failed && !refused ? <Notice tone="bad">{sentence(failed)}</Notice> : null}
      <div className="flex flex-wrap items-center gap-3">
        <Button
          type="submit"
          kind="primary"
          busy={start.isPending || start.isSuccess}
          disabled={!read.input || !mayStart}
        >
          {t('start')}
        </Button>
        <p className="text-sm text-ink-3">
          {!mayStart
            ? t('notAllowed')
            : read.input
              ? t('summary', { tasks: taskCount, trajectories: count(taskCount * read.input.groupSize) })
              : null}
        </p>
      </div>
    </form>
  );
}

/** Of a path its end: an option is cut where its line ends. */
const shortModel = (model: string): string => {
  const end = model.slice(model.lastIndexOf('/'));
  return model.length > LONG_MODEL && end.length < model.length ? `…${end}` : model;
};

/** What the address asks for, else the tutorial's pair, else a dataset called like its skill. */
function initialFields(skills: SkillSummary[], datasets: DatasetSummary[], asked: URLSearchParams): StartRunFields {
  const find = <T extends { name: string }>(list: T[], ...names: (string | null | undefined)[]) =>
    names.map((name) => list.find((item) => item.name === name)).find(Boolean) ?? list[0];
  const skill = find(skills, asked.get('skill'), asked.get('dataset'), 'tutorial')?.name ?? '';
  const dataset = find(datasets, asked.get('dataset'), skill);
  return {
    skill,
    dataset: dataset?.name ?? '',
    backend: '',
    groupSize: String(USUAL_GROUP_SIZE),
    tasks: String(Math.min(USUAL_TASKS, dataset?.taskCount ?? USUAL_TASKS)),
    seed: '',
    temperature: '',
    name: '',
    judge: '',
    noSignal: 'keep',
    maxStaleness: '',
    stale: 'redo',
  };
}

function FormSkeleton({ label }: { label: string }) {
  return (
    <div role="status" aria-label={label} className="grid grid-cols-2 gap-3 p-4">
      {/* As tall as the form, so that nothing below it moves when it comes. */}
      {(['half', 'half', 'whole', 'hinted', 'hinted'] as const).map((field, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the fields have no identity and never move
        <div key={index} className={field === 'hinted' ? '' : field === 'whole' ? 'col-span-2' : 'max-sm:col-span-2'}>
          <Skeleton className="mt-1 mb-2 h-3 w-16" />
          <Skeleton className="h-7 w-full max-sm:h-9" />
          {field === 'hinted' ? <Skeleton className="mt-2 h-3 w-24" /> : null}
        </div>
      ))}
      <Skeleton className="col-span-2 my-px h-3 w-36" />
      <Skeleton className="h-7 w-24 max-sm:h-9" />
    </div>
  );
}
