/** Takes servers into a backend or out of it, changes its limits or its keys, or makes it the default one. */
import type { z } from 'zod';
import { getBackend } from '../../../db/queries/catalog';
import { Invalid } from '../../core/errors';
import type { BackendCheck, RemoteKind } from '../../core/inference';
import type { RemoteSettings } from '../../core/inference-settings';
import { requireRole, type ServiceContext } from '../context';
import { parseInput } from '../inputs';
import { readBackendKeys } from '../secrets/backend-keys';
import { changeBackendInput } from './backend-inputs';
import { requireRemote, storedSettings, urlsOf } from './backend-settings';
import { checkServers, type KeysOfServer, refuseControlKey, requireOneBackend } from './check-servers';
import { type BackendToSave, saveBackend } from './save-backend';

/** Servers taken in are checked, and must serve what the others serve. Throws NotFound, Invalid, Conflict. */
export async function changeBackend({
  ctx,
  input,
}: {
  ctx: ServiceContext;
  input: z.input<typeof changeBackendInput>;
}): Promise<{ name: string; changed: boolean; checks: BackendCheck[] }> {
  requireRole(ctx, 'operator', 'Changing a backend');
  const wanted = parseInput(changeBackendInput, input);
  const { name, isDefault } = wanted;
  const onlyDefault = Object.entries(wanted).every(
    ([field, value]) => ['name', 'isDefault', 'unchecked'].includes(field) || isNothing(value),
  );
  if (onlyDefault) {
    const { kind, settings, revision } = await getBackend(ctx.database.db, name);
    return {
      name,
      changed: await saveBackend(ctx, { name, kind, settings, isDefault, fromRevision: revision }),
      checks: [],
    };
  }
  const { row, settings } = await requireRemote(ctx, name);
  refuseControlKey(wanted.controlKey, name, row.kind);
  const urls = newUrls(name, settings, wanted);
  if (wanted.keyFor !== undefined && !urls.includes(wanted.keyFor))
    throw new Invalid(`The backend ${name} has no server at ${wanted.keyFor}.`);
  const checks = wanted.unchecked || wanted.addUrls.length === 0 ? [] : await checkNew(ctx, wanted, row, settings);
  if (checks.length > 0) {
    const { kind } = requireOneBackend(name, settings.check ? [settings.check, ...checks] : checks);
    if (kind !== row.kind) throw new Invalid(`The backend ${name} is of the kind ${row.kind}, the new server ${kind}.`);
  }
  const { maxInFlight = settings.maxInFlight, tokensInFlight = settings.tokensInFlight } = wanted;
  const changedSettings = { ...settings, replicas: urls.map((url) => ({ url })), maxInFlight, tokensInFlight };
  const changed = await saveBackend(ctx, {
    name,
    kind: row.kind,
    settings: storedSettings(changedSettings),
    isDefault,
    key: newKey(wanted),
    controlKey: wanted.controlKey,
    fromRevision: row.revision,
  });
  return { name, changed, checks };
}

type Wanted = z.output<typeof changeBackendInput>;

const isNothing = (value: unknown): boolean => value === undefined || (Array.isArray(value) && value.length === 0);

const newKey = ({ key, keyFor }: Wanted): BackendToSave['key'] =>
  key === undefined ? undefined : { key, url: keyFor ?? null };

function newUrls(name: string, settings: RemoteSettings, { addUrls, removeUrls }: Wanted): string[] {
  const before = urlsOf(settings);
  const missing = removeUrls.find((url) => !before.includes(url));
  if (missing !== undefined) throw new Invalid(`The backend ${name} has no server at ${missing}.`);
  const urls = [...new Set([...before.filter((url) => !removeUrls.includes(url)), ...addUrls])];
  if (urls.length === 0)
    throw new Invalid(`The backend ${name} would have no server left. Remove the backend instead.`);
  return urls;
}

async function checkNew(
  ctx: ServiceContext,
  { addUrls, key, keyFor, controlKey }: Wanted,
  { id, kind }: { id: string; kind: RemoteKind },
  settings: RemoteSettings,
): Promise<BackendCheck[]> {
  const { model = null, tokenizer = null, contextLength = null, replicas } = settings;
  const stored = await readBackendKeys(ctx.database.db, ctx.process.secrets, id);
  const known = new Set(replicas.map(({ url }) => url));
  const keysFor = (url: string): KeysOfServer => {
    const own = known.has(url) ? stored : null;
    const given = key && (keyFor === undefined || keyFor === url) ? key : null;
    return {
      key: given ?? own?.keyFor(url) ?? null,
      controlKey: controlKey ?? own?.controlKey() ?? null,
    };
  };
  return checkServers(ctx.process, { backend: null, kind, urls: addUrls, model, tokenizer, contextLength }, keysFor);
}
