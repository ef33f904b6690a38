/** People and their sign-ins. Secrets come here as SHA-256 only. */
import { and, asc, eq, gt, isNull, lte } from 'drizzle-orm';
import type { Role } from '../../server/core/vocabulary';
import type { Queryable } from '../connection';
import { signIns, users } from '../schema/people';

export type SignInKind = 'one_time' | 'browser' | 'program';
export interface SignInPerson {
  signInId: string;
  expiresAtMs: number;
  userId: string;
  name: string;
  role: Role;
}

/** Who holds a secret that is still good; null for unknown, over, or of another kind. */
export async function findSignIn(
  db: Queryable,
  secretHash: string,
  kind: SignInKind,
  nowMs: number,
): Promise<SignInPerson | null> {
  const [row] = await db
    .select({
      signInId: signIns.id,
      expiresAtMs: signIns.expiresAtMs,
      userId: users.id,
      name: users.name,
      role: users.role,
    })
    .from(signIns)
    .innerJoin(users, eq(users.id, signIns.userId))
    .where(and(eq(signIns.secretHash, secretHash), eq(signIns.kind, kind), gt(signIns.expiresAtMs, nowMs)));
  return row ?? null;
}

export async function insertSignIn(
  db: Queryable,
  row: { id: string; userId: string; kind: SignInKind; secretHash: string; createdAtMs: number; expiresAtMs: number },
): Promise<void> {
  await db.insert(signIns).values(row);
}

/** Compare and set: of two who come with one token, one gets its owner's id and the other null. */
export async function consumeOneTimeToken(db: Queryable, secretHash: string, nowMs: number): Promise<string | null> {
  const [row] = await db
    .update(signIns)
    .set({ usedAtMs: nowMs })
    .where(
      and(
        eq(signIns.secretHash, secretHash),
        eq(signIns.kind, 'one_time'),
        isNull(signIns.usedAtMs),
        gt(signIns.expiresAtMs, nowMs),
      ),
    )
    .returning({ userId: signIns.userId });
  return row?.userId ?? null;
}

/** Returns whose it was; null when there is none. */
export async function deleteSignIn(db: Queryable, signInId: string): Promise<string | null> {
  const [row] = await db.delete(signIns).where(eq(signIns.id, signInId)).returning({ userId: signIns.userId });
  return row?.userId ?? null;
}

export async function deleteSignInByHash(db: Queryable, secretHash: string): Promise<void> {
  await db.delete(signIns).where(eq(signIns.secretHash, secretHash));
}

export async function deleteExpiredSignIns(db: Queryable, nowMs: number): Promise<void> {
  await db.delete(signIns).where(lte(signIns.expiresAtMs, nowMs));
}

export async function findUser(
  db: Queryable,
  userId: string,
): Promise<{ userId: string; name: string; role: Role } | null> {
  const [row] = await db
    .select({ userId: users.id, name: users.name, role: users.role })
    .from(users)
    .where(eq(users.id, userId));
  return row ?? null;
}

/** The admin who has been here longest; null in a new database. */
export async function findFirstAdmin(db: Queryable): Promise<{ userId: string; name: string } | null> {
  const [row] = await db
    .select({ userId: users.id, name: users.name })
    .from(users)
    .where(eq(users.role, 'admin'))
    .orderBy(asc(users.createdAtMs), asc(users.id))
    .limit(1);
  return row ?? null;
}

/** False when the name is taken. */
export async function insertUser(
  db: Queryable,
  row: { id: string; name: string; role: Role; createdAtMs: number },
): Promise<boolean> {
  const added = await db.insert(users).values(row).onConflictDoNothing().returning({ id: users.id });
  return added.length > 0;
}
