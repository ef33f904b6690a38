import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, beforeEach, expect, it } from 'vitest';
import { listBackendKeys } from '../../../db/queries/backend-keys';
import { getBackend as backendRow, saveBackend } from '../../../db/queries/catalog';
import { insertUser } from '../../../db/queries/sign-ins';
import { unfinishedUpdate } from '../../../db/queries/weight-updates';
import { describeOnBothDatabases, type TestDatabase } from '../../../db/testing/database';
import { systemAmbient } from '../../core/ambient';
import { Cancelled, Conflict, Forbidden, Invalid, NotFound, Unavailable } from '../../core/errors';
import type { BackendCapabilities, BackendCheck } from '../../core/inference';
import type { Role } from '../../core/vocabulary';
import { silentLogger } from '../../observability/logger';
import { listAudit } from '../audit/list-audit';
import type { RunningProcess, ServerToCheck, ServiceContext } from '../context';
import { readBackendKeys } from '../secrets/backend-keys';
import { SecretBox } from '../secrets/secret-box';
import { checkOf } from '../testing/check-of';
import { CountedBackend } from '../testing/counted-backend';
import { idleProcess } from '../testing/idle-process';
import { insertTestRun } from '../testing/insert-test-run';
import { addBackend } from './add-backend';
import { changeBackend } from './change-backend';
import { checkServer, recheckBackend } from './check-backend';
import { getBackend } from './get-backend';
import { listBackends } from './list-backends';
import { listWeightUpdates } from './list-weight-updates';
import { pauseBackend } from './pause-backend';
import { removeBackend } from './remove-backend';
import { resumeBackend } from './resume-backend';
import { updateWeights } from './update-weights';

const KEY = 'sk-secret-abc';
const A = 'http://gpu-1:8000';
const B = 'http://gpu-2:8000';

