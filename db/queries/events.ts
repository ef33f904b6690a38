/** The session log: append, read one session, read a run's feed. Never changed, never deleted. */
import { and, asc, eq, gte, sql } from 'drizzle-orm';
import { Conflict } from '../../server/core/errors';
import type { SessionEvent } from '../../server/core/events';
import type { TokenChunk, WeightSpan } from '../../server/core/tokens/chunk';
import { decodeTokens, encodeTokens } from '../../server/core/tokens/wire';
import type { JsonObject } from '../../server/core/vocabulary';
import type { Queryable } from '../connection';
import { isUniqueViolation } from '../database-errors';
import { sessionEvents } from '../schema';
import type { NewAuditEntry } from './audit';
import { storableText } from './stored-text';

/** An event with its place. A SessionEvent is one; so is an event of a run's own session. */
export interface LoggedEvent {
  seq: number;
  atMs: number;
  type: string;
  data: object;
  tokens?: TokenChunk;
  weights?: WeightSpan[];
}

export interface EventRow extends LoggedEvent {
  sessionId: string;
  /** Null for a session that belongs to no run: such events have no place in a feed. */
  runId: string | null;
}

/** An audit entry that must be durable together with events of a session. */
export interface SessionAuditEntry {
  sessionId: string;
  entry: NewAuditEntry;
}

/** Attempts when another writer commits the same place between this statement's look and its insert. */
const ATTEMPTS = 3;

/**
 * Appends events of any number of sessions in one statement, and gives each its place in its run's feed. All events of
 * a session go in or none: a session of which one place is taken is left out and named in `lost` (another writer is
 * at work on it). `audit` goes in with the events of its session, or not at all. Inside a transaction a writer that comes at the same moment ends the whole transaction (Conflict).
 */
export async function appendEvents(
  q: Queryable,
  rows: readonly EventRow[],
  audit: readonly SessionAuditEntry[] = [],
): Promise<{ lost: string[] }> {
  if (rows.length === 0) return { lost: [] };
  const { index, auditIndex, blob } = pack(rows, audit);
  for (let attempt = 1; ; attempt++) {
    try {
      const result = await q.execute<{ session_id: string }>(sql`
        with packed as materialized (select ${blob}::bytea as blob),
        incoming as (
          select r.ord, r.session_id, r.seq, r.run_id, r.at_ms, r.type,
            convert_from(substring(packed.blob from r.data_at for r.data_length), 'UTF8')::json as data,
            case when r.tokens_at is not null then substring(packed.blob from r.tokens_at for r.tokens_length) end as tokens,
            r.weights
          from packed, json_to_recordset(${index}::json) as r(ord int, session_id text, seq int, run_id text, at_ms bigint,
            type text, data_at int, data_length int, tokens_at int, tokens_length int, weights json)
        ),
        lost as (select distinct i.session_id from incoming i join session_events e using (session_id, seq)),
        accepted as (select * from incoming i where not exists (select 1 from lost l where l.session_id = i.session_id)),
        growth as (select run_id, count(*) as n from accepted where run_id is not null group by run_id),
        -- Locked in one order everywhere, so that two writers with the same runs never wait for each other in a ring.
        locked as (select id from runs where id in (select run_id from growth) order by id for no key update),
        moved as (
          update runs set next_event_seq = runs.next_event_seq + growth.n
          from growth, locked where runs.id = growth.run_id and locked.id = runs.id
          returning runs.id, runs.next_event_seq - growth.n as first_seq
        ),
        written as (
          insert into session_events (session_id, seq, run_id, run_seq, at_ms, type, data, tokens, weights)
          select a.session_id, a.seq, a.run_id,
            m.first_seq + row_number() over (partition by a.run_id order by a.ord) - 1, a.at_ms, a.type, a.data, a.tokens, a.weights
          from accepted a left join moved m on m.id = a.run_id
        ),
        audited as (
          insert into audit_entries (id, at_ms, agent_id, user_id, action_type, resource, operation, status, details, ip_address)
          select r.id, r.at_ms, r.agent_id, r.user_id, r.action_type, r.resource, r.operation, r.status,
            convert_from(substring(packed.blob from r.details_at for r.details_length), 'UTF8')::json, r.ip_address
          from packed, json_to_recordset(${auditIndex}::json) as r(id text, at_ms bigint, agent_id text, user_id text,
            action_type text, resource text, operation text, status text, ip_address text, session_id text,
            details_at int, details_length int)
          where not exists (select 1 from lost l where l.session_id = r.session_id)
        )
        select session_id from lost`);
      return { lost: [...result].map((row) => row.session_id) };
    } catch (error) {
      if (!isUniqueViolation(error, 'session_events_session_id_seq_pk')) throw error;
      if ('rollback' in q || attempt === ATTEMPTS)
        throw new Conflict('Another writer added to the same session at this moment.', {}, { cause: error });
    }
  }
}

