/** Runs: starting one, the list, one in detail, what went wrong in it. */
import { and, asc, desc, eq, inArray, or, sql } from 'drizzle-orm';
import { NotFound } from '../../server/core/errors';
import type { FailureCount, GroupRow, Page, RunDetail, RunSummary, TrajectoryRow } from '../../server/core/views';
import {
  COUNTED_STATUSES,
  type JsonObject,
  type RunStatus,
  TRAJECTORY_STATUSES,
  type TrajectoryStatus,
} from '../../server/core/vocabulary';
import type { Queryable, Tx } from '../connection';
import { backends, datasets, groups, runs, sessionEvents, skills, skillVersions, tasks, trajectories } from '../schema';
import { decodeTimeCursor, encodeTimeCursor, pageSize } from './paging';

export interface NewRun {
  id: string;
  name: string;
  skillVersionId: string;
  datasetId: string;
  backendId: string;
  groupSize: number;
  seed: number;
  options: JsonObject;
  notices: string[];
  startedBy: string | null;
  nowMs: number;
  /** In position order; members in member order, groupSize each. */
  groups: {
    id: string;
    taskId: string;
    members: { id: string; sessionId: string; seed: number }[];
  }[];
}

/** The name, or where a run has it already the name with the next number: `tutorial-11300028-2`. */
export async function freeRunName(tx: Tx, name: string): Promise<string> {
  // Others that name a run wait until this one is there.
  await tx.execute(sql`select pg_advisory_xact_lock(hashtext(${`run name ${name}`}))`);
  const taken = await tx
    .select({ name: runs.name })
    .from(runs)
    .where(or(eq(runs.name, name), sql`starts_with(${runs.name}, ${`${name}-`})`));
  const names = new Set(taken.map((run) => run.name));
  if (!names.has(name)) return name;
  let number = 2;
  while (names.has(`${name}-${number}`)) number++;
  return `${name}-${number}`;
}

const ROWS_A_STATEMENT = 20_000;

/** The run, its groups and its trajectories, queued group by group. */
export async function insertRun(tx: Tx, run: NewRun): Promise<void> {
  await tx.insert(runs).values({
    id: run.id,
    name: run.name,
    status: 'queued',
    skillVersionId: run.skillVersionId,
    datasetId: run.datasetId,
    backendId: run.backendId,
    groupSize: run.groupSize,
    taskCount: run.groups.length,
    seed: run.seed,
    options: run.options,
    notices: run.notices,
    startedBy: run.startedBy,
    createdAtMs: run.nowMs,
  });
  const groupRows = run.groups.map((group, position) => ({ id: group.id, position, task: group.taskId }));
  for (let i = 0; i < groupRows.length; i += ROWS_A_STATEMENT)
    await tx.execute(sql`
      insert into groups (id, run_id, position, task_id)
      select r.id, ${run.id}, r.position, r.task
      from json_to_recordset(${JSON.stringify(groupRows.slice(i, i + ROWS_A_STATEMENT))}::json)
        as r(id text, position int, task text)`);
  const memberRows = run.groups.flatMap((group) =>
    group.members.map(({ id, sessionId, seed }, member) => ({ id, g: group.id, s: sessionId, m: member, n: seed })),
  );
  for (let i = 0; i < memberRows.length; i += ROWS_A_STATEMENT)
    await tx.execute(sql`
      insert into trajectories (id, run_id, group_id, session_id, member, seed, status)
      select r.id, ${run.id}, r.g, r.s, r.m, r.n, 'queued'
      from rows from (json_to_recordset(${JSON.stringify(memberRows.slice(i, i + ROWS_A_STATEMENT))}::json)
        as (id text, g text, s text, m int, n int)) with ordinality as r(id, g, s, m, n, ord)
      order by r.ord`);
}

