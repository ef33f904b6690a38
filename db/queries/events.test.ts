import { beforeAll, expect, it } from 'vitest';
import { Conflict } from '../../server/core/errors';
import type { TokenChunk } from '../../server/core/tokens/chunk';
import { silentLogger } from '../../server/observability/logger';
import { openDatabase } from '../open';
import { describeOnBothDatabases, type TestDatabase } from '../testing/database';
import { seedRun } from '../testing/seed';
import { listAuditEntries } from './audit';
import { EventWriter } from './event-writer';
import { appendEvents, appendRunEvent, type EventRow, nextEventIndex, readEvents, readRunFeed } from './events';

function chunkOf(text: string): TokenChunk {
  const bytes = new TextEncoder().encode(text);
  const n = bytes.length;
  return {
    ids: Int32Array.from(bytes),
    logprobs: Float32Array.from(bytes, (byte) => -byte / 256),
    mask: new Uint8Array(n).fill(1),
    stepIndex: new Int32Array(n),
    segment: new Uint8Array(n),
    bytes,
    byteEnds: Uint32Array.from(bytes, (_, i) => i + 1),
  };
}

const event = (sessionId: string, runId: string | null, seq: number, data: object = { n: seq }): EventRow => ({
  sessionId,
  runId,
  seq,
  atMs: 1000 + seq,
  type: 'state.changed',
  data,
});

const audit = (id: string) => ({
  id,
  atMs: 1,
  agentId: 'trj',
  userId: null,
  actionType: 'tool_execution_start',
  resource: 'tool://probe\0',
  operation: 'execute',
  status: 'started' as const,
  details: { text: 'nul \0' },
  ipAddress: null,
});

