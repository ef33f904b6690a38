/** Keeps sessions in memory: for programs that use the engine without a database, and gone with the process. */
import type { AuditRecord } from '../core/audit';
import { Conflict } from '../core/errors';
import type { SessionEvent } from '../core/events';
import type { SessionStore } from './session';

export class MemoryStore implements SessionStore {
  readonly sessions = new Map<string, SessionEvent[]>();
  readonly audit: AuditRecord[] = [];
  readonly outputs = new Map<string, Uint8Array>();

  async append(where: { sessionId: string }, events: SessionEvent[], audit: AuditRecord[]): Promise<void> {
    const log = this.sessions.get(where.sessionId) ?? [];
    if (events[0] && events[0].seq !== log.length)
      throw new Conflict(`Session ${where.sessionId} was moved on by another writer.`);
    log.push(...events);
    this.sessions.set(where.sessionId, log);
    this.audit.push(...audit);
  }

  async read(
    sessionId: string,
    range: { startIndex?: number; startTimestamp?: number; limit?: number },
  ): Promise<SessionEvent[]> {
    const { startIndex = 0, startTimestamp = 0, limit } = range;
    const found = (this.sessions.get(sessionId) ?? []).filter(
      (event) => event.seq >= startIndex && event.atMs >= startTimestamp,
    );
    return limit === undefined ? found : found.slice(0, limit);
  }

  async saveOutput(_sessionId: string, content: Uint8Array): Promise<string> {
    const id = `output-${this.outputs.size}`;
    this.outputs.set(id, content);
    return id;
  }
}
