/** Skills and their versions, datasets and their tasks, backends. */
import { and, asc, desc, eq, gt, sql } from 'drizzle-orm';
import { Conflict, NotFound } from '../../server/core/errors';
import type { BackendKind } from '../../server/core/inference';
import type { Page, TaskView } from '../../server/core/views';
import type { JsonObject } from '../../server/core/vocabulary';
import type { Queryable, Tx } from '../connection';
import { isUniqueViolation } from '../database-errors';
import {
  backendKeys,
  backends,
  datasets,
  runs,
  serverLabels,
  skills,
  skillVersions,
  tasks,
  weightUpdates,
} from '../schema';
import { decodePositionCursor, pageSize } from './paging';

export interface SkillVersionRow {
  skillId: string;
  versionId: string;
  name: string;
  version: number;
  yaml: string;
  yamlHash: string;
  createdAtMs: number;
}

const versionColumns = {
  skillId: skills.id,
  versionId: skillVersions.id,
  name: skills.name,
  version: skillVersions.version,
  yaml: skillVersions.yaml,
  yamlHash: skillVersions.yamlHash,
  createdAtMs: skillVersions.createdAtMs,
};

/** The newest version of every skill, by name. */
export async function listSkills(q: Queryable): Promise<SkillVersionRow[]> {
  return await q
    .selectDistinctOn([skills.name], versionColumns)
    .from(skills)
    .innerJoin(skillVersions, eq(skillVersions.skillId, skills.id))
    .orderBy(asc(skills.name), desc(skillVersions.version));
}

/** The newest version, or the one named. Throws NotFound. */
export async function getSkillVersion(
  q: Queryable,
  input: { name: string; version?: number },
): Promise<SkillVersionRow> {
  const [row] = await q
    .select(versionColumns)
    .from(skills)
    .innerJoin(skillVersions, eq(skillVersions.skillId, skills.id))
    .where(
      and(
        eq(skills.name, input.name),
        input.version === undefined ? undefined : eq(skillVersions.version, input.version),
      ),
    )
    .orderBy(desc(skillVersions.version))
    .limit(1);
  if (!row)
    throw new NotFound(
      input.version === undefined
        ? `There is no skill called ${input.name}.`
        : `The skill ${input.name} has no version ${input.version}.`,
    );
  return row;
}

export async function listSkillVersions(
  q: Queryable,
  name: string,
): Promise<{ version: number; createdAtMs: number }[]> {
  return await q
    .select({ version: skillVersions.version, createdAtMs: skillVersions.createdAtMs })
    .from(skills)
    .innerJoin(skillVersions, eq(skillVersions.skillId, skills.id))
    .where(eq(skills.name, name))
    .orderBy(desc(skillVersions.version));
}

/**
 * Saves a new version, making the skill when it is new. A text equal to the newest version's makes none (`created`
 * false). Two people who save at the same moment get two versions, one after the other.
 */
export async function saveSkillVersion(
  tx: Tx,
  input: {
    skillId: string;
    versionId: string;
    name: string;
    yaml: string;
    yamlHash: string;
    createdBy: string | null;
    nowMs: number;
  },
): Promise<{ versionId: string; version: number; created: boolean }> {
  await tx
    .insert(skills)
    .values({ id: input.skillId, name: input.name, createdAtMs: input.nowMs })
    .onConflictDoNothing({ target: skills.name });
  const [skill] = await tx.select({ id: skills.id }).from(skills).where(eq(skills.name, input.name)).for('update');
  if (!skill) throw new Conflict(`The skill ${input.name} was removed at this moment. Save again.`);
  const [newest] = await tx
    .select({ id: skillVersions.id, version: skillVersions.version, yamlHash: skillVersions.yamlHash })
    .from(skillVersions)
    .where(eq(skillVersions.skillId, skill.id))
    .orderBy(desc(skillVersions.version))
    .limit(1);
  if (newest?.yamlHash === input.yamlHash) return { versionId: newest.id, version: newest.version, created: false };
  const version = (newest?.version ?? 0) + 1;
  await tx.insert(skillVersions).values({
    id: input.versionId,
    skillId: skill.id,
    version,
    yaml: input.yaml,
    yamlHash: input.yamlHash,
    createdBy: input.createdBy,
    createdAtMs: input.nowMs,
  });
  return { versionId: input.versionId, version, created: true };
}

export type DatasetRow = typeof datasets.$inferSelect;

export async function listDatasets(q: Queryable): Promise<DatasetRow[]> {
  return await q.select().from(datasets).orderBy(asc(datasets.name));
}

/** Throws NotFound. */
export async function getDataset(q: Queryable, name: string): Promise<DatasetRow> {
  const [row] = await q.select().from(datasets).where(eq(datasets.name, name));
  if (!row) throw new NotFound(`There is no dataset called ${name}.`);
  return row;
}

/**
 * A dataset with its tasks in order. One of the same name and content is left as it is (`created` false); one of the
 * same name and other content is a Conflict, because runs refer to its tasks.
 */