describeOnBothDatabases('the session log', (open) => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await open();
  });

  it('returns exactly what was appended: hostile text, tokens bit by bit, weights', async () => {
    const data = {
      text: 'NUL \0, lone \ud800, quote \', backslash \\u0000, "json", 訓練 🚀',
      deep: { list: [1, 1.5, -0.0000001, null, true], empty: {} },
    };
    const tokens = chunkOf('Thought: 訓練 🚀');
    tokens.logprobs[3] = Number.NaN;
    const weights = [{ version: 'v1', start: 0, end: 5 }];
    await appendEvents(database.db, [
      { ...event('s-exact', null, 0, data), tokens, weights },
      event('s-exact', null, 1, {}),
    ]);
    const events = await readEvents(database.db, { sessionId: 's-exact' });
    expect(events[0]).toMatchObject({ seq: 0, atMs: 1000, type: 'state.changed', data, weights });
    expect(events[0]?.tokens).toMatchObject(tokens);
    expect(events[1]).toEqual({ seq: 1, atMs: 1001, type: 'state.changed', data: {} });
  });

  it('reads from an index, from a moment, and no more than the limit', async () => {
    await appendEvents(
      database.db,
      [0, 1, 2, 3, 4].map((seq) => event('s-range', null, seq)),
    );
    const seqs = async (range: object) =>
      (await readEvents(database.db, { sessionId: 's-range', ...range })).map((e) => e.seq);
    expect(await seqs({ startIndex: 3 })).toEqual([3, 4]);
    expect(await seqs({ startTimestamp: 1002 })).toEqual([2, 3, 4]);
    expect(await seqs({ startIndex: 1, limit: 2 })).toEqual([1, 2]);
    expect(await nextEventIndex(database.db, 's-range')).toBe(5);
    expect(await nextEventIndex(database.db, 's-none')).toBe(0);
  });

  it('numbers a run’s events without a gap, over many sessions and the run’s own', async () => {
    const { runId, groups } = await seedRun(database);
    const [a, b] = groups[0]?.members ?? [];
    await appendEvents(database.db, [
      event(a?.sessionId ?? '', runId, 0),
      event(b?.sessionId ?? '', runId, 0, { secret: 'model text' }),
      event(a?.sessionId ?? '', runId, 1),
    ]);
    await appendRunEvent(database.db, { runId, atMs: 5, type: 'run.started', data: { status: 'running' } });
    await appendEvents(database.db, [event(b?.sessionId ?? '', runId, 1)]);
    const feed = await readRunFeed(database.db, { runId, afterSeq: -1, limit: 100 });
    expect(feed.map((e) => e.runSeq)).toEqual([0, 1, 2, 3, 4]);
    expect(feed.map((e) => e.trajectoryId)).toEqual([a?.id, b?.id, a?.id, null, b?.id]);
    expect(feed[3]).toMatchObject({ sessionId: runId, type: 'run.started', data: { status: 'running' } });
    expect(JSON.stringify(feed)).not.toContain('model text');
    expect((await readRunFeed(database.db, { runId, afterSeq: 2, limit: 1 })).map((e) => e.runSeq)).toEqual([3]);
  });

  it('leaves out a session of which a place is taken, whole, with its audit, and names it; the others go in', async () => {
    const { runId } = await seedRun(database);
    await appendEvents(database.db, [event('s-taken', runId, 0)]);
    const rows = [
      event('s-taken', runId, 0, { other: true }),
      event('s-free', runId, 0),
      event('s-taken', runId, 1, { other: true }),
      event('s-free', runId, 1),
    ];
    const entries = [
      { sessionId: 's-taken', entry: audit('aud_taken') },
      { sessionId: 's-free', entry: audit('aud_free') },
    ];
    expect(await appendEvents(database.db, rows, entries)).toEqual({ lost: ['s-taken'] });
    expect(await readEvents(database.db, { sessionId: 's-taken' })).toHaveLength(1);
    expect(await readEvents(database.db, { sessionId: 's-free' })).toHaveLength(2);
    expect((await readRunFeed(database.db, { runId, afterSeq: -1, limit: 9 })).map((e) => e.runSeq)).toEqual([0, 1, 2]);
    const listed = await listAuditEntries(database.db, { agentId: 'trj' });
    expect(listed.items).toMatchObject([
      { id: 'aud_free', resource: 'tool://probe\u2400', details: { text: 'nul \0' }, userName: null },
    ]);
  });

  it('writes 256 sessions at once through one writer, in order and without a gap', async () => {
    const { runId } = await seedRun(database);
    const grown: string[] = [];
    const writer = new EventWriter(database, (runIds) => grown.push(...runIds));
    const tokens = chunkOf('x'.repeat(40));
    const before = process.cpuUsage();
    await Promise.all(
      Array.from({ length: 256 }, async (_, s) => {
        for (let seq = 0; seq < 20; seq++)
          await writer.append(`w-${runId}-${s}`, runId, [
            { seq, atMs: seq, type: 'state.changed', data: { changes: { text: 'y'.repeat(300) } }, tokens },
          ]);
      }),
    );
    const { user, system } = process.cpuUsage(before);
    console.info(`${database.kind}: ${((user + system) / 1000 / (256 * 20)).toFixed(3)} ms of this process an event`);
    const feed = await readRunFeed(database.db, { runId, afterSeq: -1, limit: 10_000 });
    expect(feed.map((e) => e.runSeq)).toEqual(Array.from({ length: 5120 }, (_, i) => i));
    expect((await readEvents(database.db, { sessionId: `w-${runId}-17` })).map((e) => e.seq)).toEqual(
      Array.from({ length: 20 }, (_, i) => i),
    );
    expect(new Set(grown)).toEqual(new Set([runId]));
  });

  it('rejects only the session that lost its place, and only the one whose events cannot be stored', async () => {
    const { runId } = await seedRun(database);
    const writer = new EventWriter(database);
    await writer.append('r-lost', runId, [event('r-lost', runId, 0)]);
    const outcomes = await Promise.allSettled([
      writer.append('r-lost', runId, [event('r-lost', runId, 0)]),
      writer.append('r-good', runId, [event('r-good', runId, 0)]),
      writer.append('r-bad', runId, [{ ...event('r-bad', runId, 0), seq: 0.5 }]),
      writer.append('r-good', runId, [event('r-good', runId, 1)]),
    ]);
    expect(outcomes.map((o) => o.status)).toEqual(['rejected', 'fulfilled', 'rejected', 'fulfilled']);
    expect(outcomes[0]).toMatchObject({ reason: expect.any(Conflict) });
    await writer.drain();
    expect(await readEvents(database.db, { sessionId: 'r-good' })).toHaveLength(2);
  });

  it('lets exactly one of two writers of the same session win, and keeps runs’ numbers whole', async () => {
    const seeded = await Promise.all([seedRun(database), seedRun(database), seedRun(database)]);
    const second =
      database.kind === 'postgres' ? await openDatabase({ ...database.address, logger: silentLogger }) : database;
    const writers = [new EventWriter(database), new EventWriter(second)];
    let conflicts = 0;
    await Promise.all(
      Array.from({ length: 30 }, async (_, s) => {
        const runId = seeded[s % 3]?.runId ?? '';
        for (let seq = 0; seq < 10; seq++) {
          const outcomes = await Promise.allSettled(
            writers.map((writer, w) =>
              writer.append(`race-${s}`, runId, [
                event('', runId, 2 * seq, { w }),
                event('', runId, 2 * seq + 1, { w }),
              ]),
            ),
          );
          const lost = outcomes.filter((o) => o.status === 'rejected');
          for (const { reason } of lost) expect(reason).toBeInstanceOf(Conflict);
          expect(lost).toHaveLength(1);
          conflicts += lost.length;
        }
      }),
    );
    expect(conflicts).toBe(300);
    for (let s = 0; s < 30; s++) {
      const events = await readEvents(database.db, { sessionId: `race-${s}` });
      expect(events).toHaveLength(20);
      // Both events of an append are of the same writer.
      for (let i = 0; i < 20; i += 2) expect(events[i]?.data).toEqual(events[i + 1]?.data);
    }
    for (const { runId } of seeded) {
      const feed = await readRunFeed(database.db, { runId, afterSeq: -1, limit: 1000 });
      expect(feed.map((e) => e.runSeq)).toEqual(Array.from({ length: 200 }, (_, i) => i));
    }
    if (second !== database) await second.close();
  });
});
