/** Makes the token of a sign-in address: good for one sign-in, shown once, kept as a hash. */
import { findUser, insertSignIn } from '../../../db/queries/sign-ins';
import { Invalid, NotFound } from '../../core/errors';
import { auditEntry } from '../../observability/audit';
import { requireRole, type ServiceContext } from '../context';
import { parseInput } from '../inputs';
import { makeOneTimeTokenInput } from './people-inputs';
import { hashSecret, newSecret } from './secrets';

export const ONE_TIME_TOKEN_MS = 24 * 3600_000;

export async function makeOneTimeToken({
  ctx,
  input,
}: {
  ctx: ServiceContext;
  input: { userId?: string };
}): Promise<{ token: string; expiresAtMs: number }> {
  requireRole(ctx, 'admin', 'Making a sign-in address');
  const { userId = ctx.actor.userId } = parseInput(makeOneTimeTokenInput, input);
  if (userId === null) throw new Invalid('Say for whom the sign-in address is.');
  const token = newSecret();
  const createdAtMs = ctx.ambient.now();
  const expiresAtMs = createdAtMs + ONE_TIME_TOKEN_MS;
  await ctx.database.db.transaction(async (tx) => {
    const user = await findUser(tx, userId);
    if (!user) throw new NotFound(`There is no person ${userId}.`);
    const id = ctx.ambient.newId('sgn');
    await insertSignIn(tx, { id, userId, kind: 'one_time', secretHash: hashSecret(token), createdAtMs, expiresAtMs });
    await auditEntry(tx, ctx, {
      actionType: 'make_one_time_token',
      resource: `user://${user.name}`,
      operation: 'create',
      status: 'success',
      details: { expiresAtMs },
    });
  });
  return { token, expiresAtMs };
}
