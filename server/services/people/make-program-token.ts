/** Makes the bearer token of a program: kept as a hash, given up with `revokeProgramToken`. */
import { deleteSignInByHash, insertSignIn } from '../../../db/queries/sign-ins';
import { auditEntry } from '../../observability/audit';
import { requireRole, type ServiceContext } from '../context';
import { hashSecret, newSecret } from './secrets';

export const PROGRAM_TOKEN_MS = 365 * 24 * 3600_000;

export async function makeProgramToken({
  ctx,
  input,
}: {
  ctx: ServiceContext;
  input: { userId: string; purpose: string };
}): Promise<{ token: string; expiresAtMs: number }> {
  requireRole(ctx, 'admin', 'Making a token for a program');
  const token = newSecret();
  const createdAtMs = ctx.ambient.now();
  const expiresAtMs = createdAtMs + PROGRAM_TOKEN_MS;
  const { userId, purpose } = input;
  await ctx.database.db.transaction(async (tx) => {
    const id = ctx.ambient.newId('sgn');
    await insertSignIn(tx, { id, userId, kind: 'program', secretHash: hashSecret(token), createdAtMs, expiresAtMs });
    await auditEntry(tx, ctx, {
      actionType: 'make_program_token',
      resource: `user://${userId}`,
      operation: 'create',
      status: 'success',
      details: { purpose },
    });
  });
  return { token, expiresAtMs };
}

/** Nothing happens when it is gone already. */
export async function revokeProgramToken({
  ctx,
  input,
}: {
  ctx: ServiceContext;
  input: { token: string };
}): Promise<void> {
  requireRole(ctx, 'admin', 'Taking a token back');
  await deleteSignInByHash(ctx.database.db, hashSecret(input.token));
}
