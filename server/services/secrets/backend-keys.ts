/** The keys of a backend's servers, in clear, for as long as someone speaks to them. Nothing here is logged or returned. */
import type { Queryable } from '../../../db/connection';
import { listBackendKeys, type SealedKey } from '../../../db/queries/backend-keys';
import { Unavailable } from '../../core/errors';
import { OTHER_KEY, type SecretBox } from './secret-box';

/** Seals the key so that it opens for this backend and this address alone. */
export function sealBackendKey(
  secrets: SecretBox,
  { backendId, url, key }: { backendId: string; url: string | null; key: string },
): Uint8Array {
  return secrets.seal(key, boundTo(backendId, url));
}

/**
 * The key for each address: its own, else the one for all, else null. Throws Unavailable when one cannot be opened: it was
 * stored under another secret key.
 */
export async function readBackendKeys(
  q: Queryable,
  secrets: SecretBox,
  backendId: string,
): Promise<(url: string) => string | null> {
  const opened = new Map(
    (await listBackendKeys(q, backendId)).map((sealed) => [sealed.url, openKey(secrets, backendId, sealed)]),
  );
  return (url) => opened.get(url) ?? opened.get(null) ?? null;
}

/** Which addresses have a key of their own, whether there is one for all, and why they cannot be read, if so. */
export function describeKeys(
  secrets: SecretBox,
  backendId: string,
  keys: readonly SealedKey[],
): { hasKey: boolean; own: ReadonlySet<string>; problem: string | null } {
  let problem: string | null = null;
  for (const sealed of keys)
    try {
      openKey(secrets, backendId, sealed);
    } catch (error) {
      problem ??= error instanceof Error ? error.message : OTHER_KEY;
    }
  const own = new Set(keys.map(({ url }) => url).filter((url): url is string => url !== null));
  return { hasKey: keys.some(({ url }) => url === null), own, problem };
}

function openKey(secrets: SecretBox, backendId: string, { url, ciphertext }: SealedKey): string {
  try {
    return secrets.open(ciphertext, boundTo(backendId, url));
  } catch {
    throw new Unavailable(
      `The stored key ${url === null ? 'of the servers' : `of ${url}`} cannot be read: ${OTHER_KEY}.`,
    );
  }
}

const boundTo = (backendId: string, url: string | null): string => `${backendId} ${url ?? '*'}`;
