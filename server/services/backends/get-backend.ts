/** One backend in detail: its servers as they are now, what they can do, the weights they were given. Never a key. */
import type { z } from 'zod';
import { listBackendKeys } from '../../../db/queries/backend-keys';
import { type BackendRow, getBackend as queryBackend } from '../../../db/queries/catalog';
import { listWeightUpdates } from '../../../db/queries/weight-updates';
import { isStudioError } from '../../core/errors';
import type { BackendCapabilities, BackendHealth } from '../../core/inference';
import type { BackendDetail, ReplicaView } from '../../core/views';
import type { InferenceBackend, ReplicaStatus } from '../../inference/backend';
import { requireRole, type ServiceContext } from '../context';
import { parseInput } from '../inputs';
import { describeKeys } from '../secrets/backend-keys';
import { backendNameInput } from './backend-inputs';
import { remoteSettingsOf, urlsOf, withoutCheck } from './backend-settings';
import { lateHealth } from './late-health';
import { withPatience } from './patience';

const UPDATES_SHOWN = 20;

/** Throws NotFound. A server that does not answer is shown as such, and not waited for. */
export async function getBackend({
  ctx,
  input,
}: {
  ctx: ServiceContext;
  input: z.input<typeof backendNameInput>;
}): Promise<BackendDetail> {
  requireRole(ctx, 'viewer', 'Looking at a backend');
  const { name } = parseInput(backendNameInput, input);
  const { db } = ctx.database;
  const row = await queryBackend(db, name);
  const nowMs = ctx.ambient.now();
  const [stored, updates, live] = await Promise.all([
    listBackendKeys(db, row.id),
    listWeightUpdates(db, { backendId: row.id, limit: UPDATES_SHOWN, nowMs }),
    lookAt(ctx, row),
  ]);
  const settings = remoteSettingsOf(row);
  const check = settings?.check ?? null;
  const urls = urlsOf(settings);
  const keys = describeKeys(ctx.process.secrets, row.id, stored);
  const capabilities = live.capabilities ?? check?.capabilities ?? null;
  const replicas = urls.map((url) => replicaView(url, live.replicas.get(url), keys.own.has(url)));
  return {
    name,
    kind: row.kind,
    isDefault: row.isDefault,
    modelName: capabilities?.modelName ?? settings?.model ?? null,
    health: live.health,
    urls,
    settings: withoutCheck(row.settings),
    replicas,
    hasKey: keys.hasKey,
    hasControlKey: keys.hasControlKey,
    keyProblem: keys.problem,
    canScore: capabilities?.canScore ?? null,
    capabilities,
    checks: check ? [check] : [],
    weightVersion: live.weightVersion,
    paused: row.paused,
    trouble: live.trouble,
    weightUpdates: updates.items,
  };
}

interface LiveView {
  health: BackendHealth;
  capabilities: BackendCapabilities | null;
  weightVersion: string | null;
  trouble: string | null;
  replicas: ReadonlyMap<string, ReplicaStatus>;
}

async function lookAt(ctx: ServiceContext, { name, kind }: BackendRow): Promise<LiveView> {
  const nothing = { capabilities: null, weightVersion: null, trouble: null, replicas: new Map() };
  try {
    const backend = await withPatience(ctx.process.backendLive(name), null);
    return backend
      ? await askBackend(backend, lateHealth(kind, true))
      : { ...nothing, health: lateHealth(kind, false) };
  } catch (error) {
    if (!isStudioError(error)) throw error;
    return { ...nothing, health: { ok: false, message: error.message } };
  }
}

async function askBackend(backend: InferenceBackend, late: LiveView['health']): Promise<LiveView> {
  const [health, capabilities, weightVersion] = await Promise.all([
    withPatience(asAnswer(backend.health()), late),
    withPatience(orNull(backend.capabilities()), null),
    withPatience(orNull(backend.weightVersion()), null),
  ]);
  const replicas = new Map((backend.replicas?.() ?? []).map((replica) => [replica.url, replica]));
  return { health, capabilities, weightVersion, trouble: backend.trouble?.() ?? null, replicas };
}

/** A server that fails to answer is what the page is there to show. */
async function asAnswer(health: Promise<LiveView['health']>): Promise<LiveView['health']> {
  return health.catch((error: unknown) => {
    if (!isStudioError(error)) throw error;
    return { ok: false, message: error.message };
  });
}

async function orNull<T>(asked: Promise<T>): Promise<T | null> {
  return asked.catch((error: unknown) => {
    if (!isStudioError(error)) throw error;
    return null;
  });
}

function replicaView(url: string, status: ReplicaStatus | undefined, hasOwnKey: boolean): ReplicaView {
  if (status) return { ...status, hasOwnKey };
  return {
    url,
    state: 'unknown',
    reason: null,
    inFlight: 0,
    tokensInFlight: 0,
    weightVersion: null,
    errors: 0,
    lastError: null,
    figures: null,
    hasOwnKey,
  };
}
