/**
 * Gives a backend new weights. What was asked for and how it ended is kept; while it goes on a lease is renewed, so that an
 * update whose process is gone can be told from one that takes long.
 */
import type { z } from 'zod';
import { getBackend } from '../../../db/queries/catalog';
import {
  beginWeightUpdate,
  endWeightUpdate,
  getWeightUpdate,
  renewWeightUpdate,
} from '../../../db/queries/weight-updates';
import { Invalid, isStudioError } from '../../core/errors';
import type { WeightUpdateView } from '../../core/views';
import type { InferenceBackend } from '../../inference/backend';
import { auditEntry } from '../../observability/audit';
import { requireRole, type ServiceContext } from '../context';
import { parseInput } from '../inputs';
import { updateWeightsInput } from './backend-inputs';
import { withPatience } from './patience';

/** A caller waits this long; a longer update goes on by itself and is seen in the list of updates. */
const WAIT_MS = 20_000;
const LEASE_MS = 60_000;
const RENEW_MS = 15_000;

/**
 * Returns the update as it stands: `running` when it takes long. Throws the server's own words when it failed within that
 * time; the old weights then serve. Throws Conflict while another update of the backend goes on.
 */
export async function updateWeights({
  ctx,
  input,
  waitMs = WAIT_MS,
}: {
  ctx: ServiceContext;
  input: z.input<typeof updateWeightsInput>;
  waitMs?: number;
}): Promise<WeightUpdateView> {
  requireRole(ctx, 'operator', 'Updating the weights of a backend');
  const wanted = parseInput(updateWeightsInput, input);
  const { name, source, version, inFlight } = wanted;
  const { ambient, database } = ctx;
  const { id: backendId } = await getBackend(database.db, name);
  const { backend, release } = await ctx.process.backendHeld(name);
  const id = ambient.newId('wgt');
  try {
    await requireOffered(backend, wanted);
    const nowMs = ambient.now();
    await database.db.transaction(async (tx) => {
      const update = { id, backendId, version, source, inFlight, requestedBy: ctx.actor.userId };
      const { number } = await beginWeightUpdate(tx, { ...update, nowMs, leaseUntilMs: nowMs + LEASE_MS });
      await audit(tx, ctx, wanted, 'started', { number });
    });
  } catch (error) {
    release();
    throw error;
  }
  const updating = drive(ctx, id, wanted, backend).finally(release);
  await withPatience(updating, null, waitMs);
  return getWeightUpdate(database.db, { id, nowMs: ambient.now() });
}

type Wanted = z.output<typeof updateWeightsInput>;

async function requireOffered(backend: InferenceBackend, { name, source, version }: Wanted): Promise<void> {
  const { weightSources } = await backend.capabilities();
  if (!weightSources.includes(source.kind))
    throw new Invalid(
      weightSources.length === 0
        ? `The backend ${name} offers no way to change its weights while it serves.`
        : `The backend ${name} takes new weights as ${weightSources.join(' or ')}, not as ${source.kind}.`,
    );
  if ((await backend.weightVersion()) === version)
    throw new Invalid(
      `The weights that ${name} serves now are called ${version} already. Give the new ones another label, so that their tokens can be told apart.`,
    );
}

async function drive(ctx: ServiceContext, id: string, wanted: Wanted, backend: InferenceBackend): Promise<void> {
  const { ambient, database, logger } = ctx;
  const renewal = setInterval(() => {
    renewWeightUpdate(database.db, { id, leaseUntilMs: ambient.now() + LEASE_MS }).catch((error) =>
      logger.warn({ err: error }, 'the lease of a weight update could not be renewed'),
    );
  }, RENEW_MS);
  let failure: unknown = null;
  try {
    const { source, version, inFlight } = wanted;
    await backend.updateWeights({ source, version, inFlight });
  } catch (error) {
    failure = error;
  }
  clearInterval(renewal);
  try {
    await database.db.transaction(async (tx) => {
      const error = failure === null ? null : sentenceOf(failure);
      await endWeightUpdate(tx, {
        id,
        error,
        unsettled: failure !== null && leavesOpen(failure),
        nowMs: ambient.now(),
      });
      await audit(tx, ctx, wanted, error === null ? 'success' : 'error', error === null ? {} : { error });
    });
  } catch (error) {
    // The lease runs out by itself, and the update then counts as failed.
    logger.error({ err: error, backend: wanted.name }, 'the end of a weight update could not be written');
  }
  if (failure === null) return;
  if (!isStudioError(failure)) logger.error({ err: failure, backend: wanted.name }, 'a weight update failed');
  throw failure;
}

/** A server is held back, because nobody could say what it serves. */
function leavesOpen(error: unknown): boolean {
  return !isStudioError(error) || error.details.serving === null;
}

function sentenceOf(error: unknown): string {
  return isStudioError(error) ? error.message : 'It failed with an error nobody foresaw; the log has it.';
}

async function audit(
  q: Parameters<typeof auditEntry>[0],
  ctx: ServiceContext,
  { name, source, version, inFlight }: Wanted,
  status: 'started' | 'success' | 'error',
  more: { number?: number; error?: string },
): Promise<void> {
  await auditEntry(q, ctx, {
    actionType: 'update_weights',
    resource: `backend://${name}`,
    operation: 'update',
    status,
    details: { source, version, inFlight, ...more },
  });
}
