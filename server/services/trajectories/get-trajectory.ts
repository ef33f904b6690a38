/** One trajectory with its steps, finished or still running. */
import type { z } from 'zod';
import { readEventData } from '../../../db/queries/event-data';
import { readEvents } from '../../../db/queries/events';
import { getTrajectory as queryTrajectory } from '../../../db/queries/trajectory-views';
import type { TrajectoryDetail } from '../../core/views';
import { requireRole, type ServiceContext } from '../context';
import { parseInput } from '../inputs';
import { readSkillText } from '../skills/skill-text';
import { foldSequences } from './fold-sequences';
import { foldSteps, STEP_EVENTS } from './fold-steps';
import { asNumber, asNumbers, asObject, asText } from './read-json';
import { trajectoryIdInput } from './trajectory-inputs';

/** Throws NotFound. What the log holds beyond what was recorded at the end is folded from it, whatever it holds. */
export async function getTrajectory({
  ctx,
  input,
}: {
  ctx: ServiceContext;
  input: z.input<typeof trajectoryIdInput>;
}): Promise<TrajectoryDetail> {
  requireRole(ctx, 'viewer', 'Looking at a trajectory');
  const { trajectoryId } = parseInput(trajectoryIdInput, input);
  const { db } = ctx.database;
  const { sessionId, skillYaml, advantages, ...record } = await queryTrajectory(db, trajectoryId);
  // Tokens are read only where nothing has counted them yet.
  const running = record.final ? null : await readEvents(db, { sessionId });
  const events = running ?? (await readEventData(db, sessionId, [...STEP_EVENTS, 'task.completed']));
  const end = asObject([...events].reverse().find((event) => event.type === 'task.completed')?.data);
  const detail: TrajectoryDetail = {
    ...record,
    rewardWeights: readSkillText(skillYaml).rewardWeights,
    answer: end.answer === null || end.answer === undefined ? null : asObject(end.answer),
    endReason: record.endReason ?? (asText(end.reason) || null),
    reward: record.reward ?? asNumber(end.reward),
    rewardComponents: record.final ? record.rewardComponents : asNumbers(end.components),
    steps: foldSteps(events, advantages),
  };
  if (!running) return detail;
  const sequences = foldSequences(running).map(({ sequence, logprobKind, approximate }) => ({
    index: sequence.index,
    length: sequence.ids.length,
    generatedLength: sequence.mask.reduce((sum, masked) => sum + masked, 0),
    weightVersions: sequence.weightVersions,
    logprobKind,
    approximate,
    truncated: false,
    policyScoredBy: null,
    refScoredBy: null,
  }));
  return {
    ...detail,
    sequences,
    totalTokens: sequences.reduce((sum, one) => sum + one.length, 0),
    generatedTokens: sequences.reduce((sum, one) => sum + one.generatedLength, 0),
  };
}
