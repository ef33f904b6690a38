/** Workers on one database: what is claimed once is rolled out once, whoever dies, is cancelled, or is overtaken. */
import type { SQL } from 'drizzle-orm';
import { PgDialect } from 'drizzle-orm/pg-core';
import { afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { appendEvents, readEvents, readRunFeed } from '../../db/queries/events';
import { markRunCancelled } from '../../db/queries/groups';
import { getRun } from '../../db/queries/runs';
import { getToolOutput } from '../../db/queries/tool-outputs';
import { getTokenSequence, getTrajectory } from '../../db/queries/trajectory-views';
import { trajectories } from '../../db/schema';
import { describeOnBothDatabases, type TestDatabase } from '../../db/testing/database';
import { type SeededRun, seedRun } from '../../db/testing/seed';
import { Unavailable } from '../core/errors';
import { computeAdvantages } from '../core/training/advantages';
import type { RunDetail } from '../core/views';
import { answer, call, eventsOf } from './testing/rollouts';
import type { ScriptedOptions } from './testing/scripted-backend';
import { TestTool, TestTools, waitingTool } from './testing/test-tools';
import { startTestWorker, type TestWorker, type TestWorkerOptions } from './testing/test-worker';

const REWARD = { tool_accuracy: 0.5, answer_f1: 0.5 };

/** The same handle, whose method `name` goes through `meet` with its first argument and what carries it out. */
function watched<T extends object>(
  target: T,
  name: string,
  meet: (argument: unknown, run: () => unknown) => unknown,
): T {
  return new Proxy(target, {
    get(of, property) {
      const value: unknown = Reflect.get(of, property);
      if (typeof value !== 'function') return value;
      if (property !== name) return value.bind(of);
      return (...args: unknown[]) => meet(args[0], () => value.apply(of, args));
    },
  });
}

describeOnBothDatabases('workers', (open) => {
  let database: TestDatabase;
  const workers = new Set<TestWorker>();

  beforeAll(async () => {
    database = await open();
  });
  beforeEach(async () => {
    await database.sql`update trajectories set status = 'cancelled' where status in ('queued', 'running')`;
    await database.sql`update runs set status = 'cancelled' where status in ('queued', 'running')`;
  });
  afterEach(async () => {
    await Promise.all([...workers].map((worker) => worker.stop()));
    workers.clear();
  });

  const start = async (script: TestWorkerOptions['script'], more: Partial<TestWorkerOptions> = {}) => {
    const worker = await startTestWorker({ database, script, skill: { rewardWeights: REWARD }, ...more });
    workers.add(worker);
    return worker;
  };
  const seed = (size: { groupCount?: number; groupSize?: number } = {}) =>
    seedRun(database, { answer: { number: 8 }, nowMs: Date.now(), ...size });
  const until = async (condition: () => boolean | Promise<boolean>) => {
    while (!(await condition())) await new Promise((done) => setTimeout(done, 20));
  };
  async function finished({ runId }: SeededRun): Promise<RunDetail> {
    let run = await getRun(database.db, runId);
    await until(async () => {
      run = await getRun(database.db, runId);
      return run.finishedAtMs !== null;
    });
    return run;
  }
  const sessionsOf = ({ groups }: SeededRun) => groups.flatMap((group) => group.members.map((m) => m.sessionId));
  const twoSteps: ScriptedOptions['script'] = ({ turn, seed: noise }) =>
    turn === 0 ? call('double', { n: 4 }) : answer(noise % 2 ? 8 : 1);

  it('share a run without doing anything twice, and complete every group and the run once', async () => {
    await Promise.all([start(twoSteps), start(twoSteps), start(twoSteps)]);
    const seeded = await seed({ groupCount: 6, groupSize: 8 });
    const run = await finished(seeded);
    expect(run.status).toBe('completed');
    expect(run.counts.completed).toBe(48);
    const asked = [...workers].map((w) => w.backend.requests.length);
    expect(asked.reduce((a, b) => a + b)).toBe(96);
    expect([...workers].flatMap((w) => w.tools.double.ran)).toHaveLength(48);

    const feed = await readRunFeed(database.db, { runId: seeded.runId, afterSeq: -1, limit: 10_000 });
    expect(feed.map((event) => event.runSeq)).toEqual(feed.map((_, k) => k));
    const count = (type: string) => feed.filter((event) => event.type === type).length;
    expect([count('run.started'), count('group.completed'), count('run.completed')]).toEqual([1, 6, 1]);
    expect(feed.at(-1)?.type).toBe('run.completed');
    for (const group of run.groups) {
      const { byTrajectory } = computeAdvantages(
        group.trajectories.map((t) => ({ ...t, humanEdited: false, stateKeys: null })),
      );
      for (const t of group.trajectories) expect(t.advantages).toEqual(byTrajectory.get(t.trajectoryId));
    }
  });

  it('say why they wait while the database refuses them, and go on by themselves when it does not', async () => {
    const { worker } = await start(twoSteps);
    expect(worker.trouble).toBeNull();
    await database.sql`alter table trajectories rename to trajectories_elsewhere`;
    try {
      await until(() => worker.trouble !== null);
      expect(worker.trouble).toMatch(/[.]$/);
    } finally {
      await database.sql`alter table trajectories_elsewhere rename to trajectories`;
    }
    await until(() => worker.trouble === null);
    expect((await finished(await seed({ groupCount: 1, groupSize: 2 }))).status).toBe('completed');
  });

  it('store the tokens of a trajectory exactly as its log has them', async () => {
    const weights = (n: number) => [
      { version: 'w1', start: 0, end: 2 },
      { version: 'w1→w2', start: 2, end: n },
    ];
    const script: ScriptedOptions['script'] = (input) => ({ text: String(twoSteps(input)), weights });
    await start({ script, pieces: ['Act', 'ion', 'Observ', 'ation: '] });
    const seeded = await seed({ groupCount: 1, groupSize: 1 });
    const run = await finished(seeded);
    const [row] = run.groups[0]?.trajectories ?? [];
    const log = await readEvents(database.db, { sessionId: sessionsOf(seeded)[0] ?? '' });
    const sequence = await getTokenSequence(database.db, { trajectoryId: row?.trajectoryId ?? '', sequenceIndex: 0 });
    const chunks = log.flatMap((event) => (event.tokens ? [event.tokens] : []));
    expect([...(sequence?.ids ?? [])]).toEqual(chunks.flatMap((chunk) => [...chunk.ids]));
    expect([...(sequence?.mask ?? [])]).toEqual(chunks.flatMap((chunk) => [...chunk.mask]));
    expect([...(sequence?.logprobs ?? [])]).toEqual(chunks.flatMap((chunk) => [...chunk.logprobs]));
    const sampled = eventsOf(log, 'generation.completed').reduce((sum, e) => sum + (e.tokens?.ids.length ?? 0), 0);
    expect(row?.generatedTokens).toBe(sampled);
    expect(row?.totalTokens).toBe(sequence?.ids.length);
    let before = 0;
    const spans = log.flatMap((event) => {
      const at = before;
      before += event.tokens?.ids.length ?? 0;
      const own = event.type === 'generation.completed' ? weights(event.tokens?.ids.length ?? 0) : [];
      return own.map(({ version, start: from, end }) => ({ version, start: at + from, end: at + end }));
    });
    expect(spans).toHaveLength(4);
    expect(sequence?.weightVersions).toEqual(spans);
    const shown = await getTrajectory(database.db, row?.trajectoryId ?? '');
    expect(shown.sequences.map(({ weightVersions }) => weightVersions)).toEqual([spans]);
    expect(sequence).toMatchObject({ logprobKind: 'raw', truncated: false, approximate: false });
  });

  it('find permission and start of a call durable in log and audit when its tool begins', async () => {
    const seen: unknown[] = [];
    const look = new TestTool('look', { type: 'object' }, async () => {
      const events = await database.sql`select type from session_events order by at_ms desc, seq desc limit 2`;
      const audit = await database.sql`select action_type, status from audit_entries order by id`;
      seen.push(events.map((row) => row.type).sort(), audit.map((row) => `${row.action_type} ${row.status}`).sort());
      return 'seen';
    });
    await database.sql`delete from audit_entries`;
    await start(({ turn }) => (turn === 0 ? call('look', {}) : answer(8)), {
      tools: new TestTools([look]),
      skill: { availableTools: ['look'], rewardWeights: REWARD },
    });
    const seeded = await seed({ groupCount: 1, groupSize: 1 });
    await finished(seeded);
    expect(seen).toEqual([
      ['permission.decided', 'tool.started'],
      ['permission_check allowed', 'tool_execution_start started'],
    ]);
    const after = await database.sql`select action_type, agent_id from audit_entries order by id`;
    expect(after.map((row) => row.action_type).sort()).toEqual([
      'permission_check',
      'tool_execution_complete',
      'tool_execution_start',
    ]);
    expect(new Set(after.map((row) => row.agent_id))).toEqual(new Set([seeded.groups[0]?.members[0]?.id]));
  });

  it('take over what a killed worker held, from where its log ends', async () => {
    const first = await start(
      ({ turn }) => (turn === 0 ? call('pay', { n: 1 }) : { text: answer(8), delayMs: 60_000 }),
      { leaseMs: 300 },
    );
    const seeded = await seed({ groupCount: 2, groupSize: 4 });
    // All of them have had one step.
    await until(() => first.tools.pay.ran.length === 8 && first.engine.stats().inFlight === 8);
    workers.delete(first);
    await first.kill();
    const second = await start(({ turn }) => (turn === 0 ? call('pay', { n: 2 }) : answer(8)), { leaseMs: 300 });
    const run = await finished(seeded);
    expect(run.counts.completed).toBe(8);
    expect(second.tools.pay.ran).toEqual([]);
    for (const sessionId of sessionsOf(seeded)) {
      const log = await readEvents(database.db, { sessionId });
      expect(log.map((event) => event.seq)).toEqual(log.map((_, k) => k));
      expect(eventsOf(log, 'step.completed').map((e) => e.data.step_number)).toEqual([0, 1]);
      expect(eventsOf(log, 'generation.started').map((e) => e.data.attempt)).toEqual([1, 1, 2]);
    }
  });

  it('put back what has not ended when they stop in good order, and the next one goes on', async () => {
    const first = await start(({ turn }) =>
      turn === 0 ? call('pay', { n: 1 }) : { text: answer(8), delayMs: 60_000 },
    );
    const seeded = await seed({ groupCount: 1, groupSize: 4 });
    await until(() => first.tools.pay.ran.length === 4);
    workers.delete(first);
    await first.stop();
    expect((await getRun(database.db, seeded.runId)).counts).toMatchObject({ queued: 4, running: 0 });
    const second = await start(() => answer(8));
    expect((await finished(seeded)).counts.completed).toBe(4);
    expect(second.tools.pay.ran).toEqual([]);
  });

  it('give back what an engine let go that was closed under them, without waiting for the lease', async () => {
    const first = await start(({ turn }) =>
      turn === 0 ? call('pay', { n: 1 }) : { text: answer(8), delayMs: 60_000 },
    );
    const seeded = await seed({ groupCount: 1, groupSize: 2 });
    await until(() => first.tools.pay.ran.length === 2);
    await first.engine.close();
    const second = await start(() => answer(8));
    expect((await finished(seeded)).counts.completed).toBe(2);
    expect(second.tools.pay.ran).toEqual([]);
  });

  it('wait, with the reason, while what a trajectory needs cannot be had', async () => {
    let away: Error | null = new Unavailable('The backend lab does not answer.', { retry: true });
    let asked = 0;
    const { worker } = await start(twoSteps, {
      beforeMaterial: () => {
        asked++;
        if (away) throw away;
      },
    });
    const seeded = await seed({ groupCount: 1, groupSize: 2 });
    await until(() => asked > 4);
    await until(() => worker.trouble === 'The backend lab does not answer.');
    expect((await getRun(database.db, seeded.runId)).counts).toMatchObject({ failed: 0, completed: 0 });
    away = null;
    expect((await finished(seeded)).counts.completed).toBe(2);
  });

  it('go on with what they hold when its lease ran out under them, and do not begin it a second time', async () => {
    const { wait, release } = waitingTool({ idempotent: false });
    const first = await start(({ turn }) => (turn === 0 ? call('wait', {}) : answer(8)), {
      tools: new TestTools([wait]),
      skill: { availableTools: ['wait'], rewardWeights: REWARD },
    });
    const seeded = await seed({ groupCount: 1, groupSize: 1 });
    await until(() => wait.ran.length === 1);
    const leaseOf = async () => {
      const [row] = await database.sql`select lease_until_ms from trajectories where run_id = ${seeded.runId}`;
      return Number(row?.lease_until_ms);
    };
    // As after the sleep of a laptop.
    await database.sql`update trajectories set lease_until_ms = 1 where run_id = ${seeded.runId}`;
    first.worker.wake();
    await until(async () => (await leaseOf()) > 1);
    // Time for a second one to take the call for one that was interrupted.
    await new Promise((done) => setTimeout(done, 200));
    release();
    expect((await finished(seeded)).counts.completed).toBe(1);
    const log = await readEvents(database.db, { sessionId: sessionsOf(seeded)[0] ?? '' });
    expect(eventsOf(log, 'tool.completed').map(({ data }) => data.result.status)).toEqual(['success']);
    expect(first.backend.requests).toHaveLength(2);
  });

  it('take what ended while they renewed it by a claim for what it is, and do not begin it again', async () => {
    const { wait, release } = waitingTool();
    let answered = (): void => undefined;
    let answers: Promise<void> | null = null;
    let claims = 0;
    let begun = 0;
    const db = watched(database.db, 'execute', async (statement, run) => {
      const { sql } = new PgDialect().sqlToQuery(statement as SQL);
      const isClaim = sql.includes('skip locked');
      if (isClaim) claims++;
      const rows = await run();
      // This answer is late.
      if (isClaim && (rows as unknown[]).length > 0) await answers;
      return rows;
    });
    const first = await start(({ turn }) => (turn === 0 ? call('wait', {}) : answer(8)), {
      database: { ...database, db },
      tools: new TestTools([wait]),
      skill: { availableTools: ['wait'], rewardWeights: REWARD },
      beforeMaterial: () => void begun++,
    });
    const seeded = await seed({ groupCount: 1, groupSize: 1 });
    await until(() => wait.ran.length === 1);
    answers = new Promise<void>((done) => {
      answered = done;
    });
    await database.sql`update trajectories set lease_until_ms = 1 where run_id = ${seeded.runId}`;
    first.worker.wake();
    await until(async () => {
      const [row] = await database.sql`select lease_until_ms from trajectories where run_id = ${seeded.runId}`;
      return Number(row?.lease_until_ms) > 1;
    });
    release();
    expect((await finished(seeded)).counts.completed).toBe(1);
    await until(() => first.worker.size === 0);
    const before = claims;
    answered();
    await until(() => claims > before);
    expect(begun).toBe(1);
  });

  it('renew one at a time, so that a database that is slow gets no heap of renewals in front of all else', async () => {
    let updates = 0;
    const db = watched(database.db, 'update', (table, run) => {
      if (table === trajectories) updates++;
      return run();
    });
    const leaseMs = 60;
    await start(() => ({ text: answer(8), delayMs: 60_000 }), { database: { ...database, db }, leaseMs });
    await seed({ groupCount: 1, groupSize: 1 });
    await until(() => updates > 1);
    await database.sql.begin(async (tx) => {
      await tx`select id from trajectories where status = 'running' for update`;
      const before = updates;
      await new Promise((done) => setTimeout(done, 10 * leaseMs));
      expect(updates - before).toBeLessThanOrEqual(1);
    });
    const before = updates;
    await until(() => updates > before + 1);
  });

  it('drop a trajectory that another worker has taken', async () => {
    const first = await start(() => ({ text: answer(8), delayMs: 60_000 }), { leaseMs: 90 });
    const seeded = await seed({ groupCount: 1, groupSize: 1 });
    await until(() => first.backend.requests.length === 1);
    await database.sql`update trajectories set worker_id = 'wrk_other', lease_until_ms = ${Date.now() + 60_000}
      where run_id = ${seeded.runId}`;
    await until(() => first.worker.size === 0);
    const [row] = await database.sql`select status, worker_id from trajectories where run_id = ${seeded.runId}`;
    expect(row).toEqual({ status: 'running', worker_id: 'wrk_other' });
    const log = await readEvents(database.db, { sessionId: sessionsOf(seeded)[0] ?? '' });
    expect(log.map((event) => event.type)).toEqual(['prompt.rendered', 'generation.started']);
  });

  it('that find their log moved on by somebody else change nothing in it, and take it up again while it is theirs', async () => {
    const { wait, release } = waitingTool();
    const first = await start(({ turn }) => (turn === 0 ? call('wait', {}) : answer(8)), {
      tools: new TestTools([wait]),
      skill: { availableTools: ['wait'], rewardWeights: REWARD },
    });
    const seeded = await seed({ groupCount: 1, groupSize: 1 });
    const sessionId = sessionsOf(seeded)[0] ?? '';
    await until(() => wait.ran.length === 1);
    const { length } = await readEvents(database.db, { sessionId });
    await appendEvents(database.db, [
      {
        sessionId,
        runId: seeded.runId,
        seq: length,
        atMs: 1,
        type: 'state.changed',
        data: { changes: { by: 'other' } },
      },
    ]);
    release();
    const run = await finished(seeded);
    expect(run.counts.completed).toBe(1);
    const log = await readEvents(database.db, { sessionId });
    expect(log[length]).toMatchObject({ type: 'state.changed', data: { changes: { by: 'other' } } });
    expect(eventsOf(log, 'tool.completed')).toHaveLength(1);
    expect(first.worker.size).toBe(0);
  });

  it('stop the trajectories of a cancelled run, told directly or by looking, and leave other runs alone', async () => {
    for (const told of [true, false]) {
      const worker = await start(
        ({ prompt }) => ({ text: answer(8), delayMs: prompt.includes('question 0') ? 60_000 : 1 }),
        { leaseMs: 300 },
      );
      const cancelled = await seed({ groupCount: 1, groupSize: 4 });
      await until(() => worker.backend.requests.length === 4);
      await markRunCancelled(database.db, cancelled.runId);
      if (told) worker.worker.cancelRun(cancelled.runId);
      const run = await finished(cancelled);
      expect(run.status).toBe('cancelled');
      expect(run.counts.cancelled).toBe(4);
      expect(run.groups[0]).toMatchObject({ completed: true, meanReward: null, hasSignal: null });
      expect(run.groups[0]?.trajectories.map((t) => [t.reward, t.advantages])).toEqual(Array(4).fill([null, null]));
      workers.delete(worker);
      await worker.stop();
    }
  });

  it('keep a trajectory with an impossible log-probability as failed, out of its group, and say where it was', async () => {
    for (const value of [Number.NaN, -9999, Number.POSITIVE_INFINITY]) {
      let bad = true;
      const worker = await start({
        canScore: true,
        kind: 'sampled',
        script: () => answer(8),
        score: (k) => {
          if (!bad || k !== 5) return -1;
          bad = false;
          return value;
        },
      });
      const seeded = await seed({ groupCount: 1, groupSize: 4 });
      const run = await finished(seeded);
      expect(run.counts).toMatchObject({ completed: 3, failed: 1 });
      const failed = run.groups[0]?.trajectories.find((t) => t.status === 'failed');
      expect(failed).toMatchObject({ reward: null, advantages: null });
      const log = await readEvents(database.db, {
        sessionId: (await getTrajectory(database.db, failed?.trajectoryId ?? '')).sessionId,
      });
      const position = (eventsOf(log, 'prompt.rendered')[0]?.tokens?.ids.length ?? 0) + 5;
      expect(failed?.errorMessage).toContain(
        `log-probability ${value} at token ${position} of trajectory ${failed?.trajectoryId}`,
      );
      // The mean is over the three that count.
      expect(run.groups[0]?.meanReward).toBe(0.5);
      workers.delete(worker);
      await worker.stop();
    }
  });

  it('keep tokens without a number as approximate where the backend cannot score', async () => {
    await start(() => ({ text: answer(8), logprob: (k) => (k === 2 ? Number.NaN : -1) }));
    const seeded = await seed({ groupCount: 1, groupSize: 1 });
    const run = await finished(seeded);
    const trajectoryId = run.groups[0]?.trajectories[0]?.trajectoryId ?? '';
    expect(run.counts.completed).toBe(1);
    expect((await getTokenSequence(database.db, { trajectoryId, sequenceIndex: 0 }))?.approximate).toBe(true);
  });

  it('record which log-probabilities a backend reports that cannot score again', async () => {
    await start({ kind: 'sampled', script: twoSteps });
    const seeded = await seed({ groupCount: 1, groupSize: 1 });
    const trajectoryId = (await finished(seeded)).groups[0]?.trajectories[0]?.trajectoryId ?? '';
    const sequence = await getTokenSequence(database.db, { trajectoryId, sequenceIndex: 0 });
    expect(sequence).toMatchObject({ logprobKind: 'sampled', approximate: false });
  });

  it('keep 40 MB of a tool whole beside the few tokens the model is shown', { timeout: 300_000 }, async () => {
    const tools = new TestTools();
    tools.told = 'a line of output, 32 bytes long\n'.repeat((40 * 1024 * 1024) / 32);
    await start(({ turn }) => (turn === 0 ? call('tell', { n: 1 }) : answer(8)), {
      tools,
      skill: { maxObservationTokens: 64, rewardWeights: REWARD },
    });
    const seeded = await seed({ groupCount: 1, groupSize: 1 });
    expect((await finished(seeded)).counts.completed).toBe(1);
    const log = await readEvents(database.db, { sessionId: sessionsOf(seeded)[0] ?? '' });
    const result = eventsOf(log, 'tool.completed')[0]?.data.result;
    expect(result?.observation).toContain('of 41943040 bytes cut here]');
    expect(result?.observation.length).toBeLessThan(200);
    const output = await getToolOutput(database.db, result?.truncated?.outputId ?? '');
    expect(output.content.length).toBe(40 * 1024 * 1024);
    expect(Buffer.from(output.content).equals(Buffer.from(tools.told))).toBe(true);
  });
});
