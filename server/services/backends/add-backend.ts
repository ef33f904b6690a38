/** Makes a backend known, or changes its settings. Settings hold no secret. */
import { z } from 'zod';
import { listBackends, saveBackend } from '../../../db/queries/catalog';
import type { JsonObject } from '../../core/vocabulary';
import { auditEntry } from '../../observability/audit';
import { requireRole, type ServiceContext } from '../context';
import { nameSchema, parseInput } from '../inputs';

export const addBackendInput = z.object({
  name: nameSchema,
  kind: z.literal('embedded'),
  settings: z.object({
    /** A .gguf file, relative to the folder of package.json, or absolute. */
    modelPath: z.string().min(1).max(4096),
  }),
  /** Left as it is when absent; a new backend is then not the default. */
  isDefault: z.boolean().optional(),
});

/** `changed` is false when everything is as it was. */
export async function addBackend({
  ctx,
  input,
}: {
  ctx: ServiceContext;
  input: z.input<typeof addBackendInput>;
}): Promise<{ name: string; changed: boolean }> {
  requireRole(ctx, 'operator', 'Adding a backend');
  const { name, kind, settings, isDefault: wanted } = parseInput(addBackendInput, input);
  return ctx.database.db.transaction(async (tx) => {
    const known = (await listBackends(tx)).find((row) => row.name === name);
    const isDefault = wanted ?? known?.isDefault ?? false;
    const same = known?.kind === kind && known.isDefault === isDefault && sameSettings(known.settings, settings);
    if (same) return { name, changed: false };
    await saveBackend(tx, { id: ctx.ambient.newId('bck'), name, kind, settings, isDefault, nowMs: ctx.ambient.now() });
    await auditEntry(tx, ctx, {
      actionType: known ? 'change_backend' : 'add_backend',
      resource: `backend://${name}`,
      operation: 'save',
      status: 'success',
      details: { kind, settings, isDefault },
    });
    return { name, changed: true };
  });
}

function sameSettings(a: JsonObject, b: JsonObject): boolean {
  const sorted = (value: JsonObject) => JSON.stringify(Object.entries(value).sort(([x], [y]) => (x < y ? -1 : 1)));
  return sorted(a) === sorted(b);
}
