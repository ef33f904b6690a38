import { beforeAll, describe, expect, it } from 'vitest';
import { Conflict } from '../../server/core/errors';
import type { TokenSequence } from '../../server/core/tokens/chunk';
import { describeOnBothDatabases, type TestDatabase } from '../testing/database';
import { type SeededRun, seedRun } from '../testing/seed';
import { readExportPage } from './export';
import {
  completeGroup,
  completeRunIfEnded,
  endedGroupIds,
  markRunCancelled,
  takeEndedGroup,
  unfinishedRunIds,
} from './groups';
import { countByStatus, countFailures, getRun } from './runs';
import { fromTokenColumns, toTokenColumns } from './token-columns';
import {
  cancelQueued,
  claimTrajectories,
  type FinishTrajectoryInput,
  finishTrajectory,
  releaseAll,
  releaseWorker,
  renewLeases,
  startRuns,
} from './trajectories';
import { getTokenSequence, getTrajectory } from './trajectory-views';

function sequenceOf(n: number, index = 0): TokenSequence {
  return {
    index,
    ids: Int32Array.from({ length: n }, (_, i) => i - 1),
    logprobs: Float32Array.from({ length: n }, (_, i) => (i % 2 ? Number.NaN : -i / 3)),
    mask: Uint8Array.from({ length: n }, (_, i) => (i + 1) % 2),
    stepIndex: Int32Array.from({ length: n }, (_, i) => i - 1),
    segment: Uint8Array.from({ length: n }, (_, i) => i % 8),
    bytes: Uint8Array.from({ length: 2 * n }, (_, i) => i % 256),
    byteEnds: Uint32Array.from({ length: n }, (_, i) => 2 * i + 2),
    weightVersions: [{ version: 'base', start: 0, end: n }],
    policyLogprobs: null,
    refLogprobs: Float32Array.from({ length: n }, (_, i) => -i),
  };
}

function ending(trajectoryId: string, workerId: string, more: Partial<FinishTrajectoryInput> = {}) {
  return {
    trajectoryId,
    workerId,
    status: 'completed',
    nowMs: 2000,
    stepRewards: [0.25, 0.5],
    stepComponents: [{ tool_accuracy: 1 }],
    stateKeys: ['a', 'b'],
    reward: 0.75,
    rewardComponents: { answer_f1: 1 },
    success: true,
    endReason: 'answer',
    error: null,
    toolFailures: {},
    sandboxLevels: ['wasm'],
    humanEdited: false,
    sequences: [],
    ...more,
  } satisfies FinishTrajectoryInput;
}

describe('token columns', () => {
  it('return what was put in, bit by bit, and refuse columns of unlike length', () => {
    const sequence = sequenceOf(33);
    const columns = toTokenColumns(sequence);
    expect(columns).toMatchObject({ length: 33, generatedLength: 17 });
    expect(fromTokenColumns({ ...columns, sequenceIndex: 0, weightVersions: sequence.weightVersions })).toEqual({
      ...sequence,
      entropy: null,
      alternatives: null,
    });
    expect(() => toTokenColumns({ ...sequence, logprobs: new Float32Array(32) })).toThrow('not all of one length');
    expect(() => fromTokenColumns({ ...columns, length: 32, sequenceIndex: 0, weightVersions: [] })).toThrow('damaged');
  });
});

