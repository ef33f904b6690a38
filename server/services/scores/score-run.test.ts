import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { saveBackend } from '../../../db/queries/catalog';
import { insertUser } from '../../../db/queries/sign-ins';
import { claimTrajectories, finishTrajectory } from '../../../db/queries/trajectories';
import { getTokenSequence, getTrajectory } from '../../../db/queries/trajectory-views';
import { describeOnBothDatabases, type TestDatabase } from '../../../db/testing/database';
import { systemAmbient } from '../../core/ambient';
import { parseBatchLine } from '../../core/batch/parse';
import { Conflict, Forbidden, Invalid, NotFound } from '../../core/errors';
import type { TokenSequence } from '../../core/tokens/chunk';
import { decodeTokens } from '../../core/tokens/wire';
import { segmentCode } from '../../core/vocabulary';
import { EmbeddedBackend } from '../../inference/embedded/embedded-backend';
import { writeTinyModel } from '../../inference/testing/tiny-model';
import { silentLogger } from '../../observability/logger';
import { listAudit } from '../audit/list-audit';
import type { ServiceContext } from '../context';
import { exportRun } from '../runs/export-run';
import { CountedBackend, countedLogprob } from '../testing/counted-backend';
import { idleProcess } from '../testing/idle-process';
import { insertTestRun, type TestRun } from '../testing/insert-test-run';
import { getTokens } from '../trajectories/get-tokens';
import { cancelScore } from './cancel-score';
import { listScores } from './list-scores';
import { scoreRun } from './score-run';
import { scoreStatus } from './score-status';

/** `mask` as text of 0 and 1; ids are the bytes of `text`, one a token. */
function sequenceOf(text: string, mask: string, index = 0): TokenSequence {
  const bytes = new TextEncoder().encode(text);
  const sampled = Uint8Array.from(mask, Number);
  return {
    index,
    ids: Int32Array.from(bytes),
    logprobs: Float32Array.from(sampled, (on) => (on ? -0.5 : Number.NaN)),
    mask: sampled,
    stepIndex: Int32Array.from(sampled, (on) => (on ? 0 : -1)),
    segment: Uint8Array.from(sampled, (on) => segmentCode(on ? 'thought' : 'user')),
    bytes,
    byteEnds: Uint32Array.from(bytes, (_, i) => i + 1),
    weightVersions: [],
    policyLogprobs: null,
    refLogprobs: null,
  };
}

/** Two sampled stretches with an observation between, and one after the last. */
const FIRST = sequenceOf('hello, abcd!see efgh?', '000000011110000011110');
const SECOND = sequenceOf('hello, wxyz', '00000001111', 1);

