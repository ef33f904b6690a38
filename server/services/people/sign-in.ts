/** Turns a one-time token into a browser's sign-in. The one verb that is called by nobody: the token is the right. */
import { consumeOneTimeToken, findUser, insertSignIn } from '../../../db/queries/sign-ins';
import { Unauthenticated } from '../../core/errors';
import type { Viewer } from '../../core/views';
import { auditEntry } from '../../observability/audit';
import type { ServiceContext } from '../context';
import { parseInput } from '../inputs';
import { signInInput } from './people-inputs';
import { hashSecret, newSecret } from './secrets';

export const BROWSER_SIGN_IN_MS = 30 * 24 * 3600_000;

/** `secret` is the cookie's value. Throws Unauthenticated for a token that is unknown, used or over: which one is not said. */
export async function signIn(request: {
  services: Omit<ServiceContext, 'actor'>;
  input: unknown;
  ipAddress: string | null;
}): Promise<{ secret: string; expiresAtMs: number; viewer: Viewer }> {
  const { services, ipAddress } = request;
  const { ambient, database, logger } = services;
  const { token } = parseInput(signInInput, request.input);
  const nowMs = ambient.now();
  const secret = newSecret();
  const expiresAtMs = nowMs + BROWSER_SIGN_IN_MS;
  const viewer = await database.db.transaction(async (tx): Promise<Viewer | null> => {
    const userId = await consumeOneTimeToken(tx, hashSecret(token), nowMs);
    const user = userId === null ? null : await findUser(tx, userId);
    if (!user) return null;
    const id = ambient.newId('sgn');
    await insertSignIn(tx, {
      id,
      userId: user.userId,
      kind: 'browser',
      secretHash: hashSecret(secret),
      createdAtMs: nowMs,
      expiresAtMs,
    });
    await auditEntry(
      tx,
      { ambient, actor: { userId: user.userId, ipAddress } },
      { actionType: 'sign_in', resource: `user://${user.name}`, operation: 'sign_in', status: 'success' },
    );
    return user;
  });
  if (!viewer) {
    logger.warn({ ipAddress }, 'A sign-in was refused: the token is unknown, used or over');
    throw new Unauthenticated(
      'This sign-in address has been used or is over. Print a new one with the command "studio sign-in", or start the studio again.',
    );
  }
  return { secret, expiresAtMs, viewer };
}
