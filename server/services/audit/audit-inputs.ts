/** What callers may send to the verbs of audit. */
import { z } from 'zod';
import { cursorSchema } from '../inputs';

export const AUDIT_STATUSES = ['allowed', 'denied', 'started', 'success', 'error'] as const;
export type AuditStatus = (typeof AUDIT_STATUSES)[number];

export const listAuditInput = z.object({
  cursor: cursorSchema,
  limit: z.number().int().min(1).max(200).default(100),
  agentId: z.string().max(80).optional(),
  actionType: z.string().max(80).optional(),
  status: z.enum(AUDIT_STATUSES).optional(),
});
