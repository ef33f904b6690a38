/** Pauses and updates that a process before left behind, on twins with a real tiny model. */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { systemAmbient } from '../core/ambient';
import { Cancelled } from '../core/errors';
import { remoteSettingsSchema } from '../core/inference-settings';
import { silentLogger } from '../observability/logger';
import type { UnfinishedUpdate } from './backend';
import { openRemote } from './open-remote';
import type { StoredUpdates } from './router/left-behind';
import type { ReplicaRouter } from './router/router';
import { PLAIN } from './testing/conformance';
import { startSglangTwin } from './testing/twin/sglang';
import type { Twin } from './testing/twin/twin';
import { TwinFixture } from './testing/twin/twin-fixture';

const fixture = new TwinFixture();
const toClose: (() => Promise<void>)[] = [];
beforeAll(() => fixture.open());
afterEach(async () => {
  for (const close of toClose.splice(0).reverse()) await close();
});
afterAll(() => fixture.close());

async function twin(options: Partial<Parameters<typeof startSglangTwin>[0]> = {}): Promise<Twin> {
  const started = await startSglangTwin({ modelPath: fixture.tiny, disconnectPollMs: 20, ...options });
  toClose.push(() => started.close());
  return started;
}

function open(twins: Twin[], more: { paused?: boolean; updates?: StoredUpdates } = {}): ReplicaRouter {
  const router = openRemote({
    name: 'lab',
    kind: 'sglang',
    settings: remoteSettingsSchema.parse({ replicas: twins.map(({ url }) => ({ url })), maxInFlight: 8 }),
    keyFor: () => null,
    logger: silentLogger,
    ambient: systemAmbient(),
    ...more,
  });
  toClose.push(() => router.close());
  return router;
}

async function generate(router: ReplicaRouter, maxTokens = 3, affinityKey = 'a'): Promise<string> {
  const options = { ...PLAIN, maxTokens };
  const request = { promptIds: Int32Array.of(70, 71, 72), options, affinityKey };
  const [settled] = await router.generate([request]);
  if (settled?.status !== 'fulfilled') throw settled?.reason;
  return settled.value.weightVersions.map(({ version }) => version).join();
}

const pausedOf = (one: Twin) => one.engine.scheduler.paused;
const states = (router: ReplicaRouter) => router.replicas().map(({ state }) => state);
async function until(reached: () => boolean): Promise<void> {
  while (!reached()) await sleep(5);
}
const post = (url: string, body: unknown) =>
  fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) });

