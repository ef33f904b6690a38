/** Figures of a run that the page counts itself from what the server sent. */
import type { GroupRow, RunSummary, TrajectoryRow } from '@/server/core/views';
import { COUNTED_STATUSES, FINAL_TRAJECTORY_STATUSES, type TrajectoryStatus } from '@/server/core/vocabulary';

export function finishedCount(counts: RunSummary['counts']): number {
  return FINAL_TRAJECTORY_STATUSES.reduce((sum, status) => sum + (counts[status] ?? 0), 0);
}

export function totalCount(counts: RunSummary['counts']): number {
  return finishedCount(counts) + (counts.queued ?? 0) + (counts.running ?? 0);
}

/** Failed and timed out; a cancelled trajectory did not fail. */
export function failureCount(counts: RunSummary['counts']): number {
  return (counts.failed ?? 0) + (counts.timed_out ?? 0);
}

export const isLive = (run: Pick<RunSummary, 'status'>): boolean => run.status === 'queued' || run.status === 'running';

/**
 * Mean of the rewards of counted trajectories and its standard error, s / √n with s² over n − 1. The error is null
 * below two rewards, both are null without any. Failed, cancelled and timed-out trajectories are left out.
 */
export function rewardFigures(groups: readonly GroupRow[]): {
  mean: number | null;
  standardError: number | null;
  counted: number;
} {
  const rewards: number[] = [];
  for (const group of groups)
    for (const { status, reward } of group.trajectories)
      if (reward !== null && COUNTED_STATUSES.includes(status)) rewards.push(reward);
  const counted = rewards.length;
  if (counted === 0) return { mean: null, standardError: null, counted };
  const mean = rewards.reduce((sum, reward) => sum + reward, 0) / counted;
  if (counted === 1) return { mean, standardError: null, counted };
  const squares = rewards.reduce((sum, reward) => sum + (reward - mean) ** 2, 0);
  return { mean, standardError: Math.sqrt(squares / (counted - 1) / counted), counted };
}

/** A trajectory with the group it belongs to: one row of the run's table. */
export interface TableRow extends TrajectoryRow {
  taskId: string;
  groupPosition: number;
  meanAdvantage: number | null;
  durationMs: number | null;
}

export function tableRows(groups: readonly GroupRow[]): TableRow[] {
  return groups.flatMap((group) =>
    group.trajectories.map((trajectory) => ({
      ...trajectory,
      taskId: group.taskId,
      groupPosition: group.position,
      meanAdvantage: mean(trajectory.advantages),
      durationMs:
        trajectory.startedAtMs === null || trajectory.finishedAtMs === null
          ? null
          : trajectory.finishedAtMs - trajectory.startedAtMs,
    })),
  );
}

function mean(values: readonly number[] | null): number | null {
  return values === null || values.length === 0 ? null : values.reduce((sum, value) => sum + value, 0) / values.length;
}

export const SORT_KEYS = ['task', 'status', 'reward', 'advantage', 'steps', 'generated', 'duration'] as const;
export type SortKey = (typeof SORT_KEYS)[number];

/** What each column is sorted by; null (not known yet) always comes last. */
const VALUES: Record<SortKey, (row: TableRow) => number | string | null> = {
  task: (row) => row.groupPosition,
  status: (row) => row.status,
  reward: (row) => row.reward,
  advantage: (row) => row.meanAdvantage,
  steps: (row) => row.stepRewards.length,
  generated: (row) => row.generatedTokens,
  duration: (row) => row.durationMs,
};

/** Rows that fit the filters, in order; equals stay in the order of groups and members. */
export function selectRows(
  rows: readonly TableRow[],
  {
    find,
    status,
    sort,
    descending,
  }: { find: string; status: TrajectoryStatus | undefined; sort: SortKey; descending: boolean },
): TableRow[] {
  const wanted = find.trim().toLowerCase();
  const value = VALUES[sort];
  return rows
    .filter((row) => (status === undefined || row.status === status) && (wanted === '' || mentions(row, wanted)))
    .sort((a, b) => {
      const [left, right] = [value(a), value(b)];
      if (left === null || right === null) return Number(left === null) - Number(right === null);
      if (left === right) return a.groupPosition - b.groupPosition || a.member - b.member;
      return (left < right ? -1 : 1) * (descending ? -1 : 1);
    });
}

function mentions(row: TableRow, wanted: string): boolean {
  return [row.taskId, row.trajectoryId, row.endReason, row.errorMessage, ...Object.keys(row.toolFailures)].some(
    (text) => text?.toLowerCase().includes(wanted),
  );
}
