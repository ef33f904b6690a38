/** An effect outside the database, with an entry in the audit log before it and one about how it ended. */
import { isStudioError } from '../../core/errors';
import { auditEntry } from '../../observability/audit';
import type { ServiceContext } from '../context';

/** The entry is durable before the effect begins. Throws what the effect throws. */
export async function auditedEffect(
  ctx: ServiceContext,
  about: { actionType: string; resource: string; operation: string },
  effect: () => Promise<void>,
): Promise<void> {
  await auditEntry(ctx.database.db, ctx, { ...about, status: 'started' });
  try {
    await effect();
  } catch (error) {
    const details = { error: isStudioError(error) ? error.message : 'an error nobody foresaw' };
    await auditEntry(ctx.database.db, ctx, { ...about, status: 'error', details });
    throw error;
  }
  await auditEntry(ctx.database.db, ctx, { ...about, status: 'success' });
}
