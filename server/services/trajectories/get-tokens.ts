/** One token sequence of a trajectory as bytes for the browser: final ones as stored, running ones as far as they are. */
import type { z } from 'zod';
import { readEvents } from '../../../db/queries/events';
import { getTokenSequence, getTrajectory } from '../../../db/queries/trajectory-views';
import { NotFound } from '../../core/errors';
import { encodeTokens } from '../../core/tokens/wire';
import { requireRole, type ServiceContext } from '../context';
import { parseInput } from '../inputs';
import { foldSequences } from './fold-sequences';
import { tokensInput } from './trajectory-inputs';

/** `wire` is core/tokens/wire. Throws NotFound for an unknown trajectory or sequence. */
export async function getTokens({
  ctx,
  input,
}: {
  ctx: ServiceContext;
  input: z.input<typeof tokensInput>;
}): Promise<{ wire: Uint8Array; final: boolean }> {
  requireRole(ctx, 'viewer', 'Reading tokens');
  const { trajectoryId, sequence } = parseInput(tokensInput, input);
  const { db } = ctx.database;
  const stored = await getTokenSequence(db, { trajectoryId, sequenceIndex: sequence });
  if (stored) return { wire: encodeTokens(stored), final: true };
  const trajectory = await getTrajectory(db, trajectoryId);
  const events = await readEvents(db, { sessionId: trajectory.sessionId });
  const running = foldSequences(events).find((one) => one.sequence.index === sequence);
  // Before the prompt is rendered there is a first sequence, and it is empty.
  if (!running && sequence > 0) throw new NotFound(`Trajectory ${trajectoryId} has no token sequence ${sequence}.`);
  return { wire: encodeTokens(running?.sequence ?? NO_TOKENS), final: false };
}

const NO_TOKENS = {
  ids: new Int32Array(0),
  logprobs: new Float32Array(0),
  mask: new Uint8Array(0),
  stepIndex: new Int32Array(0),
  segment: new Uint8Array(0),
  bytes: new Uint8Array(0),
  byteEnds: new Uint32Array(0),
};
