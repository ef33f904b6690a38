/**
 * Makes a backend known, or changes what it consists of: a model file, or the addresses of servers, which are asked first.
 * Settings hold no secret; a key is sealed and stored on its own.
 */
import type { z } from 'zod';
import { listBackends } from '../../../db/queries/catalog';
import { Invalid } from '../../core/errors';
import type { BackendCheck, RemoteKind } from '../../core/inference';
import { requireRole, type ServiceContext } from '../context';
import { parseInput } from '../inputs';
import { type BackendKeys, readBackendKeys } from '../secrets/backend-keys';
import { addBackendInput, type RemoteBackendInput } from './backend-inputs';
import { remoteSettingsOf, storedSettings, urlsOf } from './backend-settings';
import { checkServers, type KeysOfServer, refuseControlKey, requireOneBackend } from './check-servers';
import { saveBackend } from './save-backend';

/** `changed` is false when everything is as it was. Throws Invalid with what the servers lack. */
export async function addBackend({
  ctx,
  input,
}: {
  ctx: ServiceContext;
  input: z.input<typeof addBackendInput>;
}): Promise<{ name: string; changed: boolean; checks: BackendCheck[] }> {
  requireRole(ctx, 'operator', 'Adding a backend');
  const wanted = parseInput(addBackendInput, input);
  const { name, isDefault } = wanted;
  if (wanted.kind === 'embedded') {
    const changed = await saveBackend(ctx, { name, kind: wanted.kind, settings: wanted.settings, isDefault });
    return { name, changed, checks: [] };
  }
  const { urls, tokenizer, contextLength, maxInFlight, tokensInFlight, key, controlKey, unchecked } = wanted;
  refuseControlKey(controlKey, name, wanted.kind);
  const checks = unchecked ? [] : await checkWanted(ctx, wanted);
  const kind = unchecked ? requireKind(wanted) : requireOneBackend(name, checks).kind;
  refuseControlKey(controlKey, name, kind);
  // Kept also where it was the only one: a server that takes new weights may afterwards be called after their folder.
  const model = wanted.model ?? checks[0]?.capabilities?.modelName;
  const given = { model, tokenizer, contextLength, maxInFlight, tokensInFlight, check: checks[0] };
  const settings = storedSettings({ replicas: urls.map((url) => ({ url })), ...given });
  const newKey = key === undefined ? undefined : { key, url: null };
  const changed = await saveBackend(ctx, { name, kind, settings, isDefault, key: newKey, controlKey });
  return { name, changed, checks };
}

async function checkWanted(ctx: ServiceContext, wanted: RemoteBackendInput): Promise<BackendCheck[]> {
  const { kind, urls, model = null, tokenizer = null, contextLength = null, key, controlKey } = wanted;
  const stored = await storedKeys(ctx, wanted.name);
  const keysFor = (url: string): KeysOfServer => ({
    key: key ?? stored(url)?.keyFor(url) ?? null,
    controlKey: controlKey ?? stored(url)?.controlKey() ?? null,
  });
  return checkServers(ctx.process, { backend: null, kind, urls, model, tokenizer, contextLength }, keysFor);
}

/** A stored key goes to no server it was not given for, and signs nothing for it. */
async function storedKeys(ctx: ServiceContext, name: string): Promise<(url: string) => BackendKeys | null> {
  const known = (await listBackends(ctx.database.db)).find((row) => row.name === name);
  if (!known) return () => null;
  const keys = await readBackendKeys(ctx.database.db, ctx.process.secrets, known.id);
  const urls = new Set(urlsOf(remoteSettingsOf(known)));
  return (url) => (urls.has(url) ? keys : null);
}

function requireKind({ name, kind }: RemoteBackendInput): RemoteKind {
  if (kind === 'auto') throw new Invalid(`Say which kind of server ${name} is: without the check nobody finds out.`);
  return kind;
}
