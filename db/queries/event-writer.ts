/**
 * Group commit for the session log: whatever is waiting when a statement ends goes out together in the next, so that
 * hundreds of trajectories share one commit instead of queueing for one each.
 */
import { Conflict } from '../../server/core/errors';
import type { Database } from '../connection';
import { isRetryable, toStudioError } from '../database-errors';
import type { NewAuditEntry } from './audit';
import { appendEvents, type EventRow, type LoggedEvent, type SessionAuditEntry } from './events';

interface Waiting {
  sessionId: string;
  runId: string | null;
  events: readonly LoggedEvent[];
  audit: readonly NewAuditEntry[];
  resolve(): void;
  reject(error: unknown): void;
}

/** Bounds one statement's memory: about this many bytes of tokens and text, or this many events. */
const MOST_EVENTS = 2_000;
const MOST_TOKENS = 200_000;

export class EventWriter {
  #waiting: Waiting[] = [];
  #flushing: Promise<void> | null = null;
  readonly #database: Database;
  readonly #onWritten: (runIds: ReadonlySet<string>) => void;

  /** `onWritten` is told which runs' feeds grew, after every commit. */
  constructor(database: Database, onWritten: (runIds: ReadonlySet<string>) => void = () => {}) {
    this.#database = database;
    this.#onWritten = onWritten;
  }

  /**
   * Resolves when the events are durable. Rejects with Conflict when another writer took one of their places (only this
   * session's events are then missing, and its `audit`, which is written with them or not at all), or with the database's failure (then nothing of the batch was written).
   */
  append(
    sessionId: string,
    runId: string | null,
    events: readonly LoggedEvent[],
    audit: readonly NewAuditEntry[] = [],
  ): Promise<void> {
    if (events.length === 0) return Promise.resolve();
    return new Promise((resolve, reject) => {
      this.#waiting.push({ sessionId, runId, events, audit, resolve, reject });
      this.#flushing ??= this.#flushAll();
    });
  }

  /** Resolves when everything appended so far is durable or has failed. */
  async drain(): Promise<void> {
    while (this.#flushing) await this.#flushing;
  }

  async #flushAll(): Promise<void> {
    // A turn of the event loop, so that everything that is ready now shares the first statement too.
    await new Promise((done) => setImmediate(done));
    while (this.#waiting.length > 0) await this.#flush(this.#take());
    this.#flushing = null;
  }

  /** The oldest that fit, and at most one append a session: a later one must not go in where an earlier one lost. */
  #take(): Waiting[] {
    const taken: Waiting[] = [];
    const left: Waiting[] = [];
    const sessions = new Set<string>();
    let events = 0;
    let tokens = 0;
    for (const entry of this.#waiting) {
      const full = taken.length > 0 && (events >= MOST_EVENTS || tokens >= MOST_TOKENS);
      if (full || sessions.has(entry.sessionId)) {
        left.push(entry);
        continue;
      }
      sessions.add(entry.sessionId);
      taken.push(entry);
      events += entry.events.length;
      for (const event of entry.events) tokens += event.tokens?.ids.length ?? 0;
    }
    this.#waiting = left;
    return taken;
  }

  async #flush(batch: readonly Waiting[]): Promise<void> {
    const rows = batch.flatMap(({ sessionId, runId, events }) =>
      events.map((event) => ({ ...event, sessionId, runId })),
    );
    const audit = batch.flatMap((waiting) => waiting.audit.map((entry) => ({ sessionId: waiting.sessionId, entry })));
    try {
      const lost = new Set(await this.#write(rows, audit));
      const grown = new Set<string>();
      for (const { sessionId, runId } of batch) if (runId !== null && !lost.has(sessionId)) grown.add(runId);
      if (grown.size > 0) this.#onWritten(grown);
      for (const entry of batch)
        if (lost.has(entry.sessionId))
          entry.reject(
            new Conflict('Another worker has taken over this trajectory and wrote to its log.', {
              sessionId: entry.sessionId,
              seq: entry.events[0]?.seq,
            }),
          );
        else entry.resolve();
    } catch (error) {
      // What one session handed in may be the reason; the others must not pay for it.
      if (batch.length > 1 && !isConnectionTrouble(error)) for (const entry of batch) await this.#flush([entry]);
      else for (const entry of batch) entry.reject(toStudioError(error));
    }
  }

  async #write(rows: readonly EventRow[], audit: readonly SessionAuditEntry[]): Promise<string[]> {
    for (let attempt = 1; ; attempt++) {
      try {
        return (await appendEvents(this.#database.db, rows, audit)).lost;
      } catch (error) {
        if (!isRetryable(error) || attempt === 3) throw error;
      }
    }
  }
}

function isConnectionTrouble(error: unknown): boolean {
  const known = toStudioError(error);
  return known instanceof Error && 'code' in known && known.code === 'unavailable';
}
