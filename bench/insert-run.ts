/** A run of the bench's own skill in the database, with trajectories that no worker takes: the bench drives them itself. */
import { getBackend, getDataset, getSkillVersion } from '../db/queries/catalog';
import { insertRun } from '../db/queries/runs';
import { addBackend } from '../server/services/backends/add-backend';
import type { ServiceContext } from '../server/services/context';
import { importDataset } from '../server/services/datasets/import-dataset';
import { saveSkill } from '../server/services/skills/save-skill';

export interface BenchRun {
  runId: string;
  members: { trajectoryId: string; sessionId: string; seed: number }[];
}

const DATASET = 'bench';
const TASK = { task_id: 'bench', prompt: 'A number from 1 to 16 is hidden. Find it.', answer: { number: 8 } };

/** Safe to call many times on one database; each call makes a new run of one group. */
export async function insertBenchRun(
  ctx: ServiceContext,
  options: { skillYaml: string; groupSize: number },
): Promise<BenchRun> {
  const { ambient, actor } = ctx;
  const { db } = ctx.database;
  const { name: skill } = await saveSkill({ ctx, input: { yaml: options.skillYaml } });
  await importDataset({ ctx, input: { name: DATASET, jsonl: `${JSON.stringify(TASK)}\n` } });
  await addBackend({
    ctx,
    input: { name: 'bench', kind: 'embedded', settings: { modelPath: 'none.gguf' }, isDefault: true },
  });
  const members = Array.from({ length: options.groupSize }, (_, seed) => ({
    trajectoryId: ambient.newId('trj'),
    sessionId: ambient.newId('ses'),
    seed,
  }));
  const runId = ambient.newId('run');
  const group = {
    id: ambient.newId('grp'),
    taskId: TASK.task_id,
    members: members.map(({ trajectoryId, ...member }) => ({ id: trajectoryId, ...member })),
  };
  const run = {
    id: runId,
    name: 'bench',
    skillVersionId: (await getSkillVersion(db, { name: skill })).versionId,
    datasetId: (await getDataset(db, DATASET)).id,
    backendId: (await getBackend(db)).id,
    groupSize: options.groupSize,
    seed: 1,
    options: {},
    notices: [],
    startedBy: actor.userId,
    nowMs: ambient.now(),
    groups: [group],
  };
  await db.transaction((tx) => insertRun(tx, run));
  return { runId, members };
}