const summaryColumns = {
  runId: runs.id,
  name: runs.name,
  status: runs.status,
  skillName: skills.name,
  skillVersion: skillVersions.version,
  datasetName: datasets.name,
  backendName: backends.name,
  groupSize: runs.groupSize,
  taskCount: runs.taskCount,
  createdAtMs: runs.createdAtMs,
  finishedAtMs: runs.finishedAtMs,
};

/** The caller says which runs; one more query counts their trajectories. */
export async function listRuns(
  q: Queryable,
  input: { cursor?: string | null; limit?: number; status?: RunStatus },
): Promise<Page<RunSummary>> {
  const limit = pageSize(input.limit);
  const after = decodeTimeCursor(input.cursor);
  const wanted = input.status ? eq(runs.status, input.status) : undefined;
  const rows = await q
    .select(summaryColumns)
    .from(runs)
    .innerJoin(skillVersions, eq(skillVersions.id, runs.skillVersionId))
    .innerJoin(skills, eq(skills.id, skillVersions.skillId))
    .innerJoin(datasets, eq(datasets.id, runs.datasetId))
    .innerJoin(backends, eq(backends.id, runs.backendId))
    .where(
      and(wanted, after ? sql`(${runs.createdAtMs}, ${runs.id}) < (${after.atMs}::bigint, ${after.id})` : undefined),
    )
    .orderBy(desc(runs.createdAtMs), desc(runs.id))
    .limit(limit + 1);
  const [count] = await q.select({ total: sql<number>`count(*)::int` }).from(runs).where(wanted);
  const shown = rows.slice(0, limit);
  const statistics = await countByStatus(
    q,
    shown.map((row) => row.runId),
  );
  const last = shown.at(-1);
  return {
    items: shown.map((row) => ({ ...row, ...(statistics.get(row.runId) ?? NO_TRAJECTORIES) })),
    nextCursor: rows.length > limit && last ? encodeTimeCursor({ atMs: last.createdAtMs, id: last.runId }) : null,
    total: count?.total ?? 0,
  };
}

export interface RunStatistics {
  counts: Record<TrajectoryStatus, number>;
  /** Over completed and truncated trajectories; null when there is none with a value. */
  meanReward: number | null;
  successRate: number | null;
}

const noCounts = (): Record<TrajectoryStatus, number> =>
  Object.fromEntries(TRAJECTORY_STATUSES.map((status) => [status, 0])) as Record<TrajectoryStatus, number>;
const NO_TRAJECTORIES: RunStatistics = { counts: noCounts(), meanReward: null, successRate: null };

export async function countByStatus(q: Queryable, runIds: readonly string[]): Promise<Map<string, RunStatistics>> {
  const found = new Map<string, RunStatistics & { rewards: [number, number]; successes: [number, number] }>();
  if (runIds.length === 0) return found;
  const rows = await q
    .select({
      runId: trajectories.runId,
      status: trajectories.status,
      count: sql<number>`count(*)::int`,
      rewarded: sql<number>`count(${trajectories.reward})::int`,
      reward: sql<number>`coalesce(sum(${trajectories.reward}), 0)`,
      judged: sql<number>`count(${trajectories.success})::int`,
      successes: sql<number>`(count(*) filter (where ${trajectories.success}))::int`,
    })
    .from(trajectories)
    .where(inArray(trajectories.runId, [...runIds]))
    .groupBy(trajectories.runId, trajectories.status);
  for (const row of rows) {
    const entry = found.get(row.runId) ?? {
      counts: noCounts(),
      meanReward: null,
      successRate: null,
      rewards: [0, 0],
      successes: [0, 0],
    };
    found.set(row.runId, entry);
    entry.counts[row.status] = row.count;
    if (!COUNTED_STATUSES.includes(row.status)) continue;
    entry.rewards = [entry.rewards[0] + row.reward, entry.rewards[1] + row.rewarded];
    entry.successes = [entry.successes[0] + row.successes, entry.successes[1] + row.judged];
    entry.meanReward = entry.rewards[1] > 0 ? entry.rewards[0] / entry.rewards[1] : null;
    entry.successRate = entry.successes[1] > 0 ? entry.successes[0] / entry.successes[1] : null;
  }
  return new Map(
    [...found].map(([id, { counts, meanReward, successRate }]) => [id, { counts, meanReward, successRate }]),
  );
}

