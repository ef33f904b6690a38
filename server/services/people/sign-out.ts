/** Ends the caller's own sign-in, on the server too: a copied cookie is worth nothing afterwards. */
import { deleteSignIn } from '../../../db/queries/sign-ins';
import { auditEntry } from '../../observability/audit';
import { requireRole, type ServiceContext } from '../context';

export async function signOut({ ctx, input }: { ctx: ServiceContext; input: { signInId: string } }): Promise<void> {
  requireRole(ctx, 'viewer', 'Signing out');
  await ctx.database.db.transaction(async (tx) => {
    const owner = await deleteSignIn(tx, input.signInId);
    if (owner === null) return;
    await auditEntry(tx, ctx, {
      actionType: 'sign_out',
      resource: `user://${ctx.actor.name}`,
      operation: 'sign_out',
      status: 'success',
    });
  });
}
