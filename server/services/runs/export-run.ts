/**
 * A run's token sequences as a rollout batch, JSON Lines, in the order of groups and members. Exact data only: what is
 * approximate, or whose log-probabilities are of another kind than raw, is left out unless `all` is asked for, and
 * `countExported` says how much that is. A trajectory that has not ended is not in it.
 */
import { countExport, readExportPage } from '../../../db/queries/export';
import { getRunSettings } from '../../../db/queries/runs';
import { batchLine, serializeBatchLine } from '../../core/batch/serialize';
import { requireRole, type ServiceContext } from '../context';
import { parseInput } from '../inputs';
import { exportRunInput } from './run-inputs';

/** Trajectories read at once: bounds the memory, whatever the run's size. */
const PAGE = 32;

export async function* exportRun({
  ctx,
  input,
}: {
  ctx: ServiceContext;
  input: { runId: string; all?: boolean };
}): AsyncIterable<string> {
  requireRole(ctx, 'viewer', 'Exporting a run');
  const { runId, all } = parseInput(exportRunInput, input);
  const { db } = ctx.database;
  const run = await getRunSettings(db, runId);
  let after: { groupPosition: number; member: number } | null = null;
  for (;;) {
    const page = await readExportPage(db, { runId, after, limit: PAGE });
    for (const trajectory of page) {
      const {
        trajectoryId,
        groupId,
        taskId,
        status,
        stepRewards,
        reward,
        rewardComponents,
        stateKeys,
        advantages,
        humanEdited,
      } = trajectory;
      const facts = {
        runId,
        groupId,
        taskId,
        trajectoryId,
        skill: run.skillName,
        skillVersion: run.skillVersion,
        backend: run.backendName,
        status,
        stepRewards,
        reward,
        rewardComponents,
        stateKeys,
        advantages,
        humanEdited,
      };
      for (const { sequence, logprobKind, truncated, approximate } of trajectory.sequences) {
        if (!all && (approximate || logprobKind !== 'raw')) continue;
        yield `${serializeBatchLine(batchLine(sequence, facts, { logprobKind, truncated, approximate }))}\n`;
      }
    }
    const last = page.at(-1);
    if (!last || page.length < PAGE) return;
    after = { groupPosition: last.groupPosition, member: last.member };
  }
}

/** What an export of this run holds and leaves out, in numbers. */
export async function countExported({
  ctx,
  input,
}: {
  ctx: ServiceContext;
  input: { runId: string };
}): Promise<{ sequences: number; approximate: number; notRaw: number; unfinished: number }> {
  requireRole(ctx, 'viewer', 'Exporting a run');
  const { runId } = parseInput(exportRunInput, input);
  await getRunSettings(ctx.database.db, runId);
  return countExport(ctx.database.db, runId);
}
