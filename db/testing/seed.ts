/** A run with everything it refers to, for tests that need rows. */
import { fixedAmbient } from '../../server/core/ambient';
import type { Json } from '../../server/core/vocabulary';
import type { Database } from '../connection';
import { insertDataset, saveBackend, saveSkillVersion } from '../queries/catalog';
import { insertRun, type NewRun } from '../queries/runs';

export interface SeededRun {
  runId: string;
  datasetId: string;
  groups: NewRun['groups'];
}

/** A seed of its own, so that its ids are not those of a test that also holds its ambient still. */
const ambient = fixedAmbient(undefined, 7919);

/** `groupCount` groups of `groupSize`, queued. Every call makes a dataset and a run of its own. */
export async function seedRun(
  database: Database,
  { groupCount = 2, groupSize = 4, answer = '42' as Json, nowMs = 1_750_000_000_000 } = {},
): Promise<SeededRun> {
  const runId = ambient.newId('run');
  const tasks = Array.from({ length: groupCount }, (_, i) => ({
    taskId: `task-${i}`,
    prompt: `question ${i}`,
    answer,
    metadata: { position: i },
    skill: null,
  }));
  const groups = tasks.map(({ taskId }) => ({
    id: ambient.newId('grp'),
    taskId,
    members: Array.from({ length: groupSize }, (_, member) => ({
      id: ambient.newId('trj'),
      sessionId: ambient.newId('ses'),
      seed: member,
    })),
  }));
  const datasetId = await database.db.transaction(async (tx) => {
    const skill = await saveSkillVersion(tx, {
      skillId: ambient.newId('skl'),
      versionId: ambient.newId('skl'),
      name: 'tutorial',
      yaml: 'skill_name: tutorial',
      yamlHash: 'hash',
      createdBy: null,
      nowMs,
    });
    const dataset = await insertDataset(tx, {
      id: ambient.newId('dst'),
      name: `dataset of ${runId}`,
      contentHash: runId,
      nowMs,
      tasks,
    });
    const backend = await saveBackend(tx, {
      id: ambient.newId('bck'),
      name: 'embedded',
      kind: 'embedded',
      settings: {},
      isDefault: true,
      nowMs,
    });
    await insertRun(tx, {
      id: runId,
      name: 'a run',
      skillVersionId: skill.versionId,
      datasetId: dataset.datasetId,
      backendId: backend.backendId,
      groupSize,
      seed: 7,
      options: {},
      notices: [],
      startedBy: null,
      nowMs,
      groups,
    });
    return dataset.datasetId;
  });
  return { runId, datasetId, groups };
}
