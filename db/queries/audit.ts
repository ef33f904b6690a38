/** The audit log: written in the transaction of the change it records, read newest first. */
import { and, desc, eq, sql } from 'drizzle-orm';
import type { AuditEntryView, Page } from '../../server/core/views';
import type { Json } from '../../server/core/vocabulary';
import type { Queryable } from '../connection';
import { auditEntries, users } from '../schema';
import { decodeTimeCursor, encodeTimeCursor, pageSize } from './paging';
import { storableText } from './stored-text';

export type AuditStatus = (typeof auditEntries.$inferSelect)['status'];

export interface NewAuditEntry {
  id: string;
  atMs: number;
  agentId: string | null;
  userId: string | null;
  actionType: string;
  resource: string;
  operation: string;
  status: AuditStatus;
  details: Json;
  ipAddress: string | null;
}

export async function insertAuditEntries(q: Queryable, entries: readonly NewAuditEntry[]): Promise<void> {
  if (entries.length === 0) return;
  await q.insert(auditEntries).values(
    entries.map((entry) => ({
      ...entry,
      // The column is never NULL; JSON null is written as an empty object.
      details: entry.details ?? {},
      resource: storableText(entry.resource),
      operation: storableText(entry.operation),
    })),
  );
}

export interface AuditFilter {
  agentId?: string;
  actionType?: string;
  status?: AuditStatus;
  /** Half-open range of time. */
  fromMs?: number;
  toMs?: number;
}

/** 100 at a time by default. `total` counts everything that fits the filter. */
export async function listAuditEntries(
  q: Queryable,
  input: AuditFilter & { cursor?: string | null; limit?: number },
): Promise<Page<AuditEntryView>> {
  const limit = pageSize(input.limit, 100);
  const after = decodeTimeCursor(input.cursor);
  const wanted = and(
    input.agentId === undefined ? undefined : eq(auditEntries.agentId, input.agentId),
    input.actionType === undefined ? undefined : eq(auditEntries.actionType, input.actionType),
    input.status === undefined ? undefined : eq(auditEntries.status, input.status),
    input.fromMs === undefined ? undefined : sql`${auditEntries.atMs} >= ${input.fromMs}::bigint`,
    input.toMs === undefined ? undefined : sql`${auditEntries.atMs} < ${input.toMs}::bigint`,
  );
  const rows = await q
    .select({
      id: auditEntries.id,
      atMs: auditEntries.atMs,
      agentId: auditEntries.agentId,
      userName: users.name,
      actionType: auditEntries.actionType,
      resource: auditEntries.resource,
      operation: auditEntries.operation,
      status: auditEntries.status,
      details: auditEntries.details,
    })
    .from(auditEntries)
    .leftJoin(users, eq(users.id, auditEntries.userId))
    .where(
      and(
        wanted,
        after ? sql`(${auditEntries.atMs}, ${auditEntries.id}) < (${after.atMs}::bigint, ${after.id})` : undefined,
      ),
    )
    .orderBy(desc(auditEntries.atMs), desc(auditEntries.id))
    .limit(limit + 1);
  const [count] = await q.select({ total: sql<number>`count(*)::int` }).from(auditEntries).where(wanted);
  const shown = rows.slice(0, limit);
  const last = shown.at(-1);
  return {
    items: shown,
    nextCursor: rows.length > limit && last ? encodeTimeCursor(last) : null,
    total: count?.total ?? 0,
  };
}
