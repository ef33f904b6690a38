'use client';
import { useQuery } from '@tanstack/react-query';
import Link from 'next/link';
import { useTranslations } from 'next-intl';
import { useTRPC } from '@/components/trpc';
import { Button } from '@/components/ui/button';
import { PageHeader } from '@/components/ui/page-header';
import { QueryView } from '@/components/ui/query-view';
import { SkeletonRows } from '@/components/ui/skeleton';
import { EmptyState } from '@/components/ui/state';
import { ROW_CLASS, ROW_LINK_CLASS, Table, Td, Th } from '@/components/ui/table';
import { Time } from '@/components/ui/time';
import { useUrlState } from '@/components/ui/url-state';
import { NEW_SKILL } from './new-skill';
import { SkillEditor } from './skill-editor';

export function SkillsPage() {
  const t = useTranslations('skills');
  const trpc = useTRPC();
  const query = useQuery(trpc.skills.list.queryOptions());
  const [state, set] = useUrlState(['new']);
  const write = (
    <Button kind={state.new ? 'outline' : 'primary'} onClick={() => set('new', state.new ? '' : '1')}>
      {state.new ? t('close') : t('new')}
    </Button>
  );
  return (
    <>
      <PageHeader title={t('title')} actions={write} />
      {state.new ? <SkillEditor initial={NEW_SKILL} onClose={() => set('new', '')} /> : null}
      <QueryView query={query} failed={t('failed')} loading={<SkeletonRows label={t('loading')} />}>
        {(skills) =>
          skills.length === 0 ? (
            <EmptyState title={t('none')} action={state.new ? null : write}>
              {t('noneHint')}
            </EmptyState>
          ) : (
            <Table label={t('title')}>
              <thead>
                <tr>
                  <Th>{t('columns.name')}</Th>
                  <Th numeric>{t('columns.version')}</Th>
                  <Th className="max-sm:hidden">{t('columns.description')}</Th>
                  <Th className="max-lg:hidden">{t('columns.tools')}</Th>
                  <Th numeric>{t('columns.saved')}</Th>
                </tr>
              </thead>
              <tbody>
                {skills.map((skill) => (
                  <tr key={skill.name} className={ROW_CLASS}>
                    <Td className="max-w-64 min-w-32 max-sm:max-w-40">
                      <Link
                        href={`/skills/${encodeURIComponent(skill.name)}`}
                        title={skill.name}
                        className={`foreign-line block ${ROW_LINK_CLASS}`}
                      >
                        {skill.name}
                      </Link>
                    </Td>
                    <Td numeric>v{skill.version}</Td>
                    <Td className="w-1/2 max-w-0 max-sm:hidden">
                      <span className="foreign-line block text-ink-2" title={skill.description}>
                        {skill.description}
                      </span>
                    </Td>
                    <Td className="w-1/4 max-w-0 max-lg:hidden">
                      <span className="foreign-line block font-mono text-sm text-ink-2" title={skill.tools.join(', ')}>
                        {skill.tools.join(', ')}
                      </span>
                    </Td>
                    <Td numeric className="text-ink-2">
                      <Time atMs={skill.createdAtMs} />
                    </Td>
                  </tr>
                ))}
              </tbody>
            </Table>
          )
        }
      </QueryView>
    </>
  );
}
