/** Writes a backend, its keys and the audit entry in one transaction, for the verbs that add and change one. */
import {
  CONTROL,
  keepKeysOf,
  listBackendKeys,
  removeBackendKey,
  saveBackendKey,
} from '../../../db/queries/backend-keys';
import { listBackends, saveBackend as writeBackend } from '../../../db/queries/catalog';
import { Conflict, Invalid } from '../../core/errors';
import type { BackendKind } from '../../core/inference';
import type { JsonObject } from '../../core/vocabulary';
import { auditEntry } from '../../observability/audit';
import type { ServiceContext } from '../context';
import { sealBackendKey } from '../secrets/backend-keys';
import { remoteSettingsOf, sameSettings, urlsOf, withoutCheck } from './backend-settings';

export interface BackendToSave {
  name: string;
  kind: BackendKind;
  settings: JsonObject;
  /** Left as it is when absent. */
  isDefault?: boolean;
  /** Absent: keys stay as they are. `key` null forgets it; `url` null means all replicas. */
  key?: { key: string | null; url: string | null };
  /** Absent: stays as it is. Null forgets it. */
  controlKey?: string | null;
  /** The revision this was made from; a backend that was changed since is a Conflict. Absent: whatever is there. */
  fromRevision?: number;
}

/** Returns whether anything changed. A new check alone is stored without a word in the audit log. */
export async function saveBackend(ctx: ServiceContext, wanted: BackendToSave): Promise<boolean> {
  const { name, kind, settings, key, controlKey } = wanted;
  const { ambient, database } = ctx;
  return database.db.transaction(async (tx) => {
    const known = (await listBackends(tx)).find((row) => row.name === name);
    if (wanted.fromRevision !== undefined && known?.revision !== wanted.fromRevision)
      throw new Conflict(`The backend ${name} was changed by someone else at this moment. Look at it and try again.`);
    const urls = urlsOf(remoteSettingsOf({ kind, settings }));
    const stored = known ? await listBackendKeys(tx, known.id) : [];
    const before = new Set(known ? urlsOf(remoteSettingsOf(known)) : []);
    const gone = [...before].find((url) => !urls.includes(url));
    if (known?.paused && gone !== undefined)
      throw new Conflict(
        `The backend ${name} is paused, and ${gone} would stay so without anybody to resume it. Resume the backend, then take the server out.`,
      );
    const added = urls.filter((url) => !before.has(url));
    const foreign = added.find((url) => url !== key?.url);
    if (foreign !== undefined && key?.url !== null && stored.some(({ url }) => url === null))
      throw new Invalid(
        `The stored key of ${name} goes only to the servers it was given for, and ${foreign} is new. Give the key again, or forget it.`,
      );
    // A signature can be sent on by whoever got it.
    const keepsControlKey = controlKey === undefined && kind === 'tensorrt-llm';
    if (added.length > 0 && keepsControlKey && stored.some(({ url }) => url === CONTROL))
      throw new Invalid(
        `The stored control key of ${name} signs only for the servers it was given for, and ${added[0]} is new. Give the control key again, or forget it.`,
      );
    const isDefault = wanted.isDefault ?? known?.isDefault ?? false;
    const reopen =
      key !== undefined || controlKey !== undefined || known?.kind !== kind || !sameSettings(known.settings, settings);
    const changed = reopen || known.isDefault !== isDefault;
    if (!changed && settings.check === undefined) return false;
    const nowMs = ambient.now();
    const row = { id: ambient.newId('bck'), name, kind, settings, isDefault, reopen, nowMs };
    const { backendId } = await writeBackend(tx, row);
    // A key for all replicas takes the place of those of single ones.
    await keepKeysOf(tx, { backendId, urls: key?.url === null ? [] : urls });
    if (key?.key === null) await removeBackendKey(tx, { backendId, url: key.url });
    else if (kind === 'embedded') await removeBackendKey(tx, { backendId, url: null });
    else if (key) {
      const ciphertext = sealBackendKey(ctx.process.secrets, { backendId, url: key.url, key: key.key });
      await saveBackendKey(tx, { backendId, url: key.url, ciphertext, nowMs });
    }
    if (controlKey) {
      const ciphertext = sealBackendKey(ctx.process.secrets, { backendId, url: CONTROL, key: controlKey });
      await saveBackendKey(tx, { backendId, url: CONTROL, ciphertext, nowMs });
    } else if (!keepsControlKey) await removeBackendKey(tx, { backendId, url: CONTROL });
    if (!changed) return false;
    await auditEntry(tx, ctx, {
      actionType: known ? 'change_backend' : 'add_backend',
      resource: `backend://${name}`,
      operation: 'save',
      status: 'success',
      details: {
        kind,
        settings: withoutCheck(settings),
        isDefault,
        ...(key === undefined ? {} : { key: key.key === null ? 'forgotten' : 'given' }),
        ...(controlKey === undefined ? {} : { controlKey: controlKey === null ? 'forgotten' : 'given' }),
      },
    });
    return true;
  });
}
