/** A run in a test's database: the tutorial's skill, two tasks, queued and untouched by any worker. */
import { readFile } from 'node:fs/promises';
import { getBackend, getDataset, getSkillVersion } from '../../../db/queries/catalog';
import { insertRun } from '../../../db/queries/runs';
import type { JsonObject } from '../../core/vocabulary';
import { addBackend } from '../backends/add-backend';
import type { ServiceContext } from '../context';
import { importDataset } from '../datasets/import-dataset';
import { saveSkill } from '../skills/save-skill';

export interface TestRun {
  runId: string;
  groups: { groupId: string; members: { trajectoryId: string; sessionId: string }[] }[];
}

export async function insertTestRun(
  ctx: ServiceContext,
  { groupSize = 2, options = {} }: { groupSize?: number; options?: JsonObject } = {},
): Promise<TestRun> {
  const { db } = ctx.database;
  const { ambient } = ctx;
  const yaml = await readFile(new URL('../../../samples/skills/tutorial.yaml', import.meta.url), 'utf8');
  const { name } = await saveSkill({ ctx, input: { yaml } });
  const line = (id: string) => JSON.stringify({ task_id: id, prompt: `Find ${id}.`, answer: { number: 8 } });
  await importDataset({ ctx, input: { name: 'tutorial', jsonl: `${line('a')}\n${line('b')}\n` } });
  await addBackend({
    ctx,
    input: { name: 'tutorial', kind: 'embedded', settings: { modelPath: 'x.gguf' }, isDefault: true },
  });
  const runId = ambient.newId('run');
  const groups = ['a', 'b'].map((taskId) => ({
    id: ambient.newId('grp'),
    taskId,
    members: Array.from({ length: groupSize }, (_, seed) => ({
      id: ambient.newId('trj'),
      sessionId: ambient.newId('ses'),
      seed,
    })),
  }));
  const skillVersionId = (await getSkillVersion(db, { name })).versionId;
  const datasetId = (await getDataset(db, 'tutorial')).id;
  const backendId = (await getBackend(db)).id;
  const startedBy = ctx.actor.userId;
  const common = { id: runId, name: 'a run', skillVersionId, datasetId, backendId, groupSize, seed: 1, startedBy };
  const nowMs = ambient.now();
  await db.transaction((tx) => insertRun(tx, { ...common, options, notices: [], nowMs, groups }));
  return {
    runId,
    groups: groups.map(({ id, members }) => ({
      groupId: id,
      members: members.map((member) => ({ trajectoryId: member.id, sessionId: member.sessionId })),
    })),
  };
}
