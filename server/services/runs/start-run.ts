/** Starts a run: every task of the dataset becomes a group of trajectories on the queue. */
import type { z } from 'zod';
import { firstTasks, getBackend, getDataset, getSkillVersion } from '../../../db/queries/catalog';
import { appendRunEvent } from '../../../db/queries/events';
import { freeRunName, insertRun } from '../../../db/queries/runs';
import { Invalid, Unavailable } from '../../core/errors';
import { scoringProblem } from '../../core/rewards/score';
import { parseSkill } from '../../core/skills/parse';
import type { JsonObject } from '../../core/vocabulary';
import { auditEntry } from '../../observability/audit';
import { memberSeed } from '../../rollout/member-seed';
import { readRunOptions, runNotices } from '../../rollout/run-options';
import { requireRole, type ServiceContext } from '../context';
import { parseInput } from '../inputs';
import { KNOWN_NAMES } from '../skills/known-names';
import { startRunInput } from './run-inputs';

/** A run holds its trajectories as rows from the start; more than this is several runs. */
const MOST_TRAJECTORIES = 200_000;

export async function startRun({
  ctx,
  input,
}: {
  ctx: ServiceContext;
  input: z.input<typeof startRunInput>;
}): Promise<{ runId: string }> {
  requireRole(ctx, 'operator', 'Starting a run');
  const wanted = parseInput(startRunInput, input);
  const { ambient, database } = ctx;
  const skillVersion = await getSkillVersion(database.db, { name: wanted.skill, version: wanted.skillVersion });
  const skill = parseSkill(skillVersion.yaml, KNOWN_NAMES);
  const dataset = await getDataset(database.db, wanted.dataset);
  const backend = await getBackend(database.db, wanted.backend);
  // A run on one that is paused begins when it is resumed.
  const health = await ctx.process.backendHealth(backend.name);
  if (!health.ok && !health.held)
    throw new Unavailable(`The backend ${backend.name} cannot be used: ${health.message}`);
  const judge = wanted.judge === undefined ? null : await getBackend(database.db, wanted.judge);
  if (judge) {
    const judging = await ctx.process.backendHealth(judge.name);
    if (!judging.ok && !judging.held)
      throw new Unavailable(`The judge ${judge.name} cannot be used: ${judging.message}`);
  }
  const options: JsonObject = {
    ...(wanted.temperature === undefined ? {} : { temperature: wanted.temperature }),
    ...(judge ? { judge: judge.name } : {}),
    ...(wanted.dropNoSignal ? { dropNoSignal: true } : {}),
    ...(wanted.maxStaleness === undefined ? {} : { maxStaleness: wanted.maxStaleness, stale: wanted.stale ?? 'redo' }),
  };
  const tasks = await firstTasks(database.db, dataset.id, wanted.tasks ?? MOST_TRAJECTORIES);
  if (tasks.length === 0) throw new Invalid(`The dataset ${dataset.name} has no tasks.`);
  const total = tasks.length * wanted.groupSize;
  if (total > MOST_TRAJECTORIES)
    throw new Invalid(
      `${tasks.length} tasks × ${wanted.groupSize} are ${total} trajectories; one run holds at most ${MOST_TRAJECTORIES}. Take fewer tasks.`,
    );

  for (const task of tasks) {
    const problem = scoringProblem(skill, task, judge !== null);
    if (problem) throw new Invalid(`The dataset ${dataset.name} does not fit the skill ${skill.skillName}. ${problem}`);
  }
  const form = await ctx.process.planTurns(backend.name, skill);
  const notices = [...(form === null ? [] : [form]), ...runNotices(skill, readRunOptions(options), tasks)];

  const runId = ambient.newId('run');
  const seed = wanted.seed ?? Math.floor(ambient.random() * 2 ** 31);
  const nowMs = ambient.now();
  const madeName = `${skill.skillName}-${new Date(nowMs).toISOString().slice(5, 16).replace(/[-:T]/g, '')}`;
  await database.db.transaction(async (tx) => {
    const name = wanted.name ?? (await freeRunName(tx, madeName));
    await insertRun(tx, {
      id: runId,
      name,
      skillVersionId: skillVersion.versionId,
      datasetId: dataset.id,
      backendId: backend.id,
      groupSize: wanted.groupSize,
      seed,
      options,
      notices,
      startedBy: ctx.actor.userId,
      nowMs,
      groups: tasks.map(({ taskId }, position) => ({
        id: ambient.newId('grp'),
        taskId,
        members: Array.from({ length: wanted.groupSize }, (_, member) => ({
          id: ambient.newId('trj'),
          sessionId: ambient.newId('ses'),
          seed: memberSeed(seed, position, member),
        })),
      })),
    });
    await appendRunEvent(tx, { runId, atMs: nowMs, type: 'run.queued', data: { status: 'queued' } });
    await auditEntry(tx, ctx, {
      actionType: 'start_run',
      resource: `run://${runId}`,
      operation: 'create',
      status: 'success',
      details: {
        skill: skill.skillName,
        version: skillVersion.version,
        dataset: dataset.name,
        backend: backend.name,
        tasks: tasks.length,
        groupSize: wanted.groupSize,
        seed,
      },
    });
  });
  ctx.process.runLogGrew(runId);
  ctx.process.wakeWorkers();
  return { runId };
}
