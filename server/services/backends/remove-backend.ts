/** Forgets a backend that no run was made with, and its keys. */
import type { z } from 'zod';
import { removeBackend as deleteBackend, getBackend } from '../../../db/queries/catalog';
import { Conflict } from '../../core/errors';
import { auditEntry } from '../../observability/audit';
import { requireRole, type ServiceContext } from '../context';
import { parseInput } from '../inputs';
import { backendNameInput } from './backend-inputs';

/** Throws NotFound, and Conflict when a run was made with it or it is paused. */
export async function removeBackend({
  ctx,
  input,
}: {
  ctx: ServiceContext;
  input: z.input<typeof backendNameInput>;
}): Promise<{ name: string }> {
  requireRole(ctx, 'operator', 'Removing a backend');
  const { name } = parseInput(backendNameInput, input);
  await ctx.database.db.transaction(async (tx) => {
    const { id, kind, paused } = await getBackend(tx, name);
    if (paused)
      throw new Conflict(
        `The backend ${name} is paused, and its servers would stay so without anybody to resume them. Resume it, then remove it.`,
      );
    await deleteBackend(tx, { backendId: id, name });
    await auditEntry(tx, ctx, {
      actionType: 'remove_backend',
      resource: `backend://${name}`,
      operation: 'remove',
      status: 'success',
      details: { kind },
    });
  });
  return { name };
}
