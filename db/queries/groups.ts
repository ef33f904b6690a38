/** The end of groups and of runs: each happens exactly once, whoever comes last. */
import { and, asc, eq, inArray, isNull, sql } from 'drizzle-orm';
import type { RunStatus, TrajectoryStatus } from '../../server/core/vocabulary';
import { FINAL_TRAJECTORY_STATUSES } from '../../server/core/vocabulary';
import type { Queryable, Tx } from '../connection';
import { groups, runs, trajectories } from '../schema';
import { storableText } from './stored-text';

export interface GroupMember {
  trajectoryId: string;
  member: number;
  status: TrajectoryStatus;
  reward: number | null;
  stepRewards: number[];
  stateKeys: string[];
  humanEdited: boolean;
}

export interface EndedGroup {
  groupId: string;
  runId: string;
  position: number;
  taskId: string;
  /** In member order. */
  members: GroupMember[];
}

/**
 * The members of a group whose last member has ended and that is not completed yet; else null. The group's row is locked
 * first, so of members that end at the same moment the last to commit sees all of them. Call it after finishTrajectory
 * in the same transaction, compute the statistics, then completeGroup.
 */
export async function takeEndedGroup(tx: Tx, groupId: string): Promise<EndedGroup | null> {
  const [group] = await tx
    .select({ groupId: groups.id, runId: groups.runId, position: groups.position, taskId: groups.taskId })
    .from(groups)
    .where(and(eq(groups.id, groupId), isNull(groups.completedAtMs)))
    .for('update');
  if (!group) return null;
  const rows = await tx
    .select({
      trajectoryId: trajectories.id,
      member: trajectories.member,
      status: trajectories.status,
      reward: trajectories.reward,
      stepRewards: trajectories.stepRewards,
      stateKeys: trajectories.stateKeys,
      humanEdited: trajectories.humanEdited,
    })
    .from(trajectories)
    .where(eq(trajectories.groupId, groupId))
    .orderBy(asc(trajectories.member));
  const final: readonly TrajectoryStatus[] = FINAL_TRAJECTORY_STATUSES;
  if (rows.some((row) => !final.includes(row.status))) return null;
  const members = rows.map((row) => ({ ...row, stepRewards: row.stepRewards ?? [], stateKeys: row.stateKeys ?? [] }));
  return { ...group, members };
}

export interface CompleteGroupInput {
  groupId: string;
  nowMs: number;
  meanReward: number | null;
  stdReward: number | null;
  /** Members that count in the statistics. */
  countedMembers: number;
  /** Null where no member counts. */
  hasSignal: boolean | null;
  /** By step, of every counted member; the others stay without. */
  advantages: { trajectoryId: string; advantages: number[] }[];
}

/** Compare and set: false when the group was completed before, and then nothing was changed. */
export async function completeGroup(tx: Tx, input: CompleteGroupInput): Promise<boolean> {
  const { meanReward, stdReward, countedMembers, hasSignal } = input;
  const changed = await tx
    .update(groups)
    .set({ completedAtMs: input.nowMs, meanReward, stdReward, countedMembers, hasSignal })
    .where(and(eq(groups.id, input.groupId), isNull(groups.completedAtMs)))
    .returning({ id: groups.id });
  if (changed.length === 0) return false;
  if (input.advantages.length > 0)
    await tx.execute(sql`
      update trajectories t set advantages = a.advantages
      from json_to_recordset(${JSON.stringify(input.advantages)}::json) as a("trajectoryId" text, advantages json)
      where t.id = a."trajectoryId" and t.group_id = ${input.groupId}`);
  return true;
}

/** Groups of a run that could be completed now: after a cancel, or after a crash between two transactions. */
export async function endedGroupIds(q: Queryable, runId: string): Promise<string[]> {
  const rows = await q.execute<{ id: string }>(sql`
    select g.id from groups g where g.run_id = ${runId} and g.completed_at_ms is null
      and not exists (select 1 from trajectories t where t.group_id = g.id and t.status in ('queued', 'running'))
    order by g.position`);
  return [...rows].map((row) => row.id);
}

/** Runs in progress, for looking after them at start-up. */
export async function unfinishedRunIds(q: Queryable): Promise<string[]> {
  const rows = await q
    .select({ id: runs.id })
    .from(runs)
    .where(inArray(runs.status, ['queued', 'running']))
    .orderBy(asc(runs.createdAtMs));
  return rows.map((row) => row.id);
}

/** Ends a run whose groups are all completed. Compare and set: true for exactly one caller. */
export async function completeRunIfEnded(
  tx: Tx,
  input: { runId: string; nowMs: number; error?: string | null },
): Promise<{ completed: boolean; status: RunStatus | null }> {
  const [run] = await tx
    .select({ status: runs.status, finishedAtMs: runs.finishedAtMs })
    .from(runs)
    .where(eq(runs.id, input.runId))
    .for('no key update');
  if (!run || run.finishedAtMs !== null) return { completed: false, status: run?.status ?? null };
  const [open] = await tx
    .select({ id: groups.id })
    .from(groups)
    .where(and(eq(groups.runId, input.runId), isNull(groups.completedAtMs)))
    .limit(1);
  if (open) return { completed: false, status: run.status };
  const status = run.status === 'cancelled' ? 'cancelled' : input.error ? 'failed' : 'completed';
  await tx
    .update(runs)
    .set({ status, finishedAtMs: input.nowMs, error: storableText(input.error ?? null) })
    .where(eq(runs.id, input.runId));
  return { completed: true, status };
}

/** Marks a run as cancelled; false when it had ended already. Its end comes when its last trajectory stops. */
export async function markRunCancelled(q: Queryable, runId: string): Promise<boolean> {
  const rows = await q
    .update(runs)
    .set({ status: 'cancelled' })
    .where(and(eq(runs.id, runId), inArray(runs.status, ['queued', 'running'])))
    .returning({ id: runs.id });
  return rows.length > 0;
}
