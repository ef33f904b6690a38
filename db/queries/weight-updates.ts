/** The weights a backend was given, in order. One update of a backend goes on at a time. */
import { and, asc, desc, eq, lt, or, sql } from 'drizzle-orm';
import { Conflict, NotFound } from '../../server/core/errors';
import type { WeightSource } from '../../server/core/inference';
import type { Page, WeightUpdateView } from '../../server/core/views';
import type { Queryable, Tx } from '../connection';
import { backends, users, weightUpdates } from '../schema';
import { decodePositionCursor, pageSize } from './paging';
import { storableText } from './stored-text';

const ABANDONED =
  'The studio stopped in the middle of it; which weights serve is what the server says, where it says it.';

/**
 * Writes that an update begins. Throws Conflict while another of the backend goes on; one whose process is gone is
 * marked as failed.
 */
export async function beginWeightUpdate(
  tx: Tx,
  input: {
    id: string;
    backendId: string;
    version: string;
    source: { kind: WeightSource; path?: string };
    inFlight: 'drain' | 'interrupt';
    requestedBy: string | null;
    nowMs: number;
    leaseUntilMs: number;
  },
): Promise<{ number: number }> {
  const { backendId, nowMs } = input;
  const [backend] = await tx
    .select({ name: backends.name })
    .from(backends)
    .where(eq(backends.id, backendId))
    .for('update');
  if (!backend) throw new NotFound('The backend was removed at this moment.');
  await tx
    .update(weightUpdates)
    .set({ status: 'failed', error: ABANDONED, unsettled: true, finishedAtMs: nowMs })
    .where(
      and(
        eq(weightUpdates.backendId, backendId),
        eq(weightUpdates.status, 'running'),
        lt(weightUpdates.leaseUntilMs, nowMs),
      ),
    );
  const [running] = await tx
    .select({ version: weightUpdates.version })
    .from(weightUpdates)
    .where(and(eq(weightUpdates.backendId, backendId), eq(weightUpdates.status, 'running')));
  if (running)
    throw new Conflict(
      `The backend ${backend.name} is being updated to ${running.version} now. Wait for that to end, then try again.`,
    );
  const [last] = await tx
    .select({ number: weightUpdates.number })
    .from(weightUpdates)
    .where(eq(weightUpdates.backendId, backendId))
    .orderBy(desc(weightUpdates.number))
    .limit(1);
  const number = (last?.number ?? 0) + 1;
  const { nowMs: startedAtMs, ...row } = input;
  await tx.insert(weightUpdates).values({ ...row, number, status: 'running', startedAtMs });
  return { number };
}

/** Keeps an update from being taken for abandoned. */
export async function renewWeightUpdate(q: Queryable, input: { id: string; leaseUntilMs: number }): Promise<void> {
  await q
    .update(weightUpdates)
    .set({ leaseUntilMs: input.leaseUntilMs })
    .where(and(eq(weightUpdates.id, input.id), eq(weightUpdates.status, 'running')));
}

/**
 * Writes how an update ended. `error` null: it succeeded, and with it what earlier ones left open is settled. `unsettled`:
 * it failed with a server held back.
 */
export async function endWeightUpdate(
  tx: Tx,
  input: { id: string; error: string | null; unsettled: boolean; nowMs: number },
): Promise<void> {
  const { id, error, unsettled, nowMs } = input;
  const status = error === null ? 'succeeded' : 'failed';
  const [ended] = await tx
    .update(weightUpdates)
    .set({ status, error: storableText(error), unsettled, finishedAtMs: nowMs })
    .where(eq(weightUpdates.id, id))
    .returning({ backendId: weightUpdates.backendId });
  if (ended && error === null) await settleWeightUpdates(tx, { ...ended, nowMs });
}

/** For the only process there is: what is marked as going on was left in the middle. */
export async function releaseWeightUpdates(q: Queryable): Promise<void> {
  await q.update(weightUpdates).set({ leaseUntilMs: 0 }).where(eq(weightUpdates.status, 'running'));
}

/** An update whose end nobody saw: it goes on somewhere, its process is gone, or it left a server held back. */
export interface UnfinishedUpdateRow {
  id: string;
  version: string;
  source: { kind: WeightSource; path?: string };
  inFlight: 'drain' | 'interrupt';
  /** A process works on it: its lease has not run out. */
  goesOn: boolean;
  /** Those that had succeeded before it, oldest first. */
  before: { version: string; source: { kind: WeightSource; path?: string } }[];
}

