/** Backends over the life of a studio and beyond it: what one process left, the next one finds. */
import { execFileSync } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { getBackend as backendRow, saveBackend } from '../../db/queries/catalog';
import { describeOnBothDatabases, type TestDatabase } from '../../db/testing/database';
import { systemAmbient } from '../core/ambient';
import { Unavailable } from '../core/errors';
import type { BackendCapabilities } from '../core/inference';
import type { InferenceBackend } from '../inference/backend';
import { PLAIN } from '../inference/testing/conformance';
import { startSglangTwin } from '../inference/testing/twin/sglang';
import type { Twin } from '../inference/testing/twin/twin';
import { TwinFixture } from '../inference/testing/twin/twin-fixture';
import { silentLogger } from '../observability/logger';
import { recheckBackend } from '../services/backends/check-backend';
import { getBackend } from '../services/backends/get-backend';
import { listWeightUpdates } from '../services/backends/list-weight-updates';
import { pauseBackend } from '../services/backends/pause-backend';
import { resumeBackend } from '../services/backends/resume-backend';
import { updateWeights } from '../services/backends/update-weights';
import type { ServiceContext } from '../services/context';
import { checkOf } from '../services/testing/check-of';
import { idleProcess } from '../services/testing/idle-process';
import { Interrupted } from './engine';
import { OpenBackends } from './open-backends';
import { answer, testEngine } from './testing/rollouts';

const fixture = new TwinFixture();
beforeAll(() => fixture.open());
afterAll(() => fixture.close());

const input = { name: 'lab' };
async function until(reached: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await reached())) await sleep(5);
}
async function generate(backend: InferenceBackend, maxTokens = 3): Promise<string | undefined> {
  const options = { ...PLAIN, maxTokens };
  const [settled] = await backend.generate([{ promptIds: Int32Array.of(70, 71), options, affinityKey: 'a' }]);
  if (settled?.status !== 'fulfilled') throw settled?.reason;
  return settled.value.weightVersions[0]?.version;
}

