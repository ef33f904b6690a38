/** Asks a server what it is and what it can do: one at an address, with nothing stored, or those of a backend. */
import type { z } from 'zod';
import { getBackend, saveBackend } from '../../../db/queries/catalog';
import { Conflict } from '../../core/errors';
import type { BackendCheck } from '../../core/inference';
import { auditEntry } from '../../observability/audit';
import { requireRole, type ServiceContext } from '../context';
import { parseInput } from '../inputs';
import { readBackendKeys } from '../secrets/backend-keys';
import { backendNameInput, checkServerInput } from './backend-inputs';
import { requireRemote, sameJson, storedSettings, urlsOf } from './backend-settings';
import { checkServers, refuseControlKey } from './check-servers';

/** A server that cannot be used is an answer, not an error. It is asked from the studio's machine, so this is no viewer's. */
export async function checkServer({
  ctx,
  input,
}: {
  ctx: ServiceContext;
  input: z.input<typeof checkServerInput>;
}): Promise<BackendCheck> {
  requireRole(ctx, 'operator', 'Checking a server');
  const {
    url,
    kind,
    model = null,
    tokenizer = null,
    contextLength = null,
    key = null,
    controlKey = null,
  } = parseInput(checkServerInput, input);
  refuseControlKey(controlKey, url, kind);
  const check = await ctx.process.checkServer({
    backend: null,
    url,
    kind,
    model,
    tokenizer,
    contextLength,
    key,
    controlKey,
  });
  if (kind === 'auto') refuseControlKey(controlKey, url, check.kind);
  return check;
}

/**
 * Each replica with its stored keys; the check of the first one is kept, and what serves is opened anew where that one
 * can do other things than before. Throws NotFound, and Conflict while it is paused.
 */
export async function recheckBackend({
  ctx,
  input,
}: {
  ctx: ServiceContext;
  input: z.input<typeof backendNameInput>;
}): Promise<BackendCheck[]> {
  requireRole(ctx, 'operator', 'Checking a backend');
  const { name } = parseInput(backendNameInput, input);
  const { row, settings } = await requireRemote(ctx, name);
  if (row.paused)
    throw new Conflict(
      `The backend ${name} is paused, and paused servers sample nothing that could be looked at. Resume it, then check it.`,
    );
  const { model = null, tokenizer = null, contextLength = null } = settings;
  const { keyFor, controlKey } = await readBackendKeys(ctx.database.db, ctx.process.secrets, row.id);
  const wanted = { backend: name, kind: row.kind, urls: urlsOf(settings), model, tokenizer, contextLength };
  const checks = await checkServers(ctx.process, wanted, (url) => ({ key: keyFor(url), controlKey: controlKey() }));
  await ctx.database.db.transaction(async (tx) => {
    const { id, kind, isDefault, revision, paused } = await getBackend(tx, name);
    const stored = storedSettings({ ...settings, check: checks[0] });
    const found = checks[0]?.capabilities ?? null;
    // A server that could not be looked at has shown nothing new.
    const reopen = found !== null && !sameJson({ ...found }, { ...settings.check?.capabilities });
    // What was changed meanwhile is not what was checked, and what was paused gave no answers.
    if (revision === row.revision && !paused)
      await saveBackend(tx, { id, name, kind, settings: stored, isDefault, reopen, nowMs: ctx.ambient.now() });
    await auditEntry(tx, ctx, {
      actionType: 'check_backend',
      resource: `backend://${name}`,
      operation: 'check',
      status: checks.every(({ ok }) => ok) ? 'success' : 'error',
      details: { urls: wanted.urls, failed: checks.filter(({ ok }) => !ok).map(({ url }) => url) },
    });
  });
  return checks;
}