export const trajectoryRowColumns = {
  trajectoryId: trajectories.id,
  groupId: trajectories.groupId,
  member: trajectories.member,
  status: trajectories.status,
  reward: trajectories.reward,
  success: trajectories.success,
  stepRewards: trajectories.stepRewards,
  advantages: trajectories.advantages,
  generatedTokens: trajectories.generatedTokens,
  totalTokens: trajectories.totalTokens,
  endReason: trajectories.endReason,
  errorMessage: trajectories.errorMessage,
  toolFailures: trajectories.toolFailures,
  startedAtMs: trajectories.startedAtMs,
  finishedAtMs: trajectories.finishedAtMs,
};

type StoredTrajectoryRow = Omit<TrajectoryRow, 'stepRewards' | 'toolFailures'> & {
  stepRewards: number[] | null;
  toolFailures: Record<string, number> | null;
};

export function asTrajectoryRow(row: StoredTrajectoryRow): TrajectoryRow {
  return { ...row, stepRewards: row.stepRewards ?? [], toolFailures: row.toolFailures ?? {} };
}

/** Throws NotFound. `eventSeq` is read first, so a subscription from there misses nothing of what follows. */
export async function getRun(q: Queryable, runId: string): Promise<RunDetail> {
  const [run] = await q
    .select({
      ...summaryColumns,
      seed: runs.seed,
      options: runs.options,
      notices: runs.notices,
      error: runs.error,
      nextEventSeq: runs.nextEventSeq,
      datasetId: runs.datasetId,
    })
    .from(runs)
    .innerJoin(skillVersions, eq(skillVersions.id, runs.skillVersionId))
    .innerJoin(skills, eq(skills.id, skillVersions.skillId))
    .innerJoin(datasets, eq(datasets.id, runs.datasetId))
    .innerJoin(backends, eq(backends.id, runs.backendId))
    .where(eq(runs.id, runId));
  if (!run) throw new NotFound(`There is no run ${runId}.`);
  const { nextEventSeq, datasetId, ...shown } = run;
  const groupRows = await q
    .select({
      groupId: groups.id,
      position: groups.position,
      taskId: groups.taskId,
      prompt: tasks.prompt,
      completedAtMs: groups.completedAtMs,
      meanReward: groups.meanReward,
      stdReward: groups.stdReward,
      hasSignal: groups.hasSignal,
    })
    .from(groups)
    .innerJoin(tasks, and(eq(tasks.datasetId, datasetId), eq(tasks.taskId, groups.taskId)))
    .where(eq(groups.runId, runId))
    .orderBy(asc(groups.position));
  const members = await q
    .select({
      ...trajectoryRowColumns,
      sandboxLevels: trajectories.sandboxLevels,
      sessionId: trajectories.sessionId,
      redone: trajectories.redone,
    })
    .from(trajectories)
    .where(eq(trajectories.runId, runId))
    .orderBy(asc(trajectories.groupId), asc(trajectories.member));
  const statistics = (await countByStatus(q, [runId])).get(runId) ?? NO_TRAJECTORIES;
  const soFar = await stepRewardsSoFar(
    q,
    members.filter((row) => row.status === 'running').map((row) => row.sessionId),
  );
  const byGroup = groupRowsByGroup(members);
  const detail: GroupRow[] = groupRows.map(({ completedAtMs, ...group }) => ({
    ...group,
    completed: completedAtMs !== null,
    trajectories: (byGroup.get(group.groupId) ?? []).map(({ sandboxLevels: _, redone: __, sessionId, ...row }) =>
      asTrajectoryRow({ ...row, stepRewards: row.stepRewards ?? soFar.get(sessionId) ?? null }),
    ),
  }));
  return {
    ...shown,
    ...statistics,
    groups: detail,
    groupsWithoutSignal: detail.filter((group) => group.completed && group.hasSignal === false).length,
    sandboxLevels: [...new Set(members.flatMap((row) => row.sandboxLevels ?? []))],
    generatedTokens: members.reduce((total, row) => total + (row.generatedTokens ?? 0), 0),
    redone: members.reduce((total, row) => total + row.redone, 0),
    eventSeq: nextEventSeq - 1,
  };
}

