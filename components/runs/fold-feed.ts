/** Lays a run's newest events over the last whole answer of the server, so that the page fills while the run goes. */
import type { RunDetail, RunFeedEntry, TrajectoryRow } from '@/server/core/views';
import {
  FINAL_TRAJECTORY_STATUSES,
  RUN_STATUSES,
  type RunStatus,
  type TrajectoryStatus,
} from '@/server/core/vocabulary';

/**
 * Events up to `detail.eventSeq` are already in the answer and are passed over, as is anything twice; only steps of
 * trajectories that have not ended count from any time, because an answer may lack them until the end. What an event
 * does not carry (tokens, advantages, group statistics) stays as it was until the next whole answer. `detail` is never
 * changed; rows and groups that no event touched stay the same objects.
 */
export function foldFeed(detail: RunDetail, entries: readonly RunFeedEntry[]): RunDetail {
  const worth = stillWorth(detail, entries).sort((a, b) => a.seq - b.seq);
  if (worth.length === 0) return detail;
  const rows = new Map(detail.groups.flatMap((group) => group.trajectories.map((row) => [row.trajectoryId, row])));
  const changed = new Map<string, TrajectoryRow>();
  const counts = { ...detail.counts };
  let { status, finishedAtMs, eventSeq } = detail;

  for (const entry of worth) {
    const isNew = entry.seq > eventSeq;
    if (isNew) eventSeq = entry.seq;
    if (entry.type.startsWith('run.')) {
      if (!isNew) continue;
      status = oneOfThese(RUN_STATUSES, entry.status) ?? (entry.type === 'run.started' ? 'running' : status);
      if (status !== 'queued' && status !== 'running') finishedAtMs ??= entry.atMs;
      continue;
    }
    const id = entry.trajectoryId;
    const row = id === null ? undefined : (changed.get(id) ?? rows.get(id));
    if (!row || (!isNew && entry.type !== 'step.completed')) continue;
    const next = applyToRow(row, entry);
    if (next.status !== row.status) {
      counts[row.status] -= 1;
      counts[next.status] += 1;
    }
    changed.set(row.trajectoryId, next);
  }

  const groups = detail.groups.map((group) =>
    group.trajectories.some((row) => changed.has(row.trajectoryId))
      ? { ...group, trajectories: group.trajectories.map((row) => changed.get(row.trajectoryId) ?? row) }
      : group,
  );
  return { ...detail, status, finishedAtMs, eventSeq, counts, groups };
}

/** The entries that still add something to `detail`: newer ones, and steps of trajectories that have not ended in it. */
export function stillWorth(detail: RunDetail, entries: readonly RunFeedEntry[]): RunFeedEntry[] {
  const unfinished = new Set(
    detail.groups.flatMap(({ trajectories }) =>
      trajectories.filter(({ status }) => status === 'queued' || status === 'running').map((row) => row.trajectoryId),
    ),
  );
  return entries.filter(
    ({ seq, type, trajectoryId }) =>
      seq > detail.eventSeq || (type === 'step.completed' && trajectoryId !== null && unfinished.has(trajectoryId)),
  );
}

function applyToRow(row: TrajectoryRow, entry: RunFeedEntry): TrajectoryRow {
  if (entry.type === 'task.completed') {
    const status = oneOfThese(FINAL_TRAJECTORY_STATUSES, entry.status) ?? row.status;
    return { ...row, status, reward: entry.reward, finishedAtMs: row.finishedAtMs ?? entry.atMs };
  }
  // Any event of a trajectory that was waiting means that it has begun.
  const begun =
    row.status === 'queued' ? { status: 'running' as const, startedAtMs: row.startedAtMs ?? entry.atMs } : {};
  if (entry.type !== 'step.completed' || entry.stepNumber === null || entry.reward === null)
    return { ...row, ...begun };
  // A step beyond the next one means that one was missed: the whole answer that follows brings both.
  if (entry.stepNumber > row.stepRewards.length) return { ...row, ...begun };
  const stepRewards = [...row.stepRewards];
  stepRewards[entry.stepNumber] = entry.reward;
  return { ...row, ...begun, stepRewards };
}

function oneOfThese<T extends RunStatus | TrajectoryStatus>(
  words: readonly T[],
  word: RunStatus | TrajectoryStatus | null,
): T | undefined {
  return words.find((candidate) => candidate === word);
}

/** Whether any of these means that figures the events do not carry have changed. */
export function asksForWholeAnswer(entries: readonly RunFeedEntry[]): boolean {
  return entries.some(({ type }) => type === 'task.completed' || type.startsWith('group.') || type.startsWith('run.'));
}
