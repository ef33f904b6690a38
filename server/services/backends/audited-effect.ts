/** An effect outside the database, with an entry in the audit log before it and one about how it ended. */
import type { Tx } from '../../../db/connection';
import { isStudioError } from '../../core/errors';
import { auditEntry } from '../../observability/audit';
import type { ServiceContext } from '../context';

export interface Effect {
  run(): Promise<void>;
  /** What is written in the transactions of the entries: before it begins, when it has succeeded, when it has failed. */
  begins?(tx: Tx): Promise<void>;
  succeeds?(tx: Tx): Promise<void>;
  fails?(tx: Tx, error: unknown): Promise<void>;
}

/** The first entry is durable before the effect begins. Throws what the effect throws. */
export async function auditedEffect(
  ctx: ServiceContext,
  about: { actionType: string; resource: string; operation: string },
  { run, begins, succeeds, fails }: Effect,
): Promise<void> {
  const { db } = ctx.database;
  await db.transaction(async (tx) => {
    await begins?.(tx);
    await auditEntry(tx, ctx, { ...about, status: 'started' });
  });
  try {
    await run();
  } catch (error) {
    await db.transaction(async (tx) => {
      await fails?.(tx, error);
      const details = { error: isStudioError(error) ? error.message : 'an error nobody foresaw' };
      await auditEntry(tx, ctx, { ...about, status: 'error', details });
    });
    throw error;
  }
  await db.transaction(async (tx) => {
    await succeeds?.(tx);
    await auditEntry(tx, ctx, { ...about, status: 'success' });
  });
}
