/**
 * The queue and the end of trajectories. The table is the queue: a claim is a row lock for a moment and then a lease
 * that its worker renews; a worker that stops renewing loses the trajectory to the next one that asks.
 */
import { and, eq, inArray, sql } from 'drizzle-orm';
import { Conflict } from '../../server/core/errors';
import type { TokenSequence } from '../../server/core/tokens/chunk';
import type { FinalTrajectoryStatus, Json, JsonObject, LogprobKind, SandboxLevel } from '../../server/core/vocabulary';
import type { Queryable, Tx } from '../connection';
import { tokenSequences, trajectories } from '../schema';
import { storableText } from './stored-text';
import { toTokenColumns } from './token-columns';

export interface ClaimedTrajectory {
  trajectoryId: string;
  runId: string;
  groupId: string;
  groupPosition: number;
  sessionId: string;
  member: number;
  seed: number;
  /** 1 on the first claim; more means that an earlier worker lost it, and its log goes on. */
  claims: number;
  startedAtMs: number;
  /** How often it was begun anew because its weights had become too old. */
  redone: number;
  skillVersionId: string;
  backendId: string;
  datasetId: string;
  task: { taskId: string; prompt: string; answer: Json; metadata: JsonObject; skill: string | null };
}

/**
 * Takes up to `limit` trajectories that are queued, or whose worker let its lease expire, oldest first. Two callers
 * never get the same one.
 */
export async function claimTrajectories(
  q: Queryable,
  input: { workerId: string; limit: number; nowMs: number; leaseMs: number },
): Promise<ClaimedTrajectory[]> {
  const { workerId, limit, nowMs, leaseMs } = input;
  const rows = await q.execute<
    { [K in keyof Omit<ClaimedTrajectory, 'task'>]: ClaimedTrajectory[K] } & ClaimedTrajectory['task']
  >(sql`
    with free as (
      select id from trajectories
      where status in ('queued', 'running') and (status = 'queued' or lease_until_ms < ${nowMs}::bigint)
      order by queue_order limit ${limit} for update skip locked
    ),
    claimed as (
      update trajectories t set status = 'running', worker_id = ${workerId}, lease_until_ms = ${nowMs + leaseMs}::bigint,
        claims = t.claims + 1, started_at_ms = coalesce(t.started_at_ms, ${nowMs}::bigint)
      from free where t.id = free.id
      returning t.*
    )
    select c.id as "trajectoryId", c.run_id as "runId", c.group_id as "groupId", g.position as "groupPosition",
      c.session_id as "sessionId", c.member, c.seed, c.claims, c.started_at_ms as "startedAtMs", c.redone,
      r.skill_version_id as "skillVersionId", r.backend_id as "backendId", r.dataset_id as "datasetId",
      k.task_id as "taskId", k.prompt, k.answer, k.metadata, k.skill
    from claimed c join groups g on g.id = c.group_id join runs r on r.id = c.run_id
      join tasks k on k.dataset_id = r.dataset_id and k.task_id = g.task_id
    order by c.queue_order`);
  return [...rows].map(({ taskId, prompt, answer, metadata, skill, ...row }) => ({
    ...row,
    task: { taskId, prompt, answer, metadata, skill },
  }));
}

/** Marks runs whose first trajectory was claimed. Returns those that were queued until now. */
export async function startRuns(q: Queryable, runIds: readonly string[]): Promise<string[]> {
  if (runIds.length === 0) return [];
  const rows = await q.execute<{ id: string }>(sql`
    update runs set status = 'running' where status = 'queued' and id in ${[...runIds]} returning id`);
  return [...rows].map((row) => row.id);
}

/**
 * Extends the leases of these; returns the ids that the worker still holds. What is missing is lost. What else stands
 * under its name, because it could not be put back, runs out.
 */
export async function renewLeases(
  q: Queryable,
  input: { workerId: string; trajectoryIds: readonly string[]; nowMs: number; leaseMs: number },
): Promise<string[]> {
  const rows = await q
    .update(trajectories)
    .set({ leaseUntilMs: input.nowMs + input.leaseMs })
    .where(
      and(
        inArray(trajectories.id, [...input.trajectoryIds]),
        eq(trajectories.workerId, input.workerId),
        eq(trajectories.status, 'running'),
      ),
    )
    .returning({ id: trajectories.id });
  return rows.map((row) => row.id);
}