describe('a pause', () => {
  it('stands when the backend is opened again: its servers are paused, and requests wait with the reason', async () => {
    const twins = [await twin(), await twin()];
    const router = open(twins, { paused: true });
    const waiting = generate(router);
    expect(router.trouble()).toContain('An operator paused the backend lab');
    await until(() => states(router).every((state) => state === 'paused'));
    expect(twins.map(pausedOf)).toEqual(['in_place', 'in_place']);
    expect(twins.map((one) => one.counters().requests)).toEqual([0, 0]);
    await router.resume();
    expect(await waiting).toBe('default');
    expect(twins.map(pausedOf)).toEqual([null, null]);
    expect(states(router)).toEqual(['healthy', 'healthy']);
  });

  it('right after opening pauses the servers as they come, at first or again', async () => {
    const [here, late] = [await twin(), await twin()];
    await late.kill();
    const router = open([here, late]);
    await router.pause();
    await until(() => states(router)[0] === 'paused');
    expect([pausedOf(here), pausedOf(late)]).toEqual(['in_place', null]);
    await late.restart();
    await until(() => states(router)[1] === 'paused');
    expect(pausedOf(late)).toBe('in_place');
    await router.resume();
    expect([pausedOf(here), pausedOf(late)]).toEqual([null, null]);
    await late.kill();
    // One of them meets it, and goes elsewhere.
    await Promise.all(['a', 'b', 'c', 'd'].map((key) => generate(router, 3, key)));
    expect(states(router)[1]).toBe('down');
    await router.pause();
    await late.restart();
    await until(() => states(router)[1] === 'paused');
    expect(pausedOf(late)).toBe('in_place');
    await router.resume();
    expect(await generate(router)).toBe('default');
  });

  it('that a process forgot ends with the next resume, whatever is known of it', async () => {
    const one = await twin();
    const first = open([one]);
    await first.health();
    await first.pause();
    await first.close();
    const router = open([one]);
    const stuck = generate(router);
    await until(() => one.engine.scheduler.waiting === 1);
    expect(pausedOf(one)).toBe('in_place');
    await router.resume();
    expect(await stuck).toBe('default');
  });

  it('is given up by a resume that comes before all has ended', async () => {
    const one = await twin({ faults: { msPerToken: 20 } });
    const router = open([one]);
    await router.health();
    const running = generate(router, 100);
    await until(() => one.counters().running === 1);
    const pausing = expect(router.pause()).rejects.toBeInstanceOf(Cancelled);
    await until(() => router.trouble() !== null);
    const waiting = generate(router);
    await router.resume();
    await pausing;
    expect(one.counters().running).toBeGreaterThan(0);
    expect([await waiting, await running]).toEqual(['default', 'default']);
    expect(pausedOf(one)).toBeNull();
  });

  it('ends although one of the servers cannot be reached, which is resumed when it comes back', async () => {
    const [away, here] = [await twin(), await twin()];
    const router = open([away, here]);
    await router.health();
    await router.pause();
    away.faults.drop = true;
    await router.resume();
    expect(await generate(router)).toBe('default');
    await until(() => states(router)[0] === 'down');
    expect(pausedOf(away)).toBe('in_place');
    away.faults.drop = false;
    await until(() => states(router)[0] === 'healthy');
    expect(pausedOf(away)).toBeNull();
  });

  it('stays where no server could be told that it is over', async () => {
    const one = await twin();
    const router = open([one]);
    await router.health();
    await router.pause();
    one.faults.drop = true;
    await expect(router.resume()).rejects.toThrow('could not be resumed');
    expect(router.trouble()).toContain('An operator paused');
    one.faults.drop = false;
    await until(() => states(router)[0] === 'paused');
    await router.resume();
    expect(await generate(router)).toBe('default');
  });
});

