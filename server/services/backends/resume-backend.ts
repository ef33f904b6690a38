/** Lets a paused backend take requests again; those that waited go on. */
import type { z } from 'zod';
import { getBackend } from '../../../db/queries/catalog';
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
  await getBackend(ctx.database.db, name);
  const backend = await ctx.process.backendLive(name);
  if (!backend.resume) throw new Invalid(`The backend ${name} cannot be paused and resumed.`);
  const about = { actionType: 'resume_backend', resource: `backend://${name}`, operation: 'resume' };
  await auditedEffect(ctx, about, async () => backend.resume?.());
  return { name };
}
