/** Who comes with a cookie or a bearer token. The edges ask this before anything else. */
import { findSignIn } from '../../../db/queries/sign-ins';
import type { Actor, ServiceContext } from '../context';
import { secretSchema } from './people-inputs';
import { hashSecret } from './secrets';

export interface SignedIn {
  actor: Actor;
  signInId: string;
  expiresAtMs: number;
}

/** Null when the secret is not good (any more). */
export async function actorOfSecret(request: {
  services: Pick<ServiceContext, 'database' | 'ambient'>;
  secret: string;
  kind: 'browser' | 'program';
  ipAddress: string | null;
}): Promise<SignedIn | null> {
  const { services, kind, ipAddress } = request;
  const secret = secretSchema.safeParse(request.secret);
  if (!secret.success) return null;
  const found = await findSignIn(services.database.db, hashSecret(secret.data), kind, services.ambient.now());
  if (!found) return null;
  const { signInId, expiresAtMs, userId, name, role } = found;
  return { actor: { userId, name, role, ipAddress }, signInId, expiresAtMs };
}
