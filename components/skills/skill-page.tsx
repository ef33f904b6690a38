'use client';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useTranslations } from 'next-intl';
import { useState } from 'react';
import { namesNothing, readServerProblem } from '@/components/server-errors';
import { useTRPC } from '@/components/trpc';
import { Button, ButtonLink } from '@/components/ui/button';
import { Chip } from '@/components/ui/chip';
import { CodeView } from '@/components/ui/code-view';
import { Select } from '@/components/ui/field';
import { PageHeader } from '@/components/ui/page-header';
import { QueryView } from '@/components/ui/query-view';
import { SkeletonRows } from '@/components/ui/skeleton';
import { EmptyState, Notice } from '@/components/ui/state';
import { Time } from '@/components/ui/time';
import { useUrlState } from '@/components/ui/url-state';
import type { SkillDetail } from '@/server/core/views';
import { SkillEditor } from './skill-editor';

/** One skill: its YAML as saved, in the version the address names (else the newest), and a new version from it. */
export function SkillPage({ name }: { name: string }) {
  const t = useTranslations('skill');
  const trpc = useTRPC();
  const [state, set] = useUrlState(['version']);
  const asked = Number(state.version);
  const version = Number.isInteger(asked) && asked >= 1 ? asked : undefined;
  const query = useQuery(trpc.skills.get.queryOptions({ name, version }, { placeholderData: keepPreviousData }));
  if (query.error && namesNothing(query.error))
    return (
      <EmptyState title={t('notFound')} action={<ButtonLink href="/skills">{t('toSkills')}</ButtonLink>}>
        <span className="foreign-text">{readServerProblem(query.error).message}</span>
      </EmptyState>
    );
  return (
    <QueryView
      query={query}
      failed={t('failed')}
      loading={
        <>
          <PageHeader trail={[{ label: t('skills'), href: '/skills' }]} title={name} />
          <SkeletonRows rows={10} label={t('loading')} />
        </>
      }
    >
      {(skill) => <LoadedSkill key={skill.name} skill={skill} onVersion={(value) => set('version', value)} />}
    </QueryView>
  );
}

function LoadedSkill({ skill, onVersion }: { skill: SkillDetail; onVersion: (version: string) => void }) {
  const t = useTranslations('skill');
  const [editing, setEditing] = useState(false);
  const newest = Math.max(...skill.versions.map(({ version }) => version), skill.version);
  return (
    <>
      <PageHeader
        trail={[{ label: t('skills'), href: '/skills' }]}
        title={skill.name}
        facts={
          <>
            <Select
              aria-label={t('version')}
              className="w-auto!"
              value={String(skill.version)}
              onChange={({ target }) => onVersion(Number(target.value) === newest ? '' : target.value)}
            >
              {skill.versions.map(({ version }) => (
                <option key={version} value={version}>
                  {version === newest ? t('versionNewest', { version }) : t('versionOption', { version })}
                </option>
              ))}
            </Select>
            <Chip label={t('saved')}>
              <Time atMs={skill.createdAtMs} />
            </Chip>
            {skill.tools.length > 0 ? (
              <Chip label={t('tools')} title={skill.tools.join(', ')} className="max-w-80">
                {skill.tools.join(', ')}
              </Chip>
            ) : null}
          </>
        }
        actions={
          <>
            <Button onClick={() => setEditing(!editing)}>{editing ? t('stopEditing') : t('edit')}</Button>
            <ButtonLink kind="primary" href={`/runs/new?skill=${encodeURIComponent(skill.name)}`}>
              {t('start')}
            </ButtonLink>
          </>
        }
      />
      {skill.description ? (
        <p className="foreign-text border-b border-line-soft px-4 py-2 text-ink-2">{skill.description}</p>
      ) : null}
      {skill.version === newest ? null : <Notice>{t('older', { version: skill.version, newest })}</Notice>}
      {editing ? (
        <SkillEditor initial={skill.yaml} onClose={() => setEditing(false)} onSaved={() => onVersion('')} />
      ) : (
        <CodeView text={skill.yaml} label={t('yaml')} />
      )}
    </>
  );
}