describeOnBothDatabases('backends on servers', (open) => {
  let database: TestDatabase;
  let now = Date.now();
  let asked: ServerToCheck[];
  let answer: (wanted: ServerToCheck) => BackendCheck;
  let parts: Partial<RunningProcess>;
  let ctx: ServiceContext;
  const actor = (role: Role) => ({ userId: 'usr_1', name: 'Ada', role, ipAddress: null });

  beforeAll(async () => {
    database = await open();
    await insertUser(database.db, { id: 'usr_1', name: 'Ada', role: 'operator', createdAtMs: 1 });
  });
  beforeEach(() => {
    asked = [];
    answer = (wanted) => checkOf(wanted);
    parts = {
      checkServer: async (wanted) => {
        asked.push(wanted);
        return answer(wanted);
      },
    };
    ctx = {
      database,
      // Entries of one moment have no order.
      ambient: { ...systemAmbient(), now: () => ++now },
      logger: silentLogger,
      actor: actor('operator'),
      process: idleProcess(parts),
    };
  });
  const alive = (backend: CountedBackend) => {
    ctx.process.backendLive = async () => backend;
    return backend;
  };
  const newest = async (count: number) => (await listAudit({ ctx, input: { limit: count } })).items;
  const keysOf = async (name: string) =>
    readBackendKeys(database.db, ctx.process.secrets, (await backendRow(database.db, name)).id);

  it('are checked, and stored with what was found, their key sealed', async () => {
    const saved = await addBackend({
      ctx,
      input: { name: 'pair', kind: 'auto', urls: [`${A}/`, B], key: KEY, model: 'm', isDefault: true },
    });
    expect(saved).toMatchObject({ name: 'pair', changed: true, checks: [{ url: A }, { url: B }] });
    expect(asked).toEqual(
      [A, B].map((url) => ({
        backend: null,
        url,
        kind: 'auto',
        model: 'm',
        tokenizer: null,
        contextLength: null,
        key: KEY,
        controlKey: null,
      })),
    );
    const row = await backendRow(database.db, 'pair');
    expect(row).toMatchObject({
      kind: 'vllm',
      isDefault: true,
      settings: { replicas: [{ url: A }, { url: B }], model: 'm', check: { url: A, fingerprint: 'f' } },
    });
    const [sealed] = await listBackendKeys(database.db, row.id);
    expect(Buffer.from(sealed?.ciphertext ?? []).toString('latin1')).not.toContain('secret');
    expect((await keysOf('pair')).keyFor(A)).toBe(KEY);
    const [entry] = await newest(1);
    expect(entry).toMatchObject({ actionType: 'add_backend', details: { kind: 'vllm', key: 'given' } });
    const detail = await getBackend({ ctx: { ...ctx, actor: actor('viewer') }, input: { name: 'pair' } });
    expect(detail).toMatchObject({ hasKey: true, keyProblem: null, modelName: 'm', checks: [{ url: A }] });
    expect(JSON.stringify([saved, row.settings, entry, detail, await listBackends({ ctx })])).not.toContain('secret');
  });

  it('are left as they are when nothing is new, and keep their key', async () => {
    const again = { name: 'pair', kind: 'auto' as const, urls: [A, B], model: 'm' };
    const { revision } = await backendRow(database.db, 'pair');
    expect(await addBackend({ ctx, input: again })).toMatchObject({ changed: false });
    expect(asked.map(({ key }) => key)).toEqual([KEY, KEY]);
    expect((await backendRow(database.db, 'pair')).revision).toBe(revision);
    expect(await addBackend({ ctx, input: { ...again, maxInFlight: 4 } })).toMatchObject({ changed: true });
    expect((await backendRow(database.db, 'pair')).revision).toBe(revision + 1);
    expect((await keysOf('pair')).keyFor(B)).toBe(KEY);
  });

  it('never send a stored key to a server it was not given for', async () => {
    const elsewhere = { name: 'pair', kind: 'auto' as const, urls: [A, 'http://evil:1'], model: 'm' };
    await expect(addBackend({ ctx, input: elsewhere })).rejects.toThrow(
      /stored key of pair goes only to the servers it was given for, and http:\/\/evil:1 is new/,
    );
    expect(asked.find(({ url }) => url === 'http://evil:1')?.key).toBeNull();
    await expect(changeBackend({ ctx, input: { name: 'pair', addUrls: ['http://evil:1'] } })).rejects.toBeInstanceOf(
      Invalid,
    );
    expect(asked.filter(({ url, key }) => url === 'http://evil:1' && key !== null)).toEqual([]);
  });

  it('are refused in the words of the items that failed, and nothing is stored', async () => {
    answer = (wanted) =>
      checkOf(wanted, {
        ok: wanted.url !== B,
        items: [
          { id: 'reach', status: 'pass', sent: '', received: '', says: 'It answers.' },
          { id: 'token_round_trip', status: 'fail', sent: '', received: '', says: 'It gives no token ids.' },
          { id: 'constraints', status: 'fail', sent: '', received: '', says: 'It ignores constraints.' },
        ],
      });
    const input = { name: 'bad', kind: 'auto' as const, urls: [A, B] };
    await expect(addBackend({ ctx, input })).rejects.toThrow(
      `The backend bad cannot be used. ${B}: It gives no token ids. It ignores constraints.`,
    );
    await expect(backendRow(database.db, 'bad')).rejects.toBeInstanceOf(NotFound);
    answer = (wanted) => checkOf(wanted, wanted.url === B ? { kind: 'sglang' } : {});
    await expect(addBackend({ ctx, input })).rejects.toThrow(
      `The servers of bad are not the same: ${A} is a server of the kind vllm and ${B} sglang.`,
    );
  });

  it('can be stored unchecked, when their kind is said', async () => {
    const input = { name: 'blind', kind: 'auto' as const, urls: [A], unchecked: true };
    await expect(addBackend({ ctx, input })).rejects.toThrow(/Say which kind of server blind is/);
    await addBackend({ ctx, input: { ...input, kind: 'llama-server' } });
    expect(asked).toEqual([]);
    expect(await backendRow(database.db, 'blind')).toMatchObject({
      kind: 'llama-server',
      settings: { replicas: [{ url: A }] },
    });
    expect(await getBackend({ ctx, input: { name: 'blind' } })).toMatchObject({
      checks: [],
      replicas: [{ state: 'unknown' }],
    });
  });

  it.each([
    ['an address with a password', { urls: ['http://me:hunter2@host:1'] }],
    ['the same address twice', { urls: [A, A] }],
    ['a key with a line in it', { urls: [A], key: 'hunter2\r\nX: y' }],
    ['a control key with a line in it', { urls: [A], controlKey: 'hunter2\r\nX: y' }],
    ['no address', { urls: [] }],
    ['a kind that is not known', { urls: [A], kind: 'hunter2' as 'auto' }],
  ])('refuse %s without repeating it', async (_what, more) => {
    const adding = addBackend({ ctx, input: { name: 'odd', kind: 'auto', ...more } });
    await expect(adding).rejects.toBeInstanceOf(Invalid);
    await expect(adding).rejects.not.toThrow(/hunter2/);
  });

  it('take servers in and let them go, each with a key of its own or none', async () => {
    await addBackend({ ctx, input: { name: 'grow', kind: 'vllm', urls: [A] } });
    // The name that was found, so that a server that is called after its weights stays the same one.
    expect((await backendRow(database.db, 'grow')).settings.model).toBe('m');
    await changeBackend({ ctx, input: { name: 'grow', addUrls: [B], key: 'own', keyFor: B } });
    expect(asked.at(-1)).toMatchObject({ url: B, key: 'own', kind: 'vllm' });
    expect([(await keysOf('grow')).keyFor(A), (await keysOf('grow')).keyFor(B)]).toEqual([null, 'own']);
    expect((await getBackend({ ctx, input: { name: 'grow' } })).replicas.map(({ hasOwnKey }) => hasOwnKey)).toEqual([
      false,
      true,
    ]);
    answer = (wanted) => checkOf(wanted, { kind: 'sglang' });
    await expect(changeBackend({ ctx, input: { name: 'grow', addUrls: ['http://gpu-3'] } })).rejects.toThrow(
      /are not the same/,
    );
    await changeBackend({ ctx, input: { name: 'grow', removeUrls: [B] } });
    expect(await listBackendKeys(database.db, (await backendRow(database.db, 'grow')).id)).toEqual([]);
    for (const input of [{ removeUrls: [A] }, { removeUrls: ['http://other'] }, { key: 'x', keyFor: 'http://other' }])
      await expect(changeBackend({ ctx, input: { name: 'grow', ...input } })).rejects.toBeInstanceOf(Invalid);
    await changeBackend({ ctx, input: { name: 'grow', key: 'all' } });
    expect((await keysOf('grow')).keyFor(A)).toBe('all');
    await changeBackend({ ctx, input: { name: 'grow', key: null, maxInFlight: 3 } });
    expect((await keysOf('grow')).keyFor(A)).toBeNull();
    expect(await backendRow(database.db, 'grow')).toMatchObject({ settings: { maxInFlight: 3 } });
    expect((await newest(1))[0]).toMatchObject({ actionType: 'change_backend', details: { key: 'forgotten' } });
  });

  it('tell when their key was stored under another secret key, and go on being shown', async () => {
    const other = { ...ctx, process: idleProcess({ ...parts, secrets: new SecretBox(new Uint8Array(32).fill(1)) }) };
    const detail = await getBackend({ ctx: other, input: { name: 'pair' } });
    expect(detail.keyProblem).toMatch(/^The stored key of the servers cannot be read: it was stored under another/);
    await expect(recheckBackend({ ctx: other, input: { name: 'pair' } })).rejects.toBeInstanceOf(Unavailable);
    await changeBackend({ ctx: other, input: { name: 'pair', key: KEY } });
    expect((await getBackend({ ctx: other, input: { name: 'pair' } })).keyProblem).toBeNull();
    await changeBackend({ ctx, input: { name: 'pair', key: KEY } });
  });

  it('are asked again by name with their keys; at an address nothing is stored', async () => {
    const { revision } = await backendRow(database.db, 'pair');
    answer = (wanted) => checkOf(wanted, { fingerprint: 'newer', ok: false });
    const checks = await recheckBackend({ ctx, input: { name: 'pair' } });
    expect(checks.map(({ url }) => url)).toEqual([A, B]);
    expect(asked.map(({ key, kind, backend }) => [key, kind, backend])).toEqual([
      [KEY, 'vllm', 'pair'],
      [KEY, 'vllm', 'pair'],
    ]);
    expect(await backendRow(database.db, 'pair')).toMatchObject({
      revision,
      settings: { check: { fingerprint: 'newer' } },
    });
    expect((await newest(1))[0]).toMatchObject({ actionType: 'check_backend', status: 'error' });
    const before = (await listBackends({ ctx })).length;
    expect(await checkServer({ ctx, input: { url: 'http://new:1' } })).toMatchObject({
      url: 'http://new:1',
      ok: false,
    });
    expect(await listBackends({ ctx })).toHaveLength(before);
  });

  it('are for operators to change, and for viewers to look at', async () => {
    const viewer = { ...ctx, actor: actor('reviewer') };
    const name = 'pair';
    const attempts = [
      addBackend({ ctx: viewer, input: { name, kind: 'vllm', urls: [A] } }),
      changeBackend({ ctx: viewer, input: { name } }),
      checkServer({ ctx: viewer, input: { url: A } }),
      recheckBackend({ ctx: viewer, input: { name } }),
      removeBackend({ ctx: viewer, input: { name } }),
      updateWeights({ ctx: viewer, input: { name, source: { kind: 'external' }, version: 'w2' } }),
      pauseBackend({ ctx: viewer, input: { name } }),
      resumeBackend({ ctx: viewer, input: { name } }),
    ];
    for (const attempt of attempts) await expect(attempt).rejects.toBeInstanceOf(Forbidden);
    expect(asked).toEqual([]);
  });

  it('do not hold up a page when they do not answer', { timeout: 20_000 }, async () => {
    ctx.process.backendHealth = () => new Promise(() => undefined);
    ctx.process.backendLive = () => new Promise(() => undefined);
    const shown = await listBackends({ ctx });
    expect(shown[0]).toMatchObject({
      name: 'pair',
      urls: [A, B],
      modelName: 'm',
      health: { ok: false, message: expect.stringMatching(/3 seconds/) },
    });
    expect((await getBackend({ ctx, input: { name: 'pair' } })).health.ok).toBe(false);
    ctx.process.backendLive = async () => {
      throw new Unavailable('Nobody answers at gpu-1.');
    };
    expect((await getBackend({ ctx, input: { name: 'pair' } })).health).toEqual({
      ok: false,
      message: 'Nobody answers at gpu-1.',
    });
  });

  it('with a model that is still loading are not said to be silent', { timeout: 20_000 }, async () => {
    const model = {
      id: 'bck_model',
      name: 'model',
      kind: 'embedded' as const,
      settings: {},
      isDefault: false,
      nowMs: 1,
    };
    await database.db.transaction((tx) => saveBackend(tx, model));
    const shown = async () => {
      const [all, one] = await Promise.all([listBackends({ ctx }), getBackend({ ctx, input: { name: 'model' } })]);
      return [all.find(({ name }) => name === 'model')?.health, one.health];
    };
    ctx.process.backendHealth = () => new Promise(() => undefined);
    ctx.process.backendLive = () => new Promise(() => undefined);
    const loading = { ok: false, held: true, message: 'Its model is still loading.' };
    expect(await shown()).toEqual([loading, loading]);
    // Once it is open, it is its process that does not answer.
    const open = alive(new CountedBackend('model'));
    open.health = () => new Promise(() => undefined);
    const silent = { ok: false, message: 'It has not answered for 3 seconds.' };
    expect(await shown()).toEqual([silent, silent]);
    await removeBackend({ ctx, input: { name: 'model' } });
  });

  it('are shown as they are now, paused and resumed, with an entry before and after', async () => {
    const live = alive(new CountedBackend('pair', {}, [A, B]));
    const stored = async () => (await backendRow(database.db, 'pair')).paused;
    const earlier = new CountedBackend('pair');
    ctx.process.backendsOf = async () => [live, earlier];
    let during: boolean | null = null;
    const look = async () => {
      during = await stored();
    };
    live.duringPause = look;
    await pauseBackend({ ctx, input: { name: 'pair' } });
    // A studio that dies in the middle of it opens the backend paused.
    expect([during, await stored(), live.paused, earlier.paused]).toEqual([true, true, true, true]);
    const name = 'pair';
    await expect(recheckBackend({ ctx, input: { name } })).rejects.toBeInstanceOf(Conflict);
    expect(asked).toEqual([]);
    // Nobody would ever resume a server that is taken out now.
    await expect(changeBackend({ ctx, input: { name, removeUrls: [B] } })).rejects.toThrow(`and ${B} would stay so`);
    await expect(removeBackend({ ctx, input: { name } })).rejects.toThrow('its servers would stay so');
    expect(await getBackend({ ctx, input: { name: 'pair' } })).toMatchObject({
      paused: true,
      trouble: 'An operator paused it.',
      weightVersion: 'w1',
      replicas: [
        { url: A, state: 'paused', inFlight: 0 },
        { url: B, state: 'paused', tokensInFlight: 10 },
      ],
    });
    live.duringPause = look;
    await resumeBackend({ ctx, input: { name: 'pair' } });
    expect([during, await stored(), live.paused, earlier.paused]).toEqual([true, false, false, false]);
    expect(await getBackend({ ctx, input: { name: 'pair' } })).toMatchObject({ paused: false, trouble: null });
    expect((await newest(4)).map(({ actionType, status }) => `${actionType} ${status}`)).toEqual([
      'resume_backend success',
      'resume_backend started',
      'pause_backend success',
      'pause_backend started',
    ]);
  });

  it('stay as they were when a pause or a resume fails', async () => {
    const live = alive(new CountedBackend('pair', {}, [A]));
    const stored = async () => (await backendRow(database.db, 'pair')).paused;
    const fail = async () => {
      throw new Unavailable('gpu-1 does not answer.');
    };
    live.duringPause = fail;
    await expect(pauseBackend({ ctx, input: { name: 'pair' } })).rejects.toThrow('gpu-1 does not answer.');
    expect(await stored()).toBe(false);
    live.duringPause = async () => undefined;
    await pauseBackend({ ctx, input: { name: 'pair' } });
    live.duringPause = fail;
    await expect(resumeBackend({ ctx, input: { name: 'pair' } })).rejects.toThrow('gpu-1 does not answer.');
    await expect(pauseBackend({ ctx, input: { name: 'pair' } })).rejects.toThrow('gpu-1 does not answer.');
    expect(await stored()).toBe(true);
    live.duringPause = async () => undefined;
    await resumeBackend({ ctx, input: { name: 'pair' } });
    expect(await stored()).toBe(false);
    // Resumed before it had come to rest: the resume says how it stands.
    live.duringPause = async () => {
      throw new Cancelled('It was resumed.');
    };
    await expect(pauseBackend({ ctx, input: { name: 'pair' } })).rejects.toBeInstanceOf(Cancelled);
    expect(await stored()).toBe(true);
    live.duringPause = async () => undefined;
    await resumeBackend({ ctx, input: { name: 'pair' } });
  });

  it('are opened anew when a check finds that they can do other things', async () => {
    const revision = async () => (await backendRow(database.db, 'pair')).revision;
    const usual = checkOf({ url: A, kind: 'vllm' } as ServerToCheck).capabilities as BackendCapabilities;
    const recheck = async (capabilities: BackendCapabilities | null) => {
      answer = (wanted) => checkOf(wanted, { capabilities, ok: capabilities !== null });
      const before = await revision();
      await recheckBackend({ ctx, input: { name: 'pair' } });
      return (await revision()) - before;
    };
    expect(await recheck(usual)).toBe(0);
    expect(await recheck({ ...usual, weightSources: ['lora'] })).toBe(1);
    const { modelName, ...others } = usual;
    expect(await recheck({ ...others, weightSources: ['lora'], modelName })).toBe(0);
    // Nothing was found out.
    expect(await recheck(null)).toBe(0);
    const shown = async (name: string) => (await listBackends({ ctx })).find((one) => one.name === name)?.canScore;
    expect(await recheck({ ...usual, canScore: !usual.canScore })).toBe(1);
    expect([await shown('pair'), await shown('blind')]).toEqual([!usual.canScore, null]);
    expect(await recheck(usual)).toBe(1);
    expect(await shown('pair')).toBe(usual.canScore);
  });

  it('are given new weights one update at a time, which are kept with who asked', async () => {
    const live = alive(new CountedBackend('pair', {}, [A]));
    let go = (): void => undefined;
    live.duringUpdate = () => new Promise((resolve) => (go = resolve));
    const input = { name: 'pair', source: { kind: 'checkpoint', path: '/weights/2' }, version: 'w2' } as const;
    let held = 0;
    ctx.process.backendHeld = async () => {
      held += 1;
      const release = () => {
        held -= 1;
      };
      return { backend: live, release };
    };
    const first = await updateWeights({ ctx, input, waitMs: 10 });
    expect(first).toMatchObject({ status: 'running', number: 1, requestedBy: 'Ada', version: 'w2' });
    await expect(updateWeights({ ctx, input: { ...input, version: 'w3' } })).rejects.toBeInstanceOf(Conflict);
    // It stays open for the one that goes on.
    expect(held).toBe(1);
    go();
    const list = async () => (await listWeightUpdates({ ctx, input: { name: 'pair' } })).items;
    while ((await list())[0]?.status === 'running') await sleep(5);
    expect((await list())[0]).toMatchObject({ status: 'succeeded', error: null });
    expect(live.updates).toEqual([{ source: input.source, version: 'w2', inFlight: 'drain' }]);

    live.duringUpdate = async () => {
      throw new Unavailable('gpu-1 says: no such folder.');
    };
    await expect(updateWeights({ ctx, input: { ...input, version: 'w3', inFlight: 'interrupt' } })).rejects.toThrow(
      'gpu-1 says: no such folder.',
    );
    expect((await list())[0]).toMatchObject({ number: 2, status: 'failed', error: 'gpu-1 says: no such folder.' });
    expect((await getBackend({ ctx, input: { name: 'pair' } })).weightUpdates.map(({ number }) => number)).toEqual([
      2, 1,
    ]);
    expect((await newest(2)).map(({ status }) => status)).toEqual(['error', 'started']);
    expect(held).toBe(0);
    const open = async () => {
      const { id: backendId } = await backendRow(database.db, 'pair');
      return (await unfinishedUpdate(database.db, { backendId, nowMs: ctx.ambient.now() }))?.version ?? null;
    };
    expect(await open()).toBeNull();
    live.duringUpdate = async () => {
      throw new Unavailable('gpu-1 stays paused.', { serving: null });
    };
    await expect(updateWeights({ ctx, input: { ...input, version: 'w4' } })).rejects.toThrow('stays paused');
    expect(await open()).toBe('w4');
    // A person says that it may go on as it is.
    await resumeBackend({ ctx, input: { name: 'pair' } });
    expect(await open()).toBeNull();
  });

  it('are not asked for weights they cannot take, nor for a label that serves already', async () => {
    const live = alive(new CountedBackend('pair'));
    const input = (kind: 'lora' | 'external', version: string) =>
      ({ name: 'pair', version, source: kind === 'lora' ? { kind, path: '/a' } : { kind } }) as const;
    await expect(updateWeights({ ctx, input: input('lora', 'w9') })).rejects.toThrow(
      'The backend pair takes new weights as checkpoint or external, not as lora.',
    );
    await expect(updateWeights({ ctx, input: input('external', 'w1') })).rejects.toThrow(/are called w1 already/);
    await expect(updateWeights({ ctx, input: input('external', 'a→b') })).rejects.toThrow(/must not hold an arrow/);
    expect(live.updates).toEqual([]);
  });

  it('are removed unless a run was made with them', async () => {
    await removeBackend({ ctx, input: { name: 'blind' } });
    await expect(removeBackend({ ctx, input: { name: 'blind' } })).rejects.toBeInstanceOf(NotFound);
    await insertTestRun(ctx);
    await expect(recheckBackend({ ctx, input: { name: 'tutorial' } })).rejects.toThrow(/is a model inside the studio/);
    await expect(removeBackend({ ctx, input: { name: 'tutorial' } })).rejects.toBeInstanceOf(Conflict);
  });
});
