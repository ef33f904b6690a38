/** What belongs to a backend beside its settings: the keys of its servers, sealed, and the weights it was given. */
import { sql } from 'drizzle-orm';
import { bigint, boolean, integer, pgTable, primaryKey, text, unique, uniqueIndex } from 'drizzle-orm/pg-core';
import type { WeightSource } from '../../server/core/inference';
import { backends } from './catalog';
import { bytea, json } from './column-types';
import { users } from './people';

export const backendKeys = pgTable(
  'backend_keys',
  {
    backendId: text('backend_id')
      .notNull()
      .references(() => backends.id),
    /** The replica it is for; null for all that have none of their own; `control` (see queries/backend-keys.ts) for the control key. */
    url: text('url'),
    /** Sealed with the studio's secret key; never in clear. */
    ciphertext: bytea('ciphertext').notNull(),
    createdAtMs: bigint('created_at_ms', { mode: 'number' }).notNull(),
  },
  (t) => [unique('backend_keys_unique').on(t.backendId, t.url).nullsNotDistinct()],
);

export const weightUpdates = pgTable(
  'weight_updates',
  {
    id: text('id').primaryKey(),
    backendId: text('backend_id')
      .notNull()
      .references(() => backends.id),
    version: text('version').notNull(),
    /** From 1, one more for each update of the backend. */
    number: integer('number').notNull(),
    source: json<{ kind: WeightSource; path?: string }>()('source').notNull(),
    inFlight: text('in_flight').$type<'drain' | 'interrupt'>().notNull(),
    status: text('status').$type<'running' | 'succeeded' | 'failed'>().notNull(),
    error: text('error'),
    /** It failed with a server held back, as nobody could say what that one serves: whoever opens the backend next finds out. */
    unsettled: boolean('unsettled').notNull().default(false),
    requestedBy: text('requested_by').references(() => users.id),
    startedAtMs: bigint('started_at_ms', { mode: 'number' }).notNull(),
    finishedAtMs: bigint('finished_at_ms', { mode: 'number' }),
    /** Renewed while it goes on; one whose process is gone stops renewing. */
    leaseUntilMs: bigint('lease_until_ms', { mode: 'number' }).notNull(),
  },
  (t) => [
    uniqueIndex('weight_updates_by_number').on(t.backendId, t.number),
    uniqueIndex('weight_updates_running').on(t.backendId).where(sql`status = 'running'`),
  ],
);

/** What a server was given that keeps no label of its weights itself. */
export const serverLabels = pgTable(
  'server_labels',
  {
    backendId: text('backend_id')
      .notNull()
      .references(() => backends.id),
    url: text('url').notNull(),
    /** Tells this start of the server from another, which has its first weights again. */
    fingerprint: text('fingerprint').notNull(),
    version: text('version').notNull(),
  },
  (t) => [primaryKey({ columns: [t.backendId, t.url] })],
);
