/** The audit log, newest first. */
import type { z } from 'zod';
import { listAuditEntries } from '../../../db/queries/audit';
import type { AuditEntryView, Page } from '../../core/views';
import { requireRole, type ServiceContext } from '../context';
import { parseInput } from '../inputs';
import { listAuditInput } from './audit-inputs';

export async function listAudit({
  ctx,
  input,
}: {
  ctx: ServiceContext;
  input: z.input<typeof listAuditInput>;
}): Promise<Page<AuditEntryView>> {
  requireRole(ctx, 'viewer', 'Reading the audit log');
  return listAuditEntries(ctx.database.db, parseInput(listAuditInput, input));
}
