'use client';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useRouter } from 'next/navigation';
import { useTranslations } from 'next-intl';
import { useState } from 'react';
import { useMay } from '@/components/people/use-may';
import { ON_ITS_OWN, useTRPC } from '@/components/trpc';
import { Button } from '@/components/ui/button';
import { Field, Select, TextInput } from '@/components/ui/field';
import { PageHeader } from '@/components/ui/page-header';
import { Panel } from '@/components/ui/panel';
import { useErrorSentence } from '@/components/ui/query-view';
import { SkeletonRows } from '@/components/ui/skeleton';
import { EmptyState, Notice } from '@/components/ui/state';
import { type BackendCheck, REMOTE_KINDS, type RemoteKind } from '@/server/core/inference';
import { type AddBackendFields, EMPTY_FIELDS, readAddBackend, suggestedName } from './add-backend-fields';
import { CheckList } from './check-list';

/** A field whose text is not shown, and not remembered by the browser. */
const SECRET = { type: 'password', autoComplete: 'new-password', maxLength: 4096 } as const;

/** An address becomes a backend: it is asked what it is, shown as a checklist, and then added. */
export function AddBackendPage() {
  const t = useTranslations('addBackend');
  const list = useTranslations('backends');
  const trpc = useTRPC();
  const router = useRouter();
  const queryClient = useQueryClient();
  const sentence = useErrorSentence();
  const mayAdd = useMay('operator');
  const [fields, setFields] = useState<AddBackendFields>(EMPTY_FIELDS);
  const [found, setFound] = useState<{ url: string; kind: RemoteKind | null } | null>(null);
  const check = useMutation(
    trpc.backends.check.mutationOptions({ ...ON_ITS_OWN, onSuccess: ({ kind }, { url }) => setFound({ url, kind }) }),
  );
  const add = useMutation(
    trpc.backends.add.mutationOptions({
      ...ON_ITS_OWN,
      onSuccess: async ({ name }) => {
        await queryClient.invalidateQueries(trpc.backends.pathFilter());
        router.push(`/backends/${encodeURIComponent(name)}`);
      },
    }),
  );
  const [suggested, setSuggested] = useState('');
  const known = useQuery(trpc.backends.list.queryOptions(undefined, ON_ITS_OWN));
  const taken = new Set(known.data?.map(({ name }) => name));
  const read = readAddBackend(fields, found);
  const set = (field: keyof AddBackendFields) => (event: { target: { value: string } }) => {
    // What was found out belongs to the address it was asked of.
    if (field !== 'name') check.reset();
    add.reset();
    setFields((before) => ({ ...before, [field]: event.target.value }));
  };
  const checked = check.data;
  const [first] = read.urls;
  const unknown = checked?.kind === null && fields.kind === 'auto';
  const replaces = taken.has(fields.name.trim());
  return (
    <>
      <PageHeader trail={[{ label: list('title'), href: '/backends' }]} title={t('title')} />
      <div className="grid grid-cols-[minmax(0,1fr)] xl:min-h-[calc(100dvh-2.75rem)] xl:grid-cols-[26rem_minmax(0,1fr)]">
        <Panel title={t('server')}>
          <form
            className="flex flex-col gap-3 p-4"
            onSubmit={(event) => {
              event.preventDefault();
              if (!first || !mayAdd) return;
              const name = suggestedName(first, taken);
              setSuggested(name);
              // What a person wrote stays; a name that was made from another address does not.
              setFields((before) => ({ ...before, name: ['', suggested].includes(before.name) ? name : before.name }));
              check.mutate(read.check(first));
            }}
          >
            <Field
              label={t('addresses')}
              hint={read.urls.length > 1 ? t('several', { count: read.urls.length }) : t('addressesHint')}
              error={read.wrongUrl ? t('wrongUrl', { url: read.wrongUrl }) : null}
            >
              {(wiring) => (
                <TextInput
                  {...wiring}
                  value={fields.urls}
                  maxLength={8192}
                  placeholder="http://gpu-1:8000"
                  inputMode="url"
                  onChange={set('urls')}
                />
              )}
            </Field>
            <div className="grid grid-cols-2 gap-3">
              <Field label={t('kind')}>
                {(wiring) => (
                  <Select {...wiring} value={fields.kind} onChange={set('kind')}>
                    <option value="auto">{t('auto')}</option>
                    {REMOTE_KINDS.map((kind) => (
                      <option key={kind} value={kind}>
                        {kind}
                      </option>
                    ))}
                  </Select>
                )}
              </Field>
              <Field label={t('model')} hint={t('modelHint')}>
                {(wiring) => <TextInput {...wiring} value={fields.model} maxLength={500} onChange={set('model')} />}
              </Field>
            </div>
            <Field label={t('key')} hint={t('keyHint')}>
              {(wiring) => <TextInput {...wiring} {...SECRET} value={fields.key} onChange={set('key')} />}
            </Field>
            {read.takesControlKey ? (
              <Field label={t('controlKey')} hint={t('controlKeyHint')}>
                {(wiring) => (
                  <TextInput {...wiring} {...SECRET} value={fields.controlKey} onChange={set('controlKey')} />
                )}
              </Field>
            ) : null}
            <details open={read.wrongNumber !== null || undefined}>
              <summary className="w-fit rounded text-sm text-ink-2 hover:text-ink max-sm:py-2">{t('more')}</summary>
              <div className="mt-2 flex flex-col gap-3">
                <Field label={t('tokenizer')} hint={t('tokenizerHint')}>
                  {(wiring) => (
                    <TextInput {...wiring} value={fields.tokenizer} maxLength={4096} onChange={set('tokenizer')} />
                  )}
                </Field>
                <div className="grid grid-cols-2 gap-3">
                  <Field
                    label={t('contextLength')}
                    hint={t('contextLengthHint')}
                    error={read.wrongNumber === 'contextLength' ? t('wrongNumber') : null}
                  >
                    {(wiring) => (
                      <TextInput
                        {...wiring}
                        inputMode="numeric"
                        value={fields.contextLength}
                        onChange={set('contextLength')}
                      />
                    )}
                  </Field>
                  <Field
                    label={t('maxInFlight')}
                    hint={t('maxInFlightHint')}
                    error={read.wrongNumber === 'maxInFlight' ? t('wrongNumber') : null}
                  >
                    {(wiring) => (
                      <TextInput
                        {...wiring}
                        inputMode="numeric"
                        value={fields.maxInFlight}
                        onChange={set('maxInFlight')}
                      />
                    )}
                  </Field>
                </div>
              </div>
            </details>
            {check.isError ? <Notice tone="bad">{sentence(check.error)}</Notice> : null}
            <div className="flex flex-wrap items-center gap-3">
              <Button
                type="submit"
                kind={checked ? 'outline' : 'primary'}
                busy={check.isPending}
                disabled={!first || !read.ok || !mayAdd}
              >
                {checked ? t('checkAgain') : t('check')}
              </Button>
              {mayAdd ? null : <p className="text-sm text-ink-3">{t('notAllowed')}</p>}
            </div>
          </form>
          {checked ? (
            <form
              className="flex flex-col gap-3 border-t border-line-soft p-4"
              onSubmit={(event) => {
                event.preventDefault();
                add.mutate(read.add(!checked.ok));
              }}
            >
              <Field label={t('name')} hint={t('nameHint')}>
                {(wiring) => <TextInput {...wiring} value={fields.name} maxLength={120} onChange={set('name')} />}
              </Field>
              {unknown ? <Notice tone="bad">{t('unknownHint')}</Notice> : null}
              {checked.ok || unknown ? null : <Notice>{t('failedHint')}</Notice>}
              {replaces ? <Notice>{t('replaces', { name: fields.name.trim() })}</Notice> : null}
              {add.isError ? <Notice tone="bad">{sentence(add.error)}</Notice> : null}
              <div>
                <Button
                  type="submit"
                  kind="primary"
                  busy={add.isPending || add.isSuccess}
                  disabled={fields.name.trim() === '' || unknown}
                >
                  {replaces ? t('replace') : checked.ok ? t('add') : t('addAnyway')}
                </Button>
              </div>
            </form>
          ) : null}
        </Panel>
        <Panel
          title={t('found')}
          className="max-xl:border-t xl:border-l"
          aside={<span role="status">{checked ? <Verdict check={checked} /> : null}</span>}
        >
          {checked ? (
            <CheckList check={checked} />
          ) : check.isPending ? (
            <SkeletonRows rows={13} label={t('asking')} />
          ) : (
            <EmptyState title={t('notAsked')}>{t('notAskedHint')}</EmptyState>
          )}
        </Panel>
      </div>
    </>
  );
}

/** What was found, in one line; read out when it comes. */
function Verdict({ check }: { check: BackendCheck }) {
  const t = useTranslations('addBackend');
  const failed = check.items.filter(({ status }) => status === 'fail').length;
  const found = [check.kind, check.serverVersion].filter((part) => part !== null).join(' ');
  return (
    <>
      {found ? <span className="foreign-text">{found} · </span> : null}
      <span className={failed > 0 ? 'text-bad' : 'text-ok'}>{t('verdict', { failed })}</span>
    </>
  );
}