describeOnBothDatabases('the queue', (open) => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await open();
  });
  const claim = (workerId: string, limit = 1000, nowMs = 1000) =>
    claimTrajectories(database.db, { workerId, limit, nowMs, leaseMs: 100 });
  /** Everything of earlier tests leaves the queue. */
  const clear = () => database.sql`update trajectories set status = 'cancelled' where status in ('queued', 'running')`;

  it('hands out whole groups in order, with the task as it was stored', async () => {
    await clear();
    const { runId, groups } = await seedRun(database, { groupCount: 3, groupSize: 4, answer: '42' });
    const first = await claim('w1', 5);
    const members = groups.flatMap((group) => group.members.map((member) => member.id));
    expect(first.map((t) => t.trajectoryId)).toEqual(members.slice(0, 5));
    expect(first[4]).toMatchObject({
      runId,
      groupPosition: 1,
      member: 0,
      claims: 1,
      startedAtMs: 1000,
      task: { taskId: 'task-1', prompt: 'question 1', answer: '42', metadata: { position: 1 }, skill: null },
    });
    expect((await claim('w2')).map((t) => t.trajectoryId)).toEqual(members.slice(5));
    expect(await startRuns(database.db, [runId])).toEqual([runId]);
    expect(await startRuns(database.db, [runId])).toEqual([]);
  });

  it('never gives one trajectory to two of many workers that claim at once', async () => {
    await clear();
    const { groups } = await seedRun(database, { groupCount: 30, groupSize: 8 });
    const taken: string[] = [];
    await Promise.all(
      Array.from({ length: 12 }, async (_, w) => {
        for (;;) {
          const claimed = await claim(`worker-${w}`, 3);
          if (claimed.length === 0) return;
          taken.push(...claimed.map((t) => t.trajectoryId));
        }
      }),
    );
    expect(taken).toHaveLength(240);
    expect(new Set(taken)).toEqual(new Set(groups.flatMap((group) => group.members.map((member) => member.id))));
  });

  it('gives an unrenewed trajectory to the next worker, and then refuses the first one’s end', async () => {
    await clear();
    await seedRun(database, { groupCount: 1, groupSize: 2 });
    const [kept, lost] = await claim('slow', 2, 1000);
    if (!kept || !lost) throw new Error('two were queued');
    const renew = (nowMs: number, held = [kept, lost]) => {
      const trajectoryIds = held.map(({ trajectoryId }) => trajectoryId);
      return renewLeases(database.db, { workerId: 'slow', trajectoryIds, nowMs, leaseMs: 100 });
    };
    expect(await renew(1050)).toHaveLength(2);
    expect(await claim('quick', 1, 1149)).toEqual([]);
    // What it does not hold any more, though its name stands there, runs out.
    expect(await renew(1100, [lost])).toEqual([lost.trajectoryId]);
    const [taken] = await claim('quick', 2, 1151);
    expect(taken).toMatchObject({ trajectoryId: kept.trajectoryId, claims: 2, startedAtMs: 1000 });
    expect(await renew(1200)).toEqual([lost.trajectoryId]);
    await expect(
      database.db.transaction((tx) => finishTrajectory(tx, ending(kept.trajectoryId, 'slow'))),
    ).rejects.toBeInstanceOf(Conflict);
    await database.db.transaction((tx) => finishTrajectory(tx, ending(kept.trajectoryId, 'quick')));
    await expect(
      database.db.transaction((tx) => finishTrajectory(tx, ending(kept.trajectoryId, 'quick'))),
    ).rejects.toBeInstanceOf(Conflict);
  });

  it('puts back what a worker held, or what everybody held', async () => {
    await clear();
    await seedRun(database, { groupCount: 1, groupSize: 4 });
    await claim('a', 2);
    await claim('b', 2);
    expect(await releaseWorker(database.db, 'a')).toBe(2);
    expect(await claim('c')).toHaveLength(2);
    expect(await releaseAll(database.db)).toBe(4);
    expect(await claim('d')).toHaveLength(4);
  });

  it('queues 1,000 groups of 8 in one transaction', async () => {
    await clear();
    const { runId } = await seedRun(database, { groupCount: 1000, groupSize: 8 });
    expect((await countByStatus(database.db, [runId])).get(runId)?.counts.queued).toBe(8000);
    const claimed = await claim('w', 8);
    expect(new Set(claimed.map((t) => t.groupPosition))).toEqual(new Set([0]));
  });
});