describe('an update that was cut off', () => {
  const cut = (version: string, kind: 'checkpoint' | 'external' = 'checkpoint'): UnfinishedUpdate => ({
    update: { version, source: kind === 'external' ? { kind } : { kind, path: fixture.next } },
    before: [],
  });
  /** What the database would tell, and what it was told. */
  const stored = (found: UnfinishedUpdate, goesOn = false) => {
    const kept = { goesOn, settled: 0 };
    const updates: StoredUpdates = {
      unfinished: async () => ({ ...found, goesOn: kept.goesOn }),
      settled: async () => void kept.settled++,
      labelOf: async () => null,
      keepLabel: async () => {},
    };
    return { kept, updates };
  };
  const load = (one: Twin, version: string) =>
    post(`${one.url}/update_weights_from_disk`, { model_path: fixture.next, weight_version: version });

  it.each([
    ['before the load', 'default'],
    ['after the load', 'v2'],
  ])('%s: the server is resumed with an empty cache, and serves what its label says', async (_when, label) => {
    const twins = [await twin(), await twin()];
    for (const one of twins) await post(`${one.url}/generate`, { input_ids: [70, 71, 72, 73], sampling_params: {} });
    for (const one of twins) await post(`${one.url}/pause_generation`, { mode: 'in_place' });
    if (label !== 'default') for (const one of twins) await load(one, label);
    const { kept, updates } = stored(cut('v2'));
    const router = open(twins, { updates });
    expect(await generate(router)).toBe(label);
    await until(() => states(router).every((state) => state === 'healthy'));
    expect(kept.settled).toBe(1);
    expect(twins.map(pausedOf)).toEqual([null, null]);
    for (const one of twins) expect(one.log.map(({ path }) => path)).toContain('/flush_cache');
  });

  it('leaves a server out whose cache cannot be made sure of, and says so; a person decides', async () => {
    const one = await twin({ faults: { staleCache: true } });
    await post(`${one.url}/pause_generation`, { mode: 'in_place' });
    const { kept, updates } = stored(cut('v2'));
    const router = open([one], { updates });
    const waiting = generate(router);
    await until(() => router.replicas()[0]?.reason?.includes('did not empty its prefix cache') ?? false);
    expect(router.trouble()).toContain('cannot be used after an update to v2 that was cut off');
    expect(router.trouble()).toContain('update it again, resume it or start it again');
    expect(kept.settled).toBe(0);
    expect(pausedOf(one)).toBe('in_place');
    await router.resume();
    expect(await waiting).toBe('default');
    expect(kept.settled).toBe(0);
  });

  it('leaves a backend paused that an operator had paused', async () => {
    const one = await twin();
    await post(`${one.url}/pause_generation`, { mode: 'abort' });
    const { kept, updates } = stored(cut('v2'));
    const router = open([one], { updates, paused: true });
    await until(() => kept.settled === 1 && states(router)[0] === 'paused');
    expect(pausedOf(one)).toBe('in_place');
    expect(router.trouble()).toContain('An operator paused');
    await router.resume();
    expect(await generate(router)).toBe('default');
  });

  it('does not wait for what the forgotten pause itself holds', async () => {
    const one = await twin({ faults: { msPerToken: 5 } });
    const held = post(`${one.url}/generate`, { input_ids: [70, 71], sampling_params: { max_new_tokens: 30 } });
    await until(() => one.counters().running === 1);
    await post(`${one.url}/pause_generation`, { mode: 'in_place' });
    const { updates } = stored(cut('v2'));
    expect(await generate(open([one], { updates }))).toBe('default');
    expect((await held).status).toBe(200);
  });

  it('of tensors that a trainer moved cannot be told from the label, unless that was stamped', async () => {
    const { updates } = stored(cut('v2', 'external'));
    const [before, after] = [await twin(), await twin()];
    await post(`${after.url}/update_weight_version`, { new_version: 'v2' });
    const router = open([before, after], { updates });
    expect(await generate(router)).toBe('v2');
    await until(() => states(router)[0] === 'down' && router.replicas()[0]?.reason !== 'It has not been asked yet.');
    expect(router.replicas()[0]?.reason).toMatch(/nobody can say whether the tensors .* v2 are in.* still default/);
    // Given again, it is known.
    await router.updateWeights({ source: { kind: 'external' }, version: 'v3' });
    await until(() => states(router)[0] === 'healthy');
    expect(router.replicas().map(({ weightVersion }) => weightVersion)).toEqual(['v3', 'v3']);
  });

  it('that goes on elsewhere is left alone until it has ended', async () => {
    const one = await twin();
    await post(`${one.url}/pause_generation`, { mode: 'in_place' });
    const { kept, updates } = stored(cut('v2'), true);
    const router = open([one], { updates });
    const waiting = generate(router);
    await until(() => router.trouble()?.includes('are being changed to v2 already') ?? false);
    expect(pausedOf(one)).toBe('in_place');
    kept.goesOn = false;
    expect(await waiting).toBe('default');
    expect(kept.settled).toBe(1);
  });

  it('is made sure of again when the server went away under it', async () => {
    const one = await twin();
    await post(`${one.url}/pause_generation`, { mode: 'in_place' });
    one.faults.routes = ['/continue_generation', '/flush_cache'];
    one.faults.drop = true;
    const { kept, updates } = stored(cut('v2'));
    const router = open([one], { updates });
    const waiting = generate(router);
    await until(() => router.replicas()[0]?.reason?.includes('closed the connection') ?? false);
    one.faults.drop = false;
    expect(await waiting).toBe('default');
    expect(kept.settled).toBe(1);
  });
});
