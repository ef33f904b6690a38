/** The bytes of token ids that stand nowhere in the log: the alternatives a scoring model reported. */
import type { z } from 'zod';
import { getTrajectory } from '../../../db/queries/trajectory-views';
import { isStudioError } from '../../core/errors';
import { alternativesSource } from '../../core/tokens/alternatives-source';
import { requireRole, type ServiceContext } from '../context';
import { parseInput } from '../inputs';
import { tokenTextsInput } from './trajectory-inputs';

/**
 * One entry an id, by the model whose alternatives are kept; null where none that could tell answers. Throws NotFound for
 * an unknown trajectory.
 */
export async function tokenTexts({
  ctx,
  input,
}: {
  ctx: ServiceContext;
  input: z.input<typeof tokenTextsInput>;
}): Promise<(Uint8Array | null)[]> {
  requireRole(ctx, 'viewer', 'Reading tokens');
  const { trajectoryId, ids } = parseInput(tokenTextsInput, input);
  const { sequences, backendName } = await getTrajectory(ctx.database.db, trajectoryId);
  const scorings = sequences.flatMap(({ policyScoredBy, refScoredBy }) => [policyScoredBy, refScoredBy]);
  const source = alternativesSource(scorings);
  try {
    const backend = await ctx.process.backendLive(source?.backend ?? backendName);
    const decoded = await backend.decode?.(Int32Array.from(ids));
    if (!decoded) return ids.map(() => null);
    const { bytes, byteEnds } = decoded;
    return ids.map((_, k) => bytes.slice(k === 0 ? 0 : byteEnds[k - 1], byteEnds[k]));
  } catch (error) {
    if (!isStudioError(error)) throw error;
    return ids.map(() => null);
  }
}
