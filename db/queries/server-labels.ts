/** The weights of servers that keep no label themselves, as they were given them. */
import { and, eq } from 'drizzle-orm';
import type { Queryable } from '../connection';
import { serverLabels } from '../schema';

/** In place of what the server had before. */
export async function keepServerLabel(
  q: Queryable,
  label: { backendId: string; url: string; fingerprint: string; version: string },
): Promise<void> {
  const { fingerprint, version } = label;
  await q
    .insert(serverLabels)
    .values(label)
    .onConflictDoUpdate({ target: [serverLabels.backendId, serverLabels.url], set: { fingerprint, version } });
}

/** Null: it was given none since it was started. */
export async function serverLabel(
  q: Queryable,
  { backendId, url, fingerprint }: { backendId: string; url: string; fingerprint: string },
): Promise<string | null> {
  const [row] = await q
    .select({ version: serverLabels.version })
    .from(serverLabels)
    .where(
      and(eq(serverLabels.backendId, backendId), eq(serverLabels.url, url), eq(serverLabels.fingerprint, fingerprint)),
    );
  return row?.version ?? null;
}
