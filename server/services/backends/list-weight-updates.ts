/** The weights a backend was given, newest first. */
import type { z } from 'zod';
import { getBackend } from '../../../db/queries/catalog';
import { listWeightUpdates as queryUpdates } from '../../../db/queries/weight-updates';
import type { Page, WeightUpdateView } from '../../core/views';
import { requireRole, type ServiceContext } from '../context';
import { parseInput } from '../inputs';
import { listWeightUpdatesInput } from './backend-inputs';

/** Throws NotFound. */
export async function listWeightUpdates({
  ctx,
  input,
}: {
  ctx: ServiceContext;
  input: z.input<typeof listWeightUpdatesInput>;
}): Promise<Page<WeightUpdateView>> {
  requireRole(ctx, 'viewer', 'Listing weight updates');
  const { name, cursor, limit } = parseInput(listWeightUpdatesInput, input);
  const { id } = await getBackend(ctx.database.db, name);
  return queryUpdates(ctx.database.db, { backendId: id, cursor, limit, nowMs: ctx.ambient.now() });
}
