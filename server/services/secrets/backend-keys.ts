/** The keys of a backend's servers, in clear, for as long as someone speaks to them. Nothing here is logged or returned. */
import type { Queryable } from '../../../db/connection';
import { CONTROL, listBackendKeys, type SealedKey } from '../../../db/queries/backend-keys';
import { Unavailable } from '../../core/errors';
import { OTHER_KEY, type SecretBox } from './secret-box';

/** Opened when asked for. Throw Unavailable when the key cannot be opened: it was stored under another secret key. */
export interface BackendKeys {
  /** Sent to the server at this address: its own key, else the one for all, else null. */
  keyFor(url: string): string | null;
  /** Sent to none; signs requests for new weights. */
  controlKey(): string | null;
}

/** Seals the key so that it opens for this backend and this address (or as its control key) alone. */
export function sealBackendKey(
  secrets: SecretBox,
  { backendId, url, key }: { backendId: string; url: string | null; key: string },
): Uint8Array {
  return secrets.seal(key, boundTo(backendId, url));
}

export async function readBackendKeys(q: Queryable, secrets: SecretBox, backendId: string): Promise<BackendKeys> {
  const stored = new Map((await listBackendKeys(q, backendId)).map((sealed) => [sealed.url, sealed]));
  const open = (url: string | null): string | null => {
    const sealed = stored.get(url);
    return sealed ? openKey(secrets, backendId, sealed) : null;
  };
  return { keyFor: (url) => open(url) ?? open(null), controlKey: () => open(CONTROL) };
}

/** Which addresses have a key of their own, which other keys there are, and why they cannot be read, if so. */
export function describeKeys(
  secrets: SecretBox,
  backendId: string,
  keys: readonly SealedKey[],
): { hasKey: boolean; hasControlKey: boolean; own: ReadonlySet<string>; problem: string | null } {
  let problem: string | null = null;
  for (const sealed of keys)
    try {
      openKey(secrets, backendId, sealed);
    } catch (error) {
      problem ??= error instanceof Error ? error.message : OTHER_KEY;
    }
  const places = new Set(keys.map(({ url }) => url));
  const own = new Set([...places].filter((url) => url !== null && url !== CONTROL) as string[]);
  return { hasKey: places.has(null), hasControlKey: places.has(CONTROL), own, problem };
}

function openKey(secrets: SecretBox, backendId: string, { url, ciphertext }: SealedKey): string {
  try {
    return secrets.open(ciphertext, boundTo(backendId, url));
  } catch {
    const which = url === CONTROL ? 'control key' : `key of ${url ?? 'the servers'}`;
    throw new Unavailable(`The stored ${which} cannot be read: ${OTHER_KEY}.`);
  }
}

const boundTo = (backendId: string, url: string | null): string => `${backendId} ${url ?? '*'}`;
