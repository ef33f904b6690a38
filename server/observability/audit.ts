/** Writes an audit entry in the transaction of the change it records: either both are there, or neither. */
import type { Queryable } from '../../db/connection';
import { insertAuditEntries } from '../../db/queries/audit';
import type { Ambient } from '../core/ambient';
import type { AuditRecord } from '../core/audit';

/** `details` holds no secret; `agentId` is the trajectory a tool entry belongs to. */
export type AuditedChange = Pick<AuditRecord, 'actionType' | 'resource' | 'operation' | 'status'> &
  Partial<Pick<AuditRecord, 'details' | 'agentId'>>;

/** Pass the transaction, not the outer handle. Returns the entry's id. */
export async function auditEntry(
  tx: Queryable,
  ctx: { ambient: Ambient; actor: { userId: string | null; ipAddress: string | null } },
  change: AuditedChange,
): Promise<string> {
  const id = ctx.ambient.newId('aud');
  await insertAuditEntries(tx, [
    {
      id,
      atMs: ctx.ambient.now(),
      agentId: change.agentId ?? null,
      userId: ctx.actor.userId,
      actionType: change.actionType,
      resource: change.resource,
      operation: change.operation,
      status: change.status,
      details: change.details ?? {},
      ipAddress: ctx.actor.ipAddress,
    },
  ]);
  return id;
}
