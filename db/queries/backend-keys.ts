/** The sealed keys of a backend's servers. Only sealed bytes pass here. */
import { and, eq, isNull, notInArray } from 'drizzle-orm';
import type { Queryable, Tx } from '../connection';
import { backendKeys } from '../schema';

/** Stands where an address would, and can be none: the key that signs requests for new weights, the same for all replicas. */
export const CONTROL = 'control';

export interface SealedKey {
  /** Null: for all replicas that have none of their own. CONTROL: sent to none, signs for all. */
  url: string | null;
  ciphertext: Uint8Array;
}

export async function listBackendKeys(q: Queryable, backendId: string): Promise<SealedKey[]> {
  return await q
    .select({ url: backendKeys.url, ciphertext: backendKeys.ciphertext })
    .from(backendKeys)
    .where(eq(backendKeys.backendId, backendId));
}

/** In place of the one that is there for the same replica. */
export async function saveBackendKey(
  tx: Tx,
  input: { backendId: string; url: string | null; ciphertext: Uint8Array; nowMs: number },
): Promise<void> {
  const { backendId, url, ciphertext, nowMs } = input;
  await tx
    .insert(backendKeys)
    .values({ backendId, url, ciphertext, createdAtMs: nowMs })
    .onConflictDoUpdate({
      target: [backendKeys.backendId, backendKeys.url],
      set: { ciphertext, createdAtMs: nowMs },
    });
}

export async function removeBackendKey(tx: Tx, input: { backendId: string; url: string | null }): Promise<boolean> {
  const rows = await tx
    .delete(backendKeys)
    .where(
      and(
        eq(backendKeys.backendId, input.backendId),
        input.url === null ? isNull(backendKeys.url) : eq(backendKeys.url, input.url),
      ),
    )
    .returning({ url: backendKeys.url });
  return rows.length > 0;
}

/** Forgets the keys of replicas that are no more; the key for all and the control key stay. */
export async function keepKeysOf(tx: Tx, input: { backendId: string; urls: readonly string[] }): Promise<void> {
  // A null address is in no list, so the key for all is not touched.
  await tx
    .delete(backendKeys)
    .where(and(eq(backendKeys.backendId, input.backendId), notInArray(backendKeys.url, [CONTROL, ...input.urls])));
}
