/** Reading and comparing what is stored of a backend. */
import { type BackendRow, getBackend } from '../../../db/queries/catalog';
import { Invalid } from '../../core/errors';
import type { RemoteKind } from '../../core/inference';
import { type RemoteSettings, remoteSettingsSchema } from '../../core/inference-settings';
import type { Json, JsonObject } from '../../core/vocabulary';
import type { ServiceContext } from '../context';

/** Null for a model inside this process, and for settings that cannot be read. */
export function remoteSettingsOf({ kind, settings }: Pick<BackendRow, 'kind' | 'settings'>): RemoteSettings | null {
  if (kind === 'embedded') return null;
  return remoteSettingsSchema.safeParse(settings).data ?? null;
}

/** Throws NotFound, or Invalid for a backend without servers. */
export async function requireRemote(
  ctx: ServiceContext,
  name: string,
): Promise<{ row: BackendRow & { kind: RemoteKind }; settings: RemoteSettings }> {
  const row = await getBackend(ctx.database.db, name);
  if (row.kind === 'embedded')
    throw new Invalid(`The backend ${name} is a model inside the studio: it has no servers to ask or to change.`);
  const settings = remoteSettingsOf(row);
  if (!settings) throw new Invalid(`The stored settings of the backend ${name} cannot be read. Add it again.`);
  return { row: { ...row, kind: row.kind }, settings };
}

export const urlsOf = (settings: RemoteSettings | null): string[] => settings?.replicas.map(({ url }) => url) ?? [];

/** As the database keeps it: entries without a value are left out. */
export function storedSettings(settings: RemoteSettings): JsonObject {
  return JSON.parse(JSON.stringify(settings)) as JsonObject;
}

export function withoutCheck({ check: _, ...settings }: JsonObject): JsonObject {
  return settings;
}

/** Equal but for the check. */
export function sameSettings(a: JsonObject, b: JsonObject): boolean {
  return sameJson(withoutCheck(a), withoutCheck(b));
}

/** Whatever the order of their fields. */
export function sameJson(a: Json, b: Json): boolean {
  return inOneOrder(a) === inOneOrder(b);
}

function inOneOrder(value: Json): string {
  return JSON.stringify(value, (_key, part: Json) =>
    part !== null && typeof part === 'object' && !Array.isArray(part)
      ? Object.fromEntries(Object.entries(part).sort(([x], [y]) => (x < y ? -1 : 1)))
      : part,
  );
}