/** One small table of contents and one block of bytes: nothing is escaped twice, and tokens never become JSON. */
function pack(
  rows: readonly EventRow[],
  audit: readonly SessionAuditEntry[],
): { index: string; auditIndex: string; blob: Uint8Array } {
  const parts: Uint8Array[] = [];
  let at = 1;
  const put = (part: Uint8Array): number => {
    parts.push(part);
    const start = at;
    at += part.length;
    return start;
  };
  const index = rows.map((row, ord) => {
    const data = Buffer.from(JSON.stringify(row.data), 'utf8');
    const tokens = row.tokens ? encodeTokens(row.tokens) : null;
    return {
      ord,
      session_id: row.sessionId,
      seq: row.seq,
      run_id: row.runId,
      at_ms: row.atMs,
      type: row.type,
      data_at: put(data),
      data_length: data.length,
      tokens_at: tokens ? put(tokens) : null,
      tokens_length: tokens?.length ?? null,
      weights: row.weights ?? null,
    };
  });
  const auditIndex = audit.map(({ sessionId, entry }) => {
    const details = Buffer.from(JSON.stringify(entry.details ?? {}), 'utf8');
    return {
      id: entry.id,
      at_ms: entry.atMs,
      agent_id: entry.agentId,
      user_id: entry.userId,
      action_type: entry.actionType,
      resource: storableText(entry.resource),
      operation: storableText(entry.operation),
      status: entry.status,
      ip_address: entry.ipAddress,
      session_id: sessionId,
      details_at: put(details),
      details_length: details.length,
    };
  });
  return { index: JSON.stringify(index), auditIndex: JSON.stringify(auditIndex), blob: Buffer.concat(parts) };
}

/**
 * Adds an event to a run's own session (its id is the run's). Its `seq` is its place in the feed, so writers need not
 * agree on a count; the numbers grow but are not contiguous.
 */
export async function appendRunEvent(
  q: Queryable,
  input: { runId: string; atMs: number; type: string; data: object },
): Promise<void> {
  await q.execute(sql`
    with moved as (
      update runs set next_event_seq = next_event_seq + 1 where id = ${input.runId} returning id, next_event_seq - 1 as seq
    )
    insert into session_events (session_id, seq, run_id, run_seq, at_ms, type, data)
    select id, seq, id, seq, ${input.atMs}::bigint, ${input.type}, ${JSON.stringify(input.data)}::json from moved`);
}

export interface ReadEventsInput {
  sessionId: string;
  /** First `seq` wanted. */
  startIndex?: number;
  /** Only events at or after this moment. */
  startTimestamp?: number;
  limit?: number;
}

/** In order of `seq`. */
export async function readEvents(q: Queryable, input: ReadEventsInput): Promise<SessionEvent[]> {
  const query = q
    .select({
      seq: sessionEvents.seq,
      atMs: sessionEvents.atMs,
      type: sessionEvents.type,
      data: sessionEvents.data,
      tokens: sessionEvents.tokens,
      weights: sessionEvents.weights,
    })
    .from(sessionEvents)
    .where(
      and(
        eq(sessionEvents.sessionId, input.sessionId),
        gte(sessionEvents.seq, input.startIndex ?? 0),
        input.startTimestamp === undefined ? undefined : gte(sessionEvents.atMs, input.startTimestamp),
      ),
    )
    .orderBy(asc(sessionEvents.seq));
  const rows = input.limit === undefined ? await query : await query.limit(input.limit);
  return rows.map(({ tokens, weights, ...row }) => ({
    ...row,
    ...(tokens ? { tokens: decodeTokens(tokens) } : {}),
    ...(weights ? { weights } : {}),
  })) as SessionEvent[];
}

/** The `seq` the next event of the session gets. */
export async function nextEventIndex(q: Queryable, sessionId: string): Promise<number> {
  const [row] = await q
    .select({ next: sql<number>`coalesce(max(${sessionEvents.seq}) + 1, 0)::int` })
    .from(sessionEvents)
    .where(eq(sessionEvents.sessionId, sessionId));
  return row?.next ?? 0;
}

export interface RunFeedRow {
  runSeq: number;
  atMs: number;
  sessionId: string;
  /** Null for an event of the run's own session. */
  trajectoryId: string | null;
  type: string;
  data: JsonObject;
}

/**
 * The run's events after `afterSeq` (−1 for all), in order. Data without tokens; generation and prompt texts are left
 * out, because a feed never shows them and they are most of the bytes.
 */
export async function readRunFeed(
  q: Queryable,
  input: { runId: string; afterSeq: number; limit: number },
): Promise<RunFeedRow[]> {
  const rows = await q.execute<{
    run_seq: number;
    at_ms: number;
    session_id: string;
    trajectory_id: string | null;
    type: string;
    data: JsonObject;
  }>(sql`
    select e.run_seq, e.at_ms, e.session_id, t.id as trajectory_id, e.type,
      case e.type
        when 'step.completed' then json_build_object('step_number', e.data->'step_number', 'reward', e.data->'reward')
        when 'task.completed' then json_build_object('status', e.data->'status', 'reward', e.data->'reward')
        when 'prompt.rendered' then json_build_object('sequenceIndex', e.data->'sequenceIndex')
        when 'tool.completed' then json_build_object('stepNumber', e.data->'stepNumber')
        when 'state.changed' then '{}'::json
        else case when e.session_id = e.run_id then e.data else json_build_object('stepNumber', e.data->'stepNumber') end
      end as data
    from session_events e left join trajectories t on t.session_id = e.session_id
    where e.run_id = ${input.runId} and e.run_seq > ${input.afterSeq}
    order by e.run_seq limit ${input.limit}`);
  return [...rows].map((row) => ({
    runSeq: row.run_seq,
    atMs: row.at_ms,
    sessionId: row.session_id,
    trajectoryId: row.trajectory_id,
    type: row.type,
    data: row.data,
  }));
}
