/** A new database has nobody in it: makes the first admin, whom the printed address signs in. */
import { deleteExpiredSignIns, findFirstAdmin, insertUser } from '../../../db/queries/sign-ins';
import { Conflict } from '../../core/errors';
import { auditEntry } from '../../observability/audit';
import { requireRole, type ServiceContext } from '../context';

const FIRST_ADMIN = 'admin';

/** The admin who has been here longest. Safe to call at every start and by several processes at once. */
export async function ensureFirstAdmin({ ctx }: { ctx: ServiceContext }): Promise<{ userId: string; name: string }> {
  requireRole(ctx, 'admin', 'Making the first admin');
  return ctx.database.db.transaction(async (tx) => {
    await deleteExpiredSignIns(tx, ctx.ambient.now());
    const known = await findFirstAdmin(tx);
    if (known) return known;
    const id = ctx.ambient.newId('usr');
    const added = await insertUser(tx, { id, name: FIRST_ADMIN, role: 'admin', createdAtMs: ctx.ambient.now() });
    if (added) {
      await auditEntry(tx, ctx, {
        actionType: 'add_user',
        resource: `user://${FIRST_ADMIN}`,
        operation: 'create',
        status: 'success',
        details: { role: 'admin' },
      });
      return { userId: id, name: FIRST_ADMIN };
    }
    const other = await findFirstAdmin(tx);
    if (!other)
      throw new Conflict(`Someone named ${FIRST_ADMIN} is here but is no admin. Give one person the role admin.`);
    return other;
  });
}
