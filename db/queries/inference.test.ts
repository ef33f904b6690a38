import { beforeAll, describe, expect, it } from 'vitest';
import { fixedAmbient } from '../../server/core/ambient';
import { Conflict } from '../../server/core/errors';
import { describeOnBothDatabases, type TestDatabase } from '../testing/database';
import { type SeededRun, seedRun } from '../testing/seed';
import { CONTROL, keepKeysOf, listBackendKeys, removeBackendKey, saveBackendKey } from './backend-keys';
import { getBackend, listBackends, removeBackend, saveBackend, setBackendPaused } from './catalog';
import { requeueTrajectory } from './give-back';
import { getRun } from './runs';
import { keepServerLabel, serverLabel } from './server-labels';
import { claimTrajectories } from './trajectories';
import { getTrajectory } from './trajectory-views';
import {
  beginWeightUpdate,
  endWeightUpdate,
  listWeightUpdates,
  renewWeightUpdate,
  settleWeightUpdates,
  succeededVersions,
  unfinishedUpdate,
} from './weight-updates';

const ambient = fixedAmbient(undefined, 41);

describeOnBothDatabases('what belongs to a backend', (open) => {
  let database: TestDatabase;
  let run: SeededRun;
  let backendId: string;
  beforeAll(async () => {
    database = await open();
    run = await seedRun(database, { groupCount: 1, groupSize: 2 });
    backendId = (await getBackend(database.db)).id;
  });

  const begin = (version: string, nowMs: number) =>
    database.db.transaction((tx) =>
      beginWeightUpdate(tx, {
        id: ambient.newId('wgt'),
        backendId,
        version,
        source: { kind: 'checkpoint', path: '/weights' },
        inFlight: 'drain',
        requestedBy: null,
        nowMs,
        leaseUntilMs: nowMs + 100,
      }),
    );
  const newest = async (nowMs: number) =>
    (await listWeightUpdates(database.db, { backendId, nowMs, limit: 1 })).items[0];

  it('keeps one key a replica, one for all and one that signs', async () => {
    const keys = async () =>
      (await listBackendKeys(database.db, backendId))
        .map(({ url, ciphertext }) => `${url} ${ciphertext.join()}`)
        .sort();
    await database.db.transaction(async (tx) => {
      for (const [url, byte] of [
        [null, 1],
        ['http://a', 2],
        ['http://b', 3],
        [null, 4],
        ['http://a', 5],
        [CONTROL, 6],
      ] as const)
        await saveBackendKey(tx, { backendId, url, ciphertext: Uint8Array.of(byte), nowMs: 1 });
    });
    expect(await keys()).toEqual(['control 6', 'http://a 5', 'http://b 3', 'null 4']);
    await database.db.transaction((tx) => keepKeysOf(tx, { backendId, urls: ['http://a'] }));
    expect(await keys()).toEqual(['control 6', 'http://a 5', 'null 4']);
    expect(await database.db.transaction((tx) => removeBackendKey(tx, { backendId, url: null }))).toBe(true);
    expect(await database.db.transaction((tx) => removeBackendKey(tx, { backendId, url: null }))).toBe(false);
    await database.db.transaction((tx) => keepKeysOf(tx, { backendId, urls: [] }));
    expect(await keys()).toEqual(['control 6']);
    expect(await database.db.transaction((tx) => removeBackendKey(tx, { backendId, url: CONTROL }))).toBe(true);
    expect(await keys()).toEqual([]);
  });

  it('keeps the label of a server as it was given last, for one start of it', async () => {
    const one = { backendId, url: 'http://one:8000', fingerprint: 'first start' };
    expect(await serverLabel(database.db, one)).toBeNull();
    await keepServerLabel(database.db, { ...one, version: 'v1' });
    await keepServerLabel(database.db, { ...one, version: 'v2' });
    expect(await serverLabel(database.db, one)).toBe('v2');
    expect(await serverLabel(database.db, { ...one, url: 'http://two:8000' })).toBeNull();
    const again = { ...one, fingerprint: 'second start' };
    expect(await serverLabel(database.db, again)).toBeNull();
    await keepServerLabel(database.db, { ...again, version: 'v3' });
    expect(await serverLabel(database.db, one)).toBeNull();
    expect(await serverLabel(database.db, again)).toBe('v3');
  });

  it('numbers weight updates, lets one go on at a time and takes an abandoned one for failed', async () => {
    expect(await begin('a', 1_000)).toEqual({ number: 1 });
    await expect(begin('b', 1_050)).rejects.toThrow(/is being updated to a now/);
    const first = await newest(1_050);
    expect(first).toMatchObject({ status: 'running', number: 1, source: { kind: 'checkpoint', path: '/weights' } });
    await renewWeightUpdate(database.db, { id: first?.id ?? '', leaseUntilMs: 1_200 });
    await expect(begin('b', 1_150)).rejects.toBeInstanceOf(Conflict);
    await database.db.transaction((tx) =>
      endWeightUpdate(tx, { id: first?.id ?? '', error: null, unsettled: false, nowMs: 1_160 }),
    );

    expect(await begin('b', 2_000)).toEqual({ number: 2 });
    expect(await newest(2_050)).toMatchObject({ status: 'running' });
    expect(await newest(2_200)).toMatchObject({
      status: 'failed',
      error: expect.stringMatching(/stopped in the middle/),
    });
    expect(await begin('c', 2_200)).toEqual({ number: 3 });
    const third = await newest(2_200);
    await database.db.transaction((tx) =>
      endWeightUpdate(tx, { id: third?.id ?? '', error: null, unsettled: false, nowMs: 2_300 }),
    );
    expect(await succeededVersions(database.db, backendId)).toEqual(['a', 'c']);

    const page = await listWeightUpdates(database.db, { backendId, nowMs: 3_000, limit: 2 });
    expect(page).toMatchObject({ total: 3, nextCursor: '2', items: [{ number: 3 }, { number: 2, status: 'failed' }] });
    const rest = await listWeightUpdates(database.db, { backendId, nowMs: 3_000, cursor: page.nextCursor });
    expect(rest).toMatchObject({ nextCursor: null, items: [{ number: 1, status: 'succeeded' }] });
    expect(JSON.stringify(page)).not.toMatch(/lease|unsettled/);
  });

  it('knows the update whose end nobody saw, until its servers are made sure of or a later one succeeds', async () => {
    const unfinished = (nowMs: number) => unfinishedUpdate(database.db, { backendId, nowMs });
    const end = async (nowMs: number, error: string | null, unsettled: boolean) => {
      const id = (await newest(nowMs))?.id ?? '';
      await database.db.transaction((tx) => endWeightUpdate(tx, { id, error, unsettled, nowMs }));
    };
    // What a later one that succeeded came after is settled with it.
    expect(await unfinished(4_000)).toBeNull();
    await begin('d', 4_000);
    const before = ['a', 'c'].map((version) => ({ version, source: { kind: 'checkpoint', path: '/weights' } }));
    expect(await unfinished(4_050)).toMatchObject({ version: 'd', goesOn: true, before, inFlight: 'drain' });
    expect(await unfinished(4_200)).toMatchObject({ version: 'd', goesOn: false });
    await settleWeightUpdates(database.db, { backendId, nowMs: 4_050 });
    expect((await newest(4_050))?.status).toBe('running');
    await settleWeightUpdates(database.db, { backendId, nowMs: 4_200 });
    expect(await unfinished(4_200)).toBeNull();
    expect(await newest(4_200)).toMatchObject({
      status: 'failed',
      finishedAtMs: 4_200,
      error: expect.stringMatching(/stopped in the middle/),
    });

    await begin('e', 5_000);
    await end(5_050, 'Old weights go on serving.', false);
    expect(await unfinished(5_050)).toBeNull();
    await begin('f', 5_100);
    await end(5_150, 'It stays paused.', true);
    await begin('g', 5_200);
    await end(5_250, 'No such folder.', false);
    // One that failed without having changed anything settles nothing.
    expect(await unfinished(5_300)).toMatchObject({ version: 'f', goesOn: false, before });
    // Nor does one that was left in the middle, when the next begins.
    await begin('h', 5_300);
    await begin('i', 5_500);
    await end(5_550, 'No such folder.', false);
    expect(await unfinished(5_600)).toMatchObject({ version: 'h' });
    await settleWeightUpdates(database.db, { backendId, nowMs: 5_600 });
    expect(await unfinished(5_600)).toBeNull();
    await begin('j', 6_000);
    await end(6_010, null, false);
    expect(await succeededVersions(database.db, backendId)).toEqual(['a', 'c', 'j']);
  });

  it('keeps that an operator paused a backend, through changes of its settings', async () => {
    const paused = async () => (await getBackend(database.db)).paused;
    const { id, name, kind, settings, isDefault } = await getBackend(database.db);
    expect(await paused()).toBe(false);
    await database.db.transaction((tx) => setBackendPaused(tx, { backendId, paused: true }));
    const save = (change: { kind?: typeof kind }) =>
      database.db.transaction((tx) => saveBackend(tx, { id, name, settings, isDefault, nowMs: 1, kind, ...change }));
    await save({ kind: 'vllm' });
    expect(await paused()).toBe(true);
    await save({ kind: 'embedded' });
    expect(await paused()).toBe(false);
    await save({});
  });

  it('begins two updates at once only one after the other', async () => {
    const settled = await Promise.allSettled([begin('x', 9_000), begin('y', 9_000), begin('z', 9_000)]);
    expect(settled.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    for (const one of settled) if (one.status === 'rejected') expect(one.reason).toBeInstanceOf(Conflict);
  });

  it('grows its revision when it must be opened anew, and not when only its check is new', async () => {
    const save = (settings: object, reopen: boolean) =>
      database.db.transaction((tx) =>
        saveBackend(tx, {
          id: ambient.newId('bck'),
          name: 'remote',
          kind: 'vllm',
          settings: { ...settings },
          isDefault: false,
          reopen,
          nowMs: 1,
        }),
      );
    const revision = async () => (await getBackend(database.db, 'remote')).revision;
    await save({ a: 1 }, true);
    const before = await revision();
    await save({ a: 1, check: 1 }, false);
    expect(await revision()).toBe(before);
    await save({ a: 2 }, true);
    expect(await revision()).toBe(before + 1);
  });

  it('is removed with its keys and updates, unless a run was made with it', async () => {
    await expect(database.db.transaction((tx) => removeBackend(tx, { backendId, name: 'embedded' }))).rejects.toThrow(
      'The backend embedded cannot be removed: the run a run was made with it.',
    );
    const { id } = await getBackend(database.db, 'remote');
    await database.db.transaction(async (tx) => {
      await saveBackendKey(tx, { backendId: id, url: null, ciphertext: Uint8Array.of(1), nowMs: 1 });
      await keepServerLabel(tx, { backendId: id, url: 'http://one:8000', fingerprint: 'start', version: 'v1' });
      await removeBackend(tx, { backendId: id, name: 'remote' });
    });
    expect((await listBackends(database.db)).map(({ name }) => name)).not.toContain('remote');
    expect(await listBackendKeys(database.db, id)).toEqual([]);
  });

  it('begins a trajectory anew in a log of its own, only for the worker that holds it', async () => {
    const claimed = await claimTrajectories(database.db, { workerId: 'w', limit: 1, nowMs: 5_000, leaseMs: 100 });
    const trajectoryId = claimed[0]?.trajectoryId ?? '';
    expect(claimed[0]).toMatchObject({ redone: 0, claims: 1 });
    const again = { trajectoryId, sessionId: ambient.newId('ses') };
    expect(await requeueTrajectory(database.db, { ...again, workerId: 'other' })).toBe(false);
    expect(await requeueTrajectory(database.db, { ...again, workerId: 'w' })).toBe(true);
    expect(await requeueTrajectory(database.db, { ...again, workerId: 'w' })).toBe(false);
    const [taken] = await claimTrajectories(database.db, { workerId: 'v', limit: 1, nowMs: 6_000, leaseMs: 100 });
    expect(taken).toMatchObject({ ...again, redone: 1, claims: 1, startedAtMs: 6_000 });
    expect((await getTrajectory(database.db, trajectoryId)).redone).toBe(1);
    expect((await getRun(database.db, run.runId)).redone).toBe(1);
  });
});

describe('the cursor of weight updates', () => {
  it('is refused when no list gave it', async () => {
    await expect(listWeightUpdates({} as never, { backendId: 'x', nowMs: 0, cursor: 'DROP' })).rejects.toThrow(
      /page cursor/,
    );
  });
});
