/** Makes a backend take no more requests: they wait until it is resumed. Generations under way end first. */
import type { z } from 'zod';
import { getBackend } from '../../../db/queries/catalog';
import { Invalid } from '../../core/errors';
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
  await getBackend(ctx.database.db, name);
  const backend = await ctx.process.backendLive(name);
  if (!backend.pause) throw new Invalid(`The backend ${name} cannot be paused.`);
  const about = { actionType: 'pause_backend', resource: `backend://${name}`, operation: 'pause' };
  await auditedEffect(ctx, about, async () => backend.pause?.());
  return { name };
}
