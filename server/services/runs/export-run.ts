/**
 * A run's token sequences as a rollout batch, JSON Lines, in the order of groups and members. Exact data only: what is
 * approximate, or whose log-probabilities are of another kind than raw, and where the run says so the groups without
 * signal, are left out unless `all` is asked for, and
 * `countExported` says how much that is. A trajectory that has not ended is not in it.
 */
import { countExport, type ExportCursor, type ExportRow, readExportPage } from '../../../db/queries/export';
import { getRunSettings, type RunSettings } from '../../../db/queries/runs';
import type { TrajectoryFacts } from '../../core/batch/line';
import { batchLine, serializeBatchLine } from '../../core/batch/serialize';
import type { FinalTrajectoryStatus, JsonObject } from '../../core/vocabulary';
import { readRunOptions } from '../../rollout/run-options';
import { requireRole, type ServiceContext } from '../context';
import { parseInput } from '../inputs';
import { exportRunInput } from './run-inputs';

/** Sequences read at once: bounds the memory, whatever the run's size. */
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
  const { dropNoSignal } = readRunOptions(run.options);
  let after: ExportCursor | null = null;
  for (;;) {
    const page: Awaited<ReturnType<typeof readExportPage>> = await readExportPage(db, { runId, after, limit: PAGE });
    if (page.rows.length === 0) return;
    for (const row of page.rows) {
      const { sequence } = row;
      if (!sequence || (!all && (sequence.approximate || sequence.logprobKind !== 'raw'))) continue;
      if (!all && dropNoSignal && row.hasSignal === false) continue;
      const line = batchLine(sequence, factsOf(run, row), sequence);
      yield `${serializeBatchLine({ ...line, extra: extrasOf(sequence) })}\n`;
    }
    after = page.next;
  }
}

/** Beyond the batch's own keys: entropy where it was stored, null where a token has none. */
function extrasOf({ entropy }: { entropy: Float32Array | null }): JsonObject {
  return entropy ? { entropy: Array.from(entropy, (value) => (Number.isFinite(value) ? value : null)) } : {};
}

function factsOf(run: RunSettings, { groupId, taskId, trajectory }: ExportRow): TrajectoryFacts {
  return {
    runId: run.runId,
    groupId,
    taskId,
    trajectoryId: trajectory.id,
    skill: run.skillName,
    skillVersion: run.skillVersion,
    backend: run.backendName,
    // Only ended trajectories are read.
    status: trajectory.status as FinalTrajectoryStatus,
    stepRewards: trajectory.stepRewards,
    reward: trajectory.reward,
    rewardComponents: trajectory.rewardComponents,
    stateKeys: trajectory.stateKeys,
    advantages: trajectory.advantages,
    humanEdited: trajectory.humanEdited,
  };
}

/** What an export of this run holds and leaves out, in numbers. */
export async function countExported({
  ctx,
  input,
}: {
  ctx: ServiceContext;
  input: { runId: string };
}): Promise<{ sequences: number; approximate: number; notRaw: number; withoutSignal: number; unfinished: number }> {
  requireRole(ctx, 'viewer', 'Exporting a run');
  const { runId } = parseInput(exportRunInput, input);
  const run = await getRunSettings(ctx.database.db, runId);
  const counts = await countExport(ctx.database.db, runId);
  return readRunOptions(run.options).dropNoSignal ? counts : { ...counts, withoutSignal: 0 };
}
