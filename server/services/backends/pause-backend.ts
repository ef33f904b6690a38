/**
 * Makes a backend take no more requests: they wait until it is resumed, also when the studio is started again meanwhile.
 * Generations under way end first.
 */
import type { z } from 'zod';
import { getBackend, setBackendPaused } from '../../../db/queries/catalog';
import { Cancelled, Invalid } from '../../core/errors';
import { requireRole, type ServiceContext } from '../context';
import { parseInput } from '../inputs';
import { auditedEffect } from './audited-effect';
import { backendNameInput } from './backend-inputs';

/** Throws NotFound, and Invalid where it cannot be paused. */
export async function pauseBackend({
  ctx,
  input,
}: {
  ctx: ServiceContext;
  input: z.input<typeof backendNameInput>;
}): Promise<{ name: string }> {
  requireRole(ctx, 'operator', 'Pausing a backend');
  const { name } = parseInput(backendNameInput, input);
  const { id: backendId, paused: before } = await getBackend(ctx.database.db, name);
  const backends = await ctx.process.backendsOf(name);
  if (!backends[0].pause) throw new Invalid(`The backend ${name} cannot be paused.`);
  const about = { actionType: 'pause_backend', resource: `backend://${name}`, operation: 'pause' };
  await auditedEffect(ctx, about, {
    // A studio that ends in the middle of it may leave servers paused.
    begins: (tx) => setBackendPaused(tx, { backendId, paused: true }),
    run: async () => void (await Promise.all(backends.map((backend) => backend.pause?.()))),
    succeeds: (tx) => setBackendPaused(tx, { backendId, paused: true }),
    fails: async (tx, error) => {
      // Resumed before it had come to rest: then that says how it stands.
      if (!(error instanceof Cancelled)) await setBackendPaused(tx, { backendId, paused: before });
    },
  });
  return { name };
}