/** The newest of a backend, or null. */
export async function unfinishedUpdate(
  q: Queryable,
  { backendId, nowMs }: { backendId: string; nowMs: number },
): Promise<UnfinishedUpdateRow | null> {
  const ofBackend = eq(weightUpdates.backendId, backendId);
  const [row] = await q
    .select()
    .from(weightUpdates)
    .where(and(ofBackend, or(eq(weightUpdates.status, 'running'), weightUpdates.unsettled)))
    .orderBy(desc(weightUpdates.number))
    .limit(1);
  if (!row) return null;
  const before = await q
    .select({ version: weightUpdates.version, source: weightUpdates.source })
    .from(weightUpdates)
    .where(and(ofBackend, eq(weightUpdates.status, 'succeeded'), lt(weightUpdates.number, row.number)))
    .orderBy(asc(weightUpdates.number));
  const { id, version, source, inFlight } = row;
  return { id, version, source, inFlight, before, goesOn: row.status === 'running' && row.leaseUntilMs >= nowMs };
}

/** All servers of the backend are known to serve what they say: nothing is left open of updates that nobody works on. */
export async function settleWeightUpdates(
  q: Queryable,
  { backendId, nowMs }: { backendId: string; nowMs: number },
): Promise<void> {
  const ofBackend = eq(weightUpdates.backendId, backendId);
  await q
    .update(weightUpdates)
    .set({ status: 'failed', error: ABANDONED, finishedAtMs: nowMs })
    .where(and(ofBackend, eq(weightUpdates.status, 'running'), lt(weightUpdates.leaseUntilMs, nowMs)));
  await q.update(weightUpdates).set({ unsettled: false }).where(and(ofBackend, weightUpdates.unsettled));
}

/** Newest first; the cursor is the number of the last one. An update whose process is gone is shown as failed. */
export async function listWeightUpdates(
  q: Queryable,
  input: { backendId: string; cursor?: string | null; limit?: number; nowMs: number },
): Promise<Page<WeightUpdateView>> {
  const limit = pageSize(input.limit);
  const before = input.cursor ? decodePositionCursor(input.cursor) : null;
  const ofBackend = eq(weightUpdates.backendId, input.backendId);
  const rows = await q
    .select({ update: weightUpdates, requestedBy: users.name })
    .from(weightUpdates)
    .leftJoin(users, eq(users.id, weightUpdates.requestedBy))
    .where(and(ofBackend, before === null ? undefined : lt(weightUpdates.number, before)))
    .orderBy(desc(weightUpdates.number))
    .limit(limit + 1);
  const [counted] = await q.select({ total: sql<number>`count(*)::int` }).from(weightUpdates).where(ofBackend);
  const shown = rows.slice(0, limit);
  return {
    items: shown.map((row) => asView(row, input.nowMs)),
    nextCursor: rows.length > limit ? String(shown.at(-1)?.update.number) : null,
    total: counted?.total ?? 0,
  };
}

/** Throws NotFound. */
export async function getWeightUpdate(q: Queryable, input: { id: string; nowMs: number }): Promise<WeightUpdateView> {
  const [row] = await q
    .select({ update: weightUpdates, requestedBy: users.name })
    .from(weightUpdates)
    .leftJoin(users, eq(users.id, weightUpdates.requestedBy))
    .where(eq(weightUpdates.id, input.id));
  if (!row) throw new NotFound(`There is no weight update ${input.id}.`);
  return asView(row, input.nowMs);
}

function asView(
  { update, requestedBy }: { update: typeof weightUpdates.$inferSelect; requestedBy: string | null },
  nowMs: number,
): WeightUpdateView {
  const { backendId: _, unsettled: __, leaseUntilMs, ...view } = update;
  const abandoned = view.status === 'running' && leaseUntilMs < nowMs;
  return { ...view, requestedBy, ...(abandoned ? { status: 'failed' as const, error: ABANDONED } : {}) };
}

/** Labels of the weights a backend was given with success, oldest first. */
export async function succeededVersions(q: Queryable, backendId: string): Promise<string[]> {
  const rows = await q
    .select({ version: weightUpdates.version })
    .from(weightUpdates)
    .where(and(eq(weightUpdates.backendId, backendId), eq(weightUpdates.status, 'succeeded')))
    .orderBy(asc(weightUpdates.number));
  return rows.map((row) => row.version);
}