describeOnBothDatabases('a backend that is open', (openDatabase) => {
  let database: TestDatabase;
  let twin: Twin;
  let later = 0;
  const ambient = { ...systemAmbient(), now: () => Date.now() + later };
  const toClose: (() => Promise<void>)[] = [];
  beforeAll(async () => {
    database = await openDatabase();
  });
  afterEach(async () => {
    for (const close of toClose.splice(0).reverse()) await close();
  });

  /** The backend as it was added, on a server that was just started. */
  async function add(able: Partial<BackendCapabilities> = {}): Promise<void> {
    twin = await startSglangTwin({ modelPath: fixture.tiny, disconnectPollMs: 20 });
    toClose.push(() => twin.close());
    const { capabilities: usual, ...check } = checkOf({ url: twin.url, kind: 'sglang' } as never);
    const capabilities = { ...usual, contextLength: 64, modelName: 'tiny.gguf', ...able };
    const settings = { replicas: [{ url: twin.url }], model: 'tiny.gguf', check: { ...check, capabilities } };
    const row = { id: 'bck_1', name: 'lab', kind: 'sglang' as const, settings: JSON.parse(JSON.stringify(settings)) };
    await database.db.transaction((tx) => saveBackend(tx, { ...row, isDefault: true, nowMs: 1 }));
  }

  /** What one process has of backends, and what its verbs are handed. */
  function start(): { backends: OpenBackends; ctx: ServiceContext; kill(): Promise<void> } {
    let gone = false;
    const db = new Proxy(database.db, {
      get(of, name) {
        if (gone) throw new Error('This process is dead.');
        const value: unknown = Reflect.get(of, name);
        return typeof value === 'function' ? value.bind(of) : value;
      },
    });
    const own = { ...database, db };
    const backends = new OpenBackends({
      database: own,
      ambient,
      logger: silentLogger,
      packageRoot: '/',
      threads: 1,
      keysOf: async () => ({ keyFor: () => null, controlKey: () => null }),
      serverRestarted: () => undefined,
      retirePollMs: 5,
      handOverMs: 50,
    });
    const close = async () => {
      await backends.closeEngines();
      await backends.closeBackends();
    };
    toClose.push(close);
    const process = idleProcess({
      backendLive: (name) => backends.use(name, async (backend) => backend),
      backendHeld: (name) => backends.hold(name),
      backendsOf: (name) => backends.all(name),
    });
    const actor = { userId: null, name: 'Ada', role: 'admin' as const, ipAddress: null };
    const ctx = { database: own, ambient, logger: silentLogger, actor, process };
    return {
      backends,
      ctx,
      // Nothing of it reaches the database or the servers any more.
      async kill() {
        gone = true;
        await close();
      },
    };
  }

  it('is not waited for when the studio ends while its model is still loading', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'loading-'));
    toClose.push(() => rm(folder, { recursive: true }));
    const modelPath = join(folder, 'slow.gguf');
    execFileSync('mkfifo', [modelPath]);
    const row = { id: 'bck_slow', name: 'slow', kind: 'embedded' as const, settings: { modelPath } };
    await database.db.transaction((tx) => saveBackend(tx, { ...row, isDefault: false, nowMs: 1 }));
    const { backends } = start();
    const opening = backends.hold('slow').catch((error: unknown) => error);
    // Whoever opens it to read waits for a writer, for ever. It must not matter how far the model process has come.
    await sleep(1_000);
    await backends.closeEngines();
    expect(await opening).toBeInstanceOf(Unavailable);
    expect(await opening).toMatchObject({ message: 'The backend slow was closed before its model was loaded.' });
  });

  it('stands paused after the studio was started again, until it is resumed', async () => {
    await add();
    const first = start();
    await pauseBackend({ ctx: first.ctx, input });
    await until(() => twin.engine.scheduler.paused !== null);
    await first.kill();
    const { ctx, backends } = start();
    expect((await backendRow(database.db, 'lab')).paused).toBe(true);
    const backend = await ctx.process.backendLive('lab');
    const waiting = generate(backend);
    await until(async () => (await getBackend({ ctx, input })).paused);
    expect(await getBackend({ ctx, input })).toMatchObject({
      trouble: expect.stringContaining('An operator paused the backend lab'),
      health: { ok: false, held: true },
      replicas: [{ state: 'paused' }],
    });
    expect(backends.trouble('lab')).toContain('An operator paused');
    expect(twin.engine.scheduler.paused).toBe('in_place');
    await expect(recheckBackend({ ctx, input })).rejects.toThrow(/is paused.*Resume it/);
    await resumeBackend({ ctx, input });
    expect(await waiting).toBe('default');
    expect((await backendRow(database.db, 'lab')).paused).toBe(false);
    expect(twin.engine.scheduler.paused).toBeNull();
  });

  it('is paused again by the next start when the studio ends in the middle of a resume, and not when a pause fails', async () => {
    await add();
    const { ctx } = start();
    await pauseBackend({ ctx, input });
    await until(async () => (await getBackend({ ctx, input })).paused);
    twin.faults.drop = true;
    await expect(resumeBackend({ ctx, input })).rejects.toThrow('could not be resumed');
    expect((await backendRow(database.db, 'lab')).paused).toBe(true);
    twin.faults.drop = false;
    await until(async () => (await getBackend({ ctx, input })).replicas[0]?.state === 'paused');
    await resumeBackend({ ctx, input });
    twin.faults.routes = ['/pause_generation'];
    twin.faults.html = true;
    await expect(pauseBackend({ ctx, input })).rejects.toThrow('no inference server');
    expect((await backendRow(database.db, 'lab')).paused).toBe(false);
    expect(await getBackend({ ctx, input })).toMatchObject({ paused: false, trouble: null });
  });

  it('goes on with what its label says when an update died with its process', async () => {
    await add();
    const first = start();
    await generate(await first.ctx.process.backendLive('lab'));
    twin.faults.routes = ['/update_weights_from_disk'];
    twin.faults.hang = true;
    const source = { kind: 'checkpoint' as const, path: fixture.next };
    const begun = await updateWeights({ ctx: first.ctx, input: { ...input, source, version: 'v2' }, waitMs: 0 });
    expect(begun.status).toBe('running');
    await until(() => twin.log.some(({ method, path }) => method === 'POST' && path === '/update_weights_from_disk'));
    expect(twin.engine.scheduler.paused).toBe('in_place');
    await first.kill();
    twin.faults.hang = false;

    const { ctx } = start();
    const backend = await ctx.process.backendLive('lab');
    const waiting = generate(backend);
    // It may be another process that works on it, as long as its lease lasts.
    await until(() => backend.trouble?.()?.includes('are being changed to v2 already') ?? false);
    expect(twin.engine.scheduler.paused).toBe('in_place');
    later += 61_000;
    expect(await waiting).toBe('default');
    expect(twin.engine.scheduler.paused).toBeNull();
    const newest = async () => (await listWeightUpdates({ ctx, input })).items[0];
    await until(async () => (await newest())?.finishedAtMs !== null);
    expect(await newest()).toMatchObject({ version: 'v2', status: 'failed', error: expect.stringContaining('middle') });
    // The same label can be given now.
    const again = await updateWeights({ ctx, input: { ...input, source, version: 'v2' } });
    expect(again.status).toBe('succeeded');
    expect(await generate(backend)).toBe('v2');
  });

  it('is made sure of after a failed update that left its server held back, also by the next process', async () => {
    await add();
    const first = start();
    const source = { kind: 'checkpoint' as const, path: fixture.next };
    await generate(await first.ctx.process.backendLive('lab'));
    twin.faults.staleCache = true;
    await expect(updateWeights({ ctx: first.ctx, input: { ...input, source, version: 'v3' } })).rejects.toThrow(
      'paused',
    );
    await first.kill();
    const second = start();
    const held = await second.ctx.process.backendLive('lab');
    await until(() => held.trouble?.()?.includes('cannot be used after an update to v3') ?? false);
    await second.kill();
    twin.faults.staleCache = false;
    const { ctx } = start();
    expect(await generate(await ctx.process.backendLive('lab'))).toBe('v3');
    const backend = await ctx.process.backendLive('lab');
    await until(async () => (await backend.health()).ok);
  });

  it('is opened anew when a check finds other capabilities; what is under way ends with the old one', async () => {
    await add({ constraints: ['regex'] });
    const { ctx, backends } = start();
    const able = async () => (await getBackend({ ctx, input })).capabilities?.constraints;
    const old = await backends.hold('lab');
    await old.backend.health();
    expect(await able()).toEqual(['regex']);
    twin.faults.msPerToken = 10;
    const running = generate(old.backend, 40);
    await until(() => twin.counters().running === 1);
    const found = { contextLength: 64, modelName: 'tiny.gguf', constraints: ['regex' as const] };
    let constraints: BackendCapabilities['constraints'] = ['regex'];
    ctx.process.checkServer = async (wanted) => {
      const check = checkOf(wanted);
      return check.capabilities ? { ...check, capabilities: { ...check.capabilities, ...found, constraints } } : check;
    };
    await recheckBackend({ ctx, input });
    expect(await ctx.process.backendLive('lab')).toBe(old.backend);
    constraints = ['regex', 'choice'];
    await recheckBackend({ ctx, input });
    expect(await able()).toEqual(['regex', 'choice']);
    const fresh = await ctx.process.backendLive('lab');
    expect(fresh).not.toBe(old.backend);
    expect(await running).toBe('default');
    // As long as somebody holds it (a trajectory, a scoring, an update) it stays open.
    await sleep(50);
    expect(await generate(old.backend)).toBe('default');
    old.release();
    await until(() =>
      generate(old.backend).then(
        () => false,
        (error) => error.message.includes('is closed'),
      ),
    );
    expect(await generate(fresh)).toBe('default');
    // A check that found nothing says nothing new.
    ctx.process.checkServer = async (wanted) => checkOf(wanted, { ok: false, capabilities: null });
    await recheckBackend({ ctx, input });
    expect(await ctx.process.backendLive('lab')).toBe(fresh);
  });

  const change = () =>
    database.db.transaction(async (tx) => {
      const { id, name, kind, settings, isDefault } = await backendRow(tx, 'lab');
      await saveBackend(tx, { id, name, kind, settings, isDefault, nowMs: 1 });
    });

  it('of earlier settings gives up its trajectories when it can serve nothing more, and nothing else', async () => {
    await add();
    const { ctx, backends } = start();
    const old = await backends.hold('lab');
    const { engine, prompt } = testEngine(() => ({ text: answer(8), delayMs: 60_000 }));
    old.open.engine = Promise.resolve(engine);
    const job = { trajectoryId: 'trj_1', sessionId: 'ses_1', runId: null, seed: 1, fresh: true, deadlineMs: 60_000 };
    const { skill, makeEnv } = prompt();
    const letGo = expect(engine.run({ ...job, skill, makeEnv: () => makeEnv(0) })).rejects.toBeInstanceOf(Interrupted);
    await old.backend.health();
    await change();
    const fresh = await ctx.process.backendLive('lab');
    await sleep(100);
    expect(engine.stats().running).toBe(1);
    await pauseBackend({ ctx, input });
    await letGo;
    // Who scores with it waits as long as it takes.
    const scoring = generate(old.backend);
    await resumeBackend({ ctx, input });
    expect(await scoring).toBe('default');
    old.release();
    expect(await generate(fresh)).toBe('default');
  });

  it('of earlier settings is paused and resumed with the one that serves', async () => {
    await add();
    const { ctx, backends } = start();
    const old = await backends.hold('lab');
    await old.backend.health();
    await change();
    const fresh = await ctx.process.backendLive('lab');
    await fresh.health();
    await pauseBackend({ ctx, input });
    const waiting = [generate(old.backend), generate(fresh)];
    expect([old.backend.trouble?.(), fresh.trouble?.()]).toEqual(
      Array(2).fill(expect.stringContaining('An operator paused')),
    );
    await resumeBackend({ ctx, input });
    expect(await Promise.all(waiting)).toEqual(['default', 'default']);
    old.release();
  });
});