export async function insertDataset(
  tx: Tx,
  input: { id: string; name: string; contentHash: string; nowMs: number; tasks: readonly TaskView[] },
): Promise<{ datasetId: string; created: boolean }> {
  const inserted = await tx
    .insert(datasets)
    .values({
      id: input.id,
      name: input.name,
      contentHash: input.contentHash,
      taskCount: input.tasks.length,
      createdAtMs: input.nowMs,
    })
    .onConflictDoNothing({ target: datasets.name })
    .returning({ id: datasets.id });
  if (inserted.length === 0) {
    const existing = await getDataset(tx, input.name);
    if (existing.contentHash === input.contentHash) return { datasetId: existing.id, created: false };
    throw new Conflict(`There is a dataset called ${input.name} with other tasks. Import this one under another name.`);
  }
  const rows = input.tasks.map((task, position) => ({ datasetId: input.id, position, ...task }));
  try {
    // Seven parameters a row; PostgreSQL takes 65,535 a statement.
    for (let i = 0; i < rows.length; i += 2_000) await tx.insert(tasks).values(rows.slice(i, i + 2_000));
  } catch (error) {
    if (isUniqueViolation(error, 'tasks_by_task_id'))
      throw new Conflict(`The dataset ${input.name} holds the same task_id twice.`, {}, { cause: error });
    throw error;
  }
  return { datasetId: input.id, created: true };
}

const taskColumns = {
  taskId: tasks.taskId,
  prompt: tasks.prompt,
  answer: tasks.answer,
  metadata: tasks.metadata,
  skill: tasks.skill,
};

/** In order of position. Throws NotFound. */
export async function listTasks(
  q: Queryable,
  input: { name: string; cursor?: string | null; limit?: number },
): Promise<Page<TaskView>> {
  const dataset = await getDataset(q, input.name);
  const limit = pageSize(input.limit);
  const rows = await q
    .select({ position: tasks.position, ...taskColumns })
    .from(tasks)
    .where(and(eq(tasks.datasetId, dataset.id), gt(tasks.position, decodePositionCursor(input.cursor))))
    .orderBy(asc(tasks.position))
    .limit(limit + 1);
  const shown = rows.slice(0, limit);
  return {
    items: shown.map(({ position: _, ...task }) => task),
    nextCursor: rows.length > limit ? String(shown.at(-1)?.position) : null,
    total: dataset.taskCount,
  };
}

/** A dataset's first tasks, in order: checked before a run is expanded from them. */
export async function firstTasks(q: Queryable, datasetId: string, limit: number): Promise<TaskView[]> {
  return await q
    .select(taskColumns)
    .from(tasks)
    .where(eq(tasks.datasetId, datasetId))
    .orderBy(asc(tasks.position))
    .limit(limit);
}

export type BackendRow = typeof backends.$inferSelect;

export async function listBackends(q: Queryable): Promise<BackendRow[]> {
  return await q.select().from(backends).orderBy(desc(backends.isDefault), asc(backends.name));
}

/** The one named, or the default one. Throws NotFound. */
export async function getBackend(q: Queryable, name?: string): Promise<BackendRow> {
  const [row] = await q
    .select()
    .from(backends)
    .where(name === undefined ? undefined : eq(backends.name, name))
    .orderBy(desc(backends.isDefault), asc(backends.name))
    .limit(1);
  if (!row) throw new NotFound(name === undefined ? 'There is no backend.' : `There is no backend called ${name}.`);
  return row;
}

/**
 * Makes the backend or changes its settings; its id stays. `settings` must hold no secret. `reopen`: what serves must be
 * opened anew, because more than the check changed.
 */
export async function saveBackend(
  tx: Tx,
  input: {
    id: string;
    name: string;
    kind: BackendKind;
    settings: JsonObject;
    isDefault: boolean;
    reopen?: boolean;
    nowMs: number;
  },
): Promise<{ backendId: string }> {
  if (input.isDefault) await tx.update(backends).set({ isDefault: false }).where(eq(backends.isDefault, true));
  const [row] = await tx
    .insert(backends)
    .values({
      id: input.id,
      name: input.name,
      kind: input.kind,
      settings: input.settings,
      isDefault: input.isDefault,
      createdAtMs: input.nowMs,
    })
    .onConflictDoUpdate({
      target: backends.name,
      set: {
        kind: input.kind,
        settings: sql`excluded.settings`,
        isDefault: input.isDefault,
        // A model inside the studio has no pause.
        ...(input.kind === 'embedded' ? { paused: false } : {}),
        ...(input.reopen === false ? {} : { revision: sql`${backends.revision} + 1` }),
      },
    })
    .returning({ id: backends.id });
  return { backendId: row?.id ?? input.id };
}

/** Whoever opens the backend from now on keeps requests back, or lets them go. */
export async function setBackendPaused(tx: Tx, input: { backendId: string; paused: boolean }): Promise<void> {
  await tx.update(backends).set({ paused: input.paused }).where(eq(backends.id, input.backendId));
}

/** Throws Conflict when runs were made with it: they name it for ever. */
export async function removeBackend(tx: Tx, { backendId, name }: { backendId: string; name: string }): Promise<void> {
  const [used] = await tx.select({ name: runs.name }).from(runs).where(eq(runs.backendId, backendId)).limit(1);
  if (used) throw new Conflict(`The backend ${name} cannot be removed: the run ${used.name} was made with it.`);
  await tx.delete(backendKeys).where(eq(backendKeys.backendId, backendId));
  await tx.delete(weightUpdates).where(eq(weightUpdates.backendId, backendId));
  await tx.delete(serverLabels).where(eq(serverLabels.backendId, backendId));
  await tx.delete(backends).where(eq(backends.id, backendId));
}
