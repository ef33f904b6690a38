'use client';
import { useQuery } from '@tanstack/react-query';
import Link from 'next/link';
import { useTranslations } from 'next-intl';
import { useTRPC } from '@/components/trpc';
import { FoldedText } from '@/components/ui/folded-text';
import { count } from '@/components/ui/numbers';
import { Panel } from '@/components/ui/panel';
import { QueryView } from '@/components/ui/query-view';
import { SkeletonRows } from '@/components/ui/skeleton';
import { ROW_LINK_CLASS } from '@/components/ui/table';
import type { RunDetail } from '@/server/core/views';
import { useReasonWords } from './use-reason-words';

/** What went wrong, in words, how often, with one trajectory each to open. */
export function RunFailures({ run }: { run: RunDetail }) {
  const t = useTranslations('run');
  const words = useReasonWords();
  const trpc = useTRPC();
  const query = useQuery(trpc.runs.failures.queryOptions({ runId: run.runId }));
  const where = new Map(
    run.groups.flatMap(({ taskId, trajectories }) =>
      trajectories.map(({ trajectoryId, member }) => [trajectoryId, { task: taskId, member: member + 1 }]),
    ),
  );
  return (
    <Panel title={t('failures')} className="border-t">
      <QueryView query={query} failed={t('failuresFailed')} loading={<SkeletonRows rows={3} label={t('loading')} />}>
        {(failures) =>
          failures.length === 0 ? (
            <p className="px-4 py-3 text-ink-3">{t('noFailures')}</p>
          ) : (
            <ul>
              {failures.map(({ kind, count: times, exampleTrajectoryId }) => {
                const example = where.get(exampleTrajectoryId);
                return (
                  <li
                    key={kind}
                    className="grid grid-cols-[minmax(0,1fr)_auto_minmax(0,auto)] items-baseline gap-3 border-b border-line-soft px-4 py-1.5 last:border-b-0"
                  >
                    <div className="text-bad">
                      <FoldedText text={words(kind)} />
                    </div>
                    <span className="font-semibold">{count(times)}</span>
                    <Link
                      href={`/runs/${run.runId}/trajectories/${exampleTrajectoryId}`}
                      className={`foreign-line foreign-end max-w-36 text-sm ${ROW_LINK_CLASS}`}
                      title={example?.task}
                    >
                      <bdi>{example ? t('example', example) : t('exampleUnknown')}</bdi>
                    </Link>
                  </li>
                );
              })}
            </ul>
          )
        }
      </QueryView>
    </Panel>
  );
}
