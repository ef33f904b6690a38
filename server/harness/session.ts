/**
 * A session: the append-only log behind one trajectory, and what is folded from it.
 *
 * `append` returns once the events are durable. Where they are kept is the store's business; a session that another
 * writer has moved on is refused by the store (Conflict) and must be dropped by whoever holds it.
 */

import type { AuditRecord } from '../core/audit';
import { Unavailable } from '../core/errors';
import type { NewEvent, SessionEvent } from '../core/events';
import { foldEvent, newTrajectoryState, type TrajectoryState } from './state';

export interface EventRange {
  startIndex?: number;
  startTimestamp?: number;
  limit?: number;
}

export interface SessionStore {
  /**
   * Makes the events durable as numbers firstSeq, firstSeq+1, …, all or none, together with the audit entries.
   * Throws Conflict when one of these numbers is taken.
   */
  append(
    where: { sessionId: string; runId: string | null },
    events: SessionEvent[],
    audit: AuditRecord[],
  ): Promise<void>;
  /** In order of their numbers. */
  read(sessionId: string, range: EventRange): Promise<SessionEvent[]>;
  /** Keeps a whole tool output; returns its id. */
  saveOutput(sessionId: string, content: Uint8Array): Promise<string>;
}

export class Session {
  readonly state: TrajectoryState = newTrajectoryState();
  private nextSeq = 0;
  private outage: Unavailable | null = null;

  private constructor(
    readonly sessionId: string,
    readonly runId: string | null,
    private readonly store: SessionStore,
    private readonly now: () => number,
  ) {}

  /** Reads the whole log; a session without events is a new one. */
  static async open(options: {
    sessionId: string;
    runId: string | null;
    store: SessionStore;
    now: () => number;
    fresh?: boolean;
  }): Promise<Session> {
    const session = new Session(options.sessionId, options.runId, options.store, options.now);
    if (!options.fresh) for (const event of await options.store.read(options.sessionId, {})) session.take(event);
    return session;
  }

  /** Number of events so far. */
  get length(): number {
    return this.nextSeq;
  }

  async append(events: NewEvent[], audit: AuditRecord[] = []): Promise<void> {
    const atMs = this.now();
    const numbered = events.map((event, i) => ({ ...event, seq: this.nextSeq + i, atMs }) as SessionEvent);
    await this.stored(this.store.append({ sessionId: this.sessionId, runId: this.runId }, numbered, audit));
    for (const event of numbered) this.take(event);
  }

  getEvents(range: EventRange = {}): Promise<SessionEvent[]> {
    return this.store.read(this.sessionId, range);
  }

  saveOutput(content: Uint8Array): Promise<string> {
    return this.stored(this.store.saveOutput(this.sessionId, content));
  }

  /** Whether it says that the store was out of reach: then nothing is known to be wrong, and the log goes on from its end. */
  isOutage(error: unknown): boolean {
    return this.outage !== null && error === this.outage;
  }

  private async stored<T>(storing: Promise<T>): Promise<T> {
    try {
      return await storing;
    } catch (error) {
      if (error instanceof Unavailable) this.outage = error;
      throw error;
    }
  }

  private take(event: SessionEvent): void {
    foldEvent(this.state, event);
    this.nextSeq = event.seq + 1;
  }
}
