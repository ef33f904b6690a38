/**
 * Lets a backend take requests again; those that waited go on. Its servers are told whatever is known of a pause: what
 * an update or another process left of one ends too.
 */
import type { z } from 'zod';
import { getBackend, setBackendPaused } from '../../../db/queries/catalog';
import { settleWeightUpdates } from '../../../db/queries/weight-updates';
import { Invalid } from '../../core/errors';
import { requireRole, type ServiceContext } from '../context';
import { parseInput } from '../inputs';
import { auditedEffect } from './audited-effect';
import { backendNameInput } from './backend-inputs';

/** Throws NotFound, and Invalid where it could not be paused. */
export async function resumeBackend({
  ctx,
  input,
}: {
  ctx: ServiceContext;
  input: z.input<typeof backendNameInput>;
}): Promise<{ name: string }> {
  requireRole(ctx, 'operator', 'Resuming a backend');
  const { name } = parseInput(backendNameInput, input);
  const { id: backendId } = await getBackend(ctx.database.db, name);
  const backends = await ctx.process.backendsOf(name);
  if (!backends[0].resume) throw new Invalid(`The backend ${name} cannot be paused and resumed.`);
  const about = { actionType: 'resume_backend', resource: `backend://${name}`, operation: 'resume' };
  await auditedEffect(ctx, about, {
    run: async () => void (await Promise.all(backends.map((backend) => backend.resume?.()))),
    // Only now: a studio that ends before opens it paused again, and no server waits for anybody.
    succeeds: async (tx) => {
      await setBackendPaused(tx, { backendId, paused: false });
      await settleWeightUpdates(tx, { backendId, nowMs: ctx.ambient.now() });
    },
  });
  return { name };
}