/** Rewards of the steps that running trajectories have completed: the row gets them only at its end. */
async function stepRewardsSoFar(q: Queryable, sessionIds: readonly string[]): Promise<Map<string, number[]>> {
  const found = new Map<string, number[]>();
  if (sessionIds.length === 0) return found;
  const rows = await q
    .select({ sessionId: sessionEvents.sessionId, reward: sql<number>`(${sessionEvents.data}->>'reward')::float8` })
    .from(sessionEvents)
    .where(and(inArray(sessionEvents.sessionId, [...sessionIds]), eq(sessionEvents.type, 'step.completed')))
    .orderBy(asc(sessionEvents.sessionId), asc(sessionEvents.seq));
  for (const { sessionId, reward } of rows) found.set(sessionId, [...(found.get(sessionId) ?? []), reward]);
  return found;
}

function groupRowsByGroup<T extends { groupId: string }>(rows: T[]): Map<string, T[]> {
  const found = new Map<string, T[]>();
  for (const row of rows) {
    const list = found.get(row.groupId);
    if (list) list.push(row);
    else found.set(row.groupId, [row]);
  }
  return found;
}

export interface RunSettings {
  runId: string;
  name: string;
  status: RunStatus;
  groupSize: number;
  seed: number;
  options: JsonObject;
  skillName: string;
  skillVersion: number;
  skillYaml: string;
  datasetId: string;
  datasetName: string;
  backendName: string;
  createdAtMs: number;
}

/** What a worker or an export needs of a run. Throws NotFound. */
export async function getRunSettings(q: Queryable, runId: string): Promise<RunSettings> {
  const [row] = await q
    .select({
      runId: runs.id,
      name: runs.name,
      status: runs.status,
      groupSize: runs.groupSize,
      seed: runs.seed,
      options: runs.options,
      skillName: skills.name,
      skillVersion: skillVersions.version,
      skillYaml: skillVersions.yaml,
      datasetId: runs.datasetId,
      datasetName: datasets.name,
      backendName: backends.name,
      createdAtMs: runs.createdAtMs,
    })
    .from(runs)
    .innerJoin(skillVersions, eq(skillVersions.id, runs.skillVersionId))
    .innerJoin(skills, eq(skills.id, skillVersions.skillId))
    .innerJoin(datasets, eq(datasets.id, runs.datasetId))
    .innerJoin(backends, eq(backends.id, runs.backendId))
    .where(eq(runs.id, runId));
  if (!row) throw new NotFound(`There is no run ${runId}.`);
  return row;
}

/**
 * What went wrong, most frequent first: trajectories that did not complete, by their error or reason, and tool calls
 * that did not succeed, by status ('tool: timeout'; counted by call).
 */
export async function countFailures(q: Queryable, runId: string): Promise<FailureCount[]> {
  const rows = await q.execute<{ kind: string; count: number; example: string }>(sql`
    select kind, sum(n)::int as count, min(id) as example from (
      select coalesce(error_message, end_reason, status) as kind, 1 as n, id from trajectories
      where run_id = ${runId} and status in ('failed', 'timed_out', 'truncated', 'cancelled')
      union all
      select 'tool: ' || f.key, f.value::int, t.id from trajectories t, json_each_text(t.tool_failures) f
      where t.run_id = ${runId} and t.tool_failures is not null
    ) failures group by kind order by count desc, kind`);
  return [...rows].map(({ kind, count, example }) => ({ kind, count, exampleTrajectoryId: example }));
}
