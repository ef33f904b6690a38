/** One audit entry before it has an id and a time: who did what to which resource, and how it ended. */
import type { Json } from './vocabulary';

export interface AuditRecord {
  /** The agent (a trajectory's id) a tool entry belongs to; null for what a person did. */
  agentId: string | null;
  userId: string | null;
  /** permission_check, tool_execution_start, …, or a word for an administrative change. */
  actionType: string;
  resource: string;
  operation: string;
  status: 'allowed' | 'denied' | 'started' | 'success' | 'error';
  details: Json;
  ipAddress: string | null;
}