/** Puts what a worker holds back on the queue (it stops in good order). Returns how many. */
export async function releaseWorker(q: Queryable, workerId: string): Promise<number> {
  const rows = await q
    .update(trajectories)
    .set({ status: 'queued', workerId: null, leaseUntilMs: null })
    .where(and(eq(trajectories.workerId, workerId), eq(trajectories.status, 'running')))
    .returning({ id: trajectories.id });
  return rows.length;
}

/**
 * Puts everything back on the queue. Only for the embedded database at start-up: its one process is this one, so no
 * lease can be anyone's.
 */
export async function releaseAll(q: Queryable): Promise<number> {
  const rows = await q
    .update(trajectories)
    .set({ status: 'queued', workerId: null, leaseUntilMs: null })
    .where(eq(trajectories.status, 'running'))
    .returning({ id: trajectories.id });
  return rows.length;
}

export interface FinishedSequence {
  sequence: TokenSequence;
  logprobKind: LogprobKind;
  truncated: boolean;
  approximate: boolean;
}

export interface FinishTrajectoryInput {
  trajectoryId: string;
  workerId: string;
  status: FinalTrajectoryStatus;
  nowMs: number;
  stepRewards: number[];
  stepComponents: Record<string, number>[];
  stateKeys: string[];
  reward: number | null;
  rewardComponents: Record<string, number>;
  success: boolean | null;
  endReason: string;
  error: { message: string; stack: string | null } | null;
  toolFailures: Record<string, number>;
  sandboxLevels: SandboxLevel[];
  humanEdited: boolean;
  sequences: FinishedSequence[];
}

/**
 * Writes the end of a trajectory and its tokens. Throws Conflict when the worker does not hold it any more: then it is
 * someone else's to finish and nothing is written.
 */
export async function finishTrajectory(tx: Tx, input: FinishTrajectoryInput): Promise<void> {
  const columns = input.sequences.map(({ sequence }) => toTokenColumns(sequence));
  const sum = (pick: (c: (typeof columns)[number]) => number) => columns.reduce((total, c) => total + pick(c), 0);
  const changed = await tx
    .update(trajectories)
    .set({
      status: input.status,
      workerId: null,
      leaseUntilMs: null,
      finishedAtMs: input.nowMs,
      stepRewards: input.stepRewards,
      stepComponents: input.stepComponents,
      stateKeys: input.stateKeys,
      reward: input.reward,
      rewardComponents: input.rewardComponents,
      success: input.success,
      endReason: storableText(input.endReason),
      errorMessage: storableText(input.error?.message ?? null),
      errorStack: storableText(input.error?.stack ?? null),
      generatedTokens: sum((c) => c.generatedLength),
      totalTokens: sum((c) => c.length),
      toolFailures: input.toolFailures,
      sandboxLevels: input.sandboxLevels,
      humanEdited: input.humanEdited,
      approximate: input.sequences.some((s) => s.approximate),
    })
    .where(
      and(
        eq(trajectories.id, input.trajectoryId),
        eq(trajectories.workerId, input.workerId),
        eq(trajectories.status, 'running'),
      ),
    )
    .returning({ id: trajectories.id });
  if (changed.length === 0)
    throw new Conflict('This trajectory is not held by this worker any more, so its end was not written.', {
      trajectoryId: input.trajectoryId,
      workerId: input.workerId,
    });
  if (input.sequences.length === 0) return;
  await tx.insert(tokenSequences).values(
    input.sequences.map(({ sequence, logprobKind, truncated, approximate }, i) => ({
      ...(columns[i] ?? toTokenColumns(sequence)),
      trajectoryId: input.trajectoryId,
      sequenceIndex: sequence.index,
      weightVersions: sequence.weightVersions,
      logprobKind,
      truncated,
      approximate,
    })),
  );
}

/** Ends what waits on the queue of a run. Returns the trajectories; the running ones are the engine's to stop. */
export async function cancelQueued(
  q: Queryable,
  input: { runId: string; nowMs: number; reason: string },
): Promise<{ trajectoryId: string; groupId: string }[]> {
  return await q
    .update(trajectories)
    .set({ status: 'cancelled', endReason: storableText(input.reason), finishedAtMs: input.nowMs, stepRewards: [] })
    .where(and(eq(trajectories.runId, input.runId), inArray(trajectories.status, ['queued'])))
    .returning({ trajectoryId: trajectories.id, groupId: trajectories.groupId });
}