describeOnBothDatabases('scoring a run', (open) => {
  let database: TestDatabase;
  let now = Date.now();
  let ctx: ServiceContext;
  let run: TestRun;
  let backend: CountedBackend;
  /** Who needs it open. */
  let held = 0;
  const ids: string[] = [];

  beforeAll(async () => {
    database = await open();
    await insertUser(database.db, { id: 'usr_1', name: 'Ada', role: 'operator', createdAtMs: 1 });
    ctx = {
      database,
      // Entries of one moment have no order.
      ambient: { ...systemAmbient(), now: () => ++now },
      logger: silentLogger,
      actor: { userId: 'usr_1', name: 'Ada', role: 'operator', ipAddress: null },
      process: idleProcess({
        backendHeld: async () => {
          held += 1;
          const release = () => {
            held -= 1;
          };
          return { backend, release };
        },
      }),
    };
    run = await insertTestRun(ctx);
    const { db } = database;
    await db.transaction((tx) =>
      saveBackend(tx, { id: 'bck_x', name: 'judge', kind: 'vllm', settings: {}, isDefault: false, nowMs: 1 }),
    );
    // Three of four have ended; the third sampled from a server without ids.
    for (const { trajectoryId } of await claimTrajectories(db, { workerId: 'w', limit: 3, nowMs: 1, leaseMs: 1 })) {
      const approximate = ids.length === 2;
      const sequences = ids.length === 0 ? [FIRST, SECOND] : [FIRST];
      ids.push(trajectoryId);
      await db.transaction((tx) =>
        finishTrajectory(tx, {
          trajectoryId,
          workerId: 'w',
          status: 'completed',
          nowMs: 2,
          stepRewards: [1],
          stepComponents: [{}],
          stateKeys: ['s'],
          reward: 1,
          rewardComponents: {},
          success: true,
          endReason: 'answer',
          error: null,
          toolFailures: {},
          sandboxLevels: [],
          humanEdited: false,
          sequences: sequences.map((sequence) => ({ sequence, logprobKind: 'raw', truncated: false, approximate })),
        }),
      );
    }
  });
  beforeEach(() => {
    backend = new CountedBackend('judge');
  });
  // It may be closed for all that goes on here.
  afterEach(() => expect(held).toBe(0));

  const start = (more: object = {}) =>
    scoreRun({ ctx, input: { runId: run.runId, as: 'ref', backend: 'judge', ...more } });
  const ended = async () => {
    for (;;) {
      const job = await scoreStatus({ ctx, input: { runId: run.runId } });
      if (job && job.status !== 'running') return job;
      await sleep(5);
    }
  };
  const score = async (more: object = {}) => {
    await start(more);
    return ended();
  };
  const stored = async (which: number, sequenceIndex = 0) =>
    getTokenSequence(database.db, { trajectoryId: ids[which] ?? '', sequenceIndex });
  const expected = ({ ids: tokens, mask }: TokenSequence, weights: string) =>
    Float32Array.from(tokens, (id, k) => (mask[k] ? countedLogprob(id, k, weights) : Number.NaN));

  it('asks for what was sampled, given all before it, and keeps the numbers where something was sampled', async () => {
    expect(await start()).toMatchObject({ status: 'running', total: 4, done: 0, as: 'ref', backendName: 'judge' });
    expect(await ended()).toMatchObject({
      status: 'succeeded',
      total: 4,
      done: 4,
      scored: 3,
      alreadyScored: 0,
      approximate: 1,
      error: null,
    });
    const pair = backend.asked.find(({ promptIds, completionIds }) => promptIds.length + completionIds.length === 20);
    // What follows the last sampled token is not asked for.
    expect(Buffer.from(pair?.promptIds ?? []).toString()).toBe('hello, ');
    expect(Buffer.from(pair?.completionIds ?? []).toString()).toBe('abcd!see efgh');
    expect((await stored(0))?.refLogprobs).toEqual(expected(FIRST, 'w1'));
    expect((await stored(0, 1))?.refLogprobs).toEqual(expected(SECOND, 'w1'));
    expect(await stored(0)).toMatchObject({ policyLogprobs: null, entropy: null, alternatives: null });
    expect((await stored(2))?.refLogprobs).toBeNull();
    const detail = await getTrajectory(database.db, ids[0] ?? '');
    expect(detail.sequences[0]).toMatchObject({
      policyScoredBy: null,
      refScoredBy: { backend: 'judge', weightVersion: 'w1' },
    });
    expect((await listAudit({ ctx, input: { limit: 2 } })).items).toMatchObject([
      { actionType: 'score_run', status: 'success', details: { scored: 3 } },
      { actionType: 'score_run', status: 'started' },
    ]);
  });

  it('passes over what the same weights have scored, unless asked again or the weights are others', async () => {
    expect(await score()).toMatchObject({ scored: 0, alreadyScored: 3, done: 4 });
    expect(backend.asked).toHaveLength(0);
    expect(await score({ again: true })).toMatchObject({ scored: 3, alreadyScored: 0 });
    backend.weights = 'w2';
    expect(await score()).toMatchObject({ scored: 3 });
    expect((await stored(1))?.refLogprobs).toEqual(expected(FIRST, 'w2'));
    expect(await score({ as: 'policy' })).toMatchObject({ scored: 3 });
    expect((await stored(1))?.policyLogprobs).toEqual(expected(FIRST, 'w2'));
  });

  it('keeps entropy and alternatives on request, sends them to the page and exports the entropy', async () => {
    expect(await score({ alternatives: 2, entropy: true })).toMatchObject({ scored: 3 });
    const tokens = await stored(0);
    expect([...(tokens?.entropy?.subarray(6, 12) ?? [])]).toEqual([Number.NaN, 0, 0.5, 1, 1.5, Number.NaN]);
    expect(tokens?.alternatives?.k).toBe(2);
    expect([...(tokens?.alternatives?.ids.subarray(12, 18) ?? [])]).toEqual([-1, -1, 0, 1, 2, 3]);
    expect(tokens?.alternatives?.logprobs[15]).toBe(-1);
    const { wire } = await getTokens({ ctx, input: { trajectoryId: ids[0] ?? '', sequence: 0 } });
    expect(decodeTokens(wire)).toMatchObject({ entropy: tokens?.entropy, alternatives: tokens?.alternatives });
    let first = '';
    for await (const line of exportRun({ ctx, input: { runId: run.runId } })) first ||= line;
    const line = parseBatchLine(first, 1);
    expect(line.extra).toEqual({ entropy: Array.from(tokens?.entropy ?? [], (x) => (Number.isNaN(x) ? null : x)) });
    expect(Float32Array.from(line.tokens.refLogprobs ?? [])).toEqual(tokens?.refLogprobs);
    // Fewer are there already; more are not, nor when another column's have taken their place.
    expect(await score({ alternatives: 1 })).toMatchObject({ scored: 0 });
    expect(await score({ alternatives: 3 })).toMatchObject({ scored: 3 });
    expect(await score({ as: 'policy', alternatives: 3 })).toMatchObject({ scored: 3 });
    expect(await score({ alternatives: 3 })).toMatchObject({ scored: 3 });
    // Who does not ask for them leaves them.
    await score({ again: true });
    expect((await stored(0))?.alternatives?.k).toBe(3);
  });

  it('remembers the last job of each target', async () => {
    backend.weights = 'w4';
    await score({ as: 'policy' });
    await score();
    const of = async () => (await listScores({ ctx, input: { runId: run.runId } })).map((job) => [job.as, job.scored]);
    expect(await of()).toEqual([
      ['ref', 3],
      ['policy', 3],
    ]);
    await score({ as: 'policy' });
    expect(await of()).toEqual([
      ['policy', 0],
      ['ref', 3],
    ]);
  });

  it('scores a page again when the weights moved meanwhile, so that its numbers are of one version', async () => {
    let moved = false;
    backend.weights = 'w5';
    backend.beforeScore = async ({ promptIds }) => {
      if (moved || promptIds.length === 0) return;
      moved = true;
      backend.weights = 'w7';
    };
    expect(await score()).toMatchObject({ status: 'succeeded', scored: 3 });
    expect((await stored(0))?.refLogprobs).toEqual(expected(FIRST, 'w7'));
    expect((await getTrajectory(database.db, ids[1] ?? '')).sequences[0]?.refScoredBy?.weightVersion).toBe('w7');
  });

  it('goes on one job a run at a time, and is stopped with what was scored kept', async () => {
    const before = await stored(0);
    backend.beforeScore = (_pair, signal) =>
      new Promise((_resolve, reject) => {
        signal?.addEventListener('abort', () => reject(signal.reason));
      });
    await start({ again: true });
    await expect(start()).rejects.toBeInstanceOf(Conflict);
    expect(held).toBe(1);
    await cancelScore({ ctx, input: { runId: run.runId } });
    expect(await ended()).toMatchObject({ status: 'cancelled', error: null, done: 0 });
    expect(await stored(0)).toEqual(before);
    await expect(cancelScore({ ctx, input: { runId: run.runId } })).rejects.toBeInstanceOf(Conflict);
  });

  it.each([
    ['no number', Number.NaN],
    ['minus 9999', -9999],
    ['infinity', Number.POSITIVE_INFINITY],
    ['a probability above one', 0.5],
  ])('refuses %s on a sampled token, with trajectory and position, and writes nothing', async (_what, offset) => {
    backend.offset = offset;
    backend.weights = 'w8';
    const job = await score();
    expect(job.status).toBe('failed');
    expect(job.error).toMatch(/^Trajectory trj_\w+, token sequence \d, could not be scored: .* position \d+/);
    expect((await stored(0))?.refLogprobs).toEqual(expected(FIRST, 'w7'));
  });

  it('refuses a backend that cannot score, one with another vocabulary, and what does not exist', async () => {
    backend = new CountedBackend('judge', { canScore: false });
    await expect(start()).rejects.toThrow(/The backend judge cannot score/);
    backend = new CountedBackend('judge', { entropy: false });
    await expect(start({ entropy: true })).rejects.toThrow(/gives no entropy/);
    backend = new CountedBackend('judge');
    backend.shift = 1;
    expect((await score({ again: true })).error).toMatch(
      /its vocabulary is not the one that sampled \(the token \d+ is/,
    );
    backend.shift = 1000;
    expect(backend.asked).toHaveLength(0);
    await expect(start({ backend: 'nobody' })).rejects.toBeInstanceOf(NotFound);
    await expect(start({ runId: ctx.ambient.newId('run') })).rejects.toBeInstanceOf(NotFound);
    await expect(start({ alternatives: 6 })).rejects.toBeInstanceOf(Invalid);
    const viewer = { ...ctx, actor: { ...ctx.actor, role: 'viewer' as const } };
    await expect(
      scoreRun({ ctx: viewer, input: { runId: run.runId, as: 'ref', backend: 'judge' } }),
    ).rejects.toBeInstanceOf(Forbidden);
  });
});

describe('scores of a real model', () => {
  let folder: string;
  let model: EmbeddedBackend;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'ts-score-'));
    await writeTinyModel(join(folder, 'tiny.gguf'));
    model = await EmbeddedBackend.open({
      name: 'tiny',
      modelPath: join(folder, 'tiny.gguf'),
      threads: 1,
      logger: silentLogger,
    });
  });
  afterAll(async () => {
    await model?.close();
    await rm(folder, { recursive: true, force: true });
  });

  it('are the numbers it sampled with', async () => {
    const { scoreSequence } = await import('./score-sequence');
    const prompt = await model.tokenize('the tin of', { special: false });
    const options = { maxTokens: 12, temperature: 1, topP: 1, topK: 0, minP: 0, seed: 5, stop: [] };
    const [settled] = await model.generate([{ promptIds: prompt.ids, options, affinityKey: 'a' }]);
    if (settled?.status !== 'fulfilled') throw new Error('the model did not answer');
    const { ids: sampled, logprobs } = settled.value;
    const ids = Int32Array.from([...prompt.ids, ...sampled, ...prompt.ids]);
    const mask = Uint8Array.from(ids, (_, k) =>
      k >= prompt.ids.length && k < prompt.ids.length + sampled.length ? 1 : 0,
    );
    const signal = new AbortController().signal;
    const scores = await scoreSequence(model, { ids, mask }, { alternatives: 0, entropy: false, signal });
    expect(scores.extras).toBeNull();
    mask.forEach((on, k) => {
      const score = scores.logprobs[k] as number;
      if (on) expect(score).toBeCloseTo(logprobs[k - prompt.ids.length] as number, 3);
      else expect(score).toBeNaN();
    });
  });
});
