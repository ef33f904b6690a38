/** People, their sign-ins and what they did. */
import { bigint, index, pgTable, text } from 'drizzle-orm/pg-core';
import type { Json, Role } from '../../server/core/vocabulary';
import { json } from './column-types';

export const users = pgTable('users', {
  id: text('id').primaryKey(),
  name: text('name').notNull().unique(),
  role: text('role').$type<Role>().notNull(),
  createdAtMs: bigint('created_at_ms', { mode: 'number' }).notNull(),
});

/** Secrets are stored as SHA-256 only. `kind`: one_time (a printed address), browser (a cookie), program (a bearer token). */
export const signIns = pgTable('sign_ins', {
  id: text('id').primaryKey(),
  userId: text('user_id')
    .notNull()
    .references(() => users.id),
  kind: text('kind').$type<'one_time' | 'browser' | 'program'>().notNull(),
  secretHash: text('secret_hash').notNull().unique(),
  createdAtMs: bigint('created_at_ms', { mode: 'number' }).notNull(),
  expiresAtMs: bigint('expires_at_ms', { mode: 'number' }).notNull(),
  usedAtMs: bigint('used_at_ms', { mode: 'number' }),
});

export const auditEntries = pgTable(
  'audit_entries',
  {
    id: text('id').primaryKey(),
    atMs: bigint('at_ms', { mode: 'number' }).notNull(),
    /** The agent (trajectory) a tool entry belongs to; null for what a person did. */
    agentId: text('agent_id'),
    userId: text('user_id'),
    actionType: text('action_type').notNull(),
    resource: text('resource').notNull(),
    operation: text('operation').notNull(),
    status: text('status').$type<'allowed' | 'denied' | 'started' | 'success' | 'error'>().notNull(),
    details: json<Json>()('details').notNull(),
    ipAddress: text('ip_address'),
  },
  (t) => [index('audit_by_time').on(t.atMs, t.id), index('audit_by_agent').on(t.agentId, t.atMs)],
);