describeOnBothDatabases('the end of trajectories, groups and runs', (open) => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await open();
  });

  /** One transaction a trajectory, as a worker does it; returns what it completed. */
  async function finish(run: SeededRun, trajectoryId: string, groupId: string, more: Partial<FinishTrajectoryInput>) {
    return await database.db.transaction(async (tx) => {
      await finishTrajectory(tx, ending(trajectoryId, 'w', more));
      const ended = await takeEndedGroup(tx, groupId);
      if (!ended) return { group: false, run: false };
      const advantages = ended.members.map((m) => ({ trajectoryId: m.trajectoryId, advantages: [m.member] }));
      const group = await completeGroup(tx, {
        groupId,
        nowMs: 3000,
        meanReward: 0.5,
        stdReward: 0.1,
        countedMembers: ended.members.length,
        hasSignal: true,
        advantages,
      });
      return { group, run: (await completeRunIfEnded(tx, { runId: run.runId, nowMs: 4000 })).completed };
    });
  }

  it('completes each group and the run exactly once when all members end at the same moment', async () => {
    const run = await seedRun(database, { groupCount: 6, groupSize: 8 });
    await claimTrajectories(database.db, { workerId: 'w', limit: 100, nowMs: 1, leaseMs: 1e9 });
    const outcomes = await Promise.all(
      run.groups.flatMap((group) => group.members.map((member) => finish(run, member.id, group.id, {}))),
    );
    expect(outcomes.filter((o) => o.group)).toHaveLength(6);
    expect(outcomes.filter((o) => o.run)).toHaveLength(1);
    const detail = await getRun(database.db, run.runId);
    expect(detail).toMatchObject({ status: 'completed', finishedAtMs: 4000, meanReward: 0.75, successRate: 1 });
    expect(detail.groups.map((g) => g.completed)).toEqual(Array(6).fill(true));
    expect(detail.groups[2]?.trajectories.map((t) => t.advantages)).toEqual([0, 1, 2, 3, 4, 5, 6, 7].map((m) => [m]));
    expect(await unfinishedRunIds(database.db)).not.toContain(run.runId);
  });

  it('keeps failures out of the means, counts them with an example, and survives hostile error text', async () => {
    const run = await seedRun(database, { groupCount: 1, groupSize: 3 });
    await claimTrajectories(database.db, { workerId: 'w', limit: 3, nowMs: 1, leaseMs: 1e9 });
    const group = run.groups[0];
    const [a, b, c] = group?.members ?? [];
    if (!group || !a || !b || !c) throw new Error('three members');
    const error = { message: 'broke \0 here', stack: 'at\0' };
    await finish(run, a.id, group.id, { status: 'failed', reward: null, success: null, endReason: 'error', error });
    await finish(run, b.id, group.id, { reward: 0.5, success: false, toolFailures: { timeout: 2, error: 1 } });
    await finish(run, c.id, group.id, { reward: 1, toolFailures: { timeout: 1 } });
    expect(await getRun(database.db, run.runId)).toMatchObject({ meanReward: 0.75, successRate: 0.5 });
    expect(await countFailures(database.db, run.runId)).toEqual([
      { kind: 'tool: timeout', count: 3, exampleTrajectoryId: [b.id, c.id].sort()[0] },
      { kind: 'broke \u2400 here', count: 1, exampleTrajectoryId: a.id },
      { kind: 'tool: error', count: 1, exampleTrajectoryId: b.id },
    ]);
  });

  it('keeps tokens bit by bit and exports every sequence once, page by page', async () => {
    const run = await seedRun(database, { groupCount: 2, groupSize: 2 });
    await claimTrajectories(database.db, { workerId: 'w', limit: 4, nowMs: 1, leaseMs: 1e9 });
    const kind = { logprobKind: 'raw' as const, truncated: false, approximate: false };
    for (const group of run.groups)
      for (const [m, member] of group.members.entries())
        await finish(run, member.id, group.id, {
          sequences: m === 0 ? [0, 1].map((i) => ({ sequence: sequenceOf(5 + i, i), ...kind })) : [],
        });
    const first = run.groups[0]?.members[0]?.id ?? '';
    const stored = await getTokenSequence(database.db, { trajectoryId: first, sequenceIndex: 1 });
    expect(stored).toEqual({ ...sequenceOf(6, 1), ...kind, entropy: null, alternatives: null });
    expect(await getTokenSequence(database.db, { trajectoryId: first, sequenceIndex: 2 })).toBeNull();
    expect(await getTrajectory(database.db, first)).toMatchObject({
      reference: '42',
      generatedTokens: 6,
      totalTokens: 11,
      final: true,
      sequences: [
        { index: 0, length: 5 },
        { index: 1, length: 6 },
      ],
      siblings: [{ member: 0 }, { member: 1 }],
    });
    const seen: string[] = [];
    for (let after = null as Awaited<ReturnType<typeof readExportPage>>['next']; ; ) {
      const page = await readExportPage(database.db, { runId: run.runId, after, limit: 2 });
      if (page.rows.length === 0) break;
      seen.push(...page.rows.map((r) => `${r.groupPosition}.${r.trajectory.member}.${r.sequence?.index ?? '-'}`));
      after = page.next;
    }
    expect(seen).toEqual(['0.0.0', '0.0.1', '0.1.-', '1.0.0', '1.0.1', '1.1.-']);
  });

  it('cancels what is queued and names the groups that ended by it', async () => {
    const run = await seedRun(database, { groupCount: 2, groupSize: 2 });
    const [running] = await claimTrajectories(database.db, { workerId: 'w', limit: 1, nowMs: 1, leaseMs: 1e9 });
    expect(await markRunCancelled(database.db, run.runId)).toBe(true);
    const cancelled = await cancelQueued(database.db, { runId: run.runId, nowMs: 9, reason: 'cancelled by Ada' });
    expect(cancelled).toHaveLength(3);
    expect(cancelled.map((t) => t.trajectoryId)).not.toContain(running?.trajectoryId);
    expect(await endedGroupIds(database.db, run.runId)).toEqual([run.groups[1]?.id]);
    const open = await database.db.transaction((tx) => completeRunIfEnded(tx, { runId: run.runId, nowMs: 10 }));
    expect(open).toEqual({ completed: false, status: 'cancelled' });
  });
});
