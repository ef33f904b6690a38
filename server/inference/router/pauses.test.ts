/** Pauses over replicas, on servers that say whether they stand paused. */
import { afterEach, describe, expect, it } from 'vitest';
import { systemAmbient } from '../../core/ambient';
import { Conflict } from '../../core/errors';
import { silentLogger } from '../../observability/logger';
import { RemoteBackend } from '../remote/remote-backend';
import { BAR, PlainServer, plainProtocol } from '../remote/testing/plain-server';
import { PLAIN } from '../testing/conformance';
import { ReplicaRouter } from './router';
import { QUICK, until } from './testing/open-router';

const toClose: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of toClose.splice(0).reverse()) await close();
});

async function start(count: number, ready = true): Promise<[ReplicaRouter, ...PlainServer[]]> {
  const servers = await Promise.all(Array.from({ length: count }, () => new PlainServer().listen()));
  for (const server of servers) toClose.push(() => server.close());
  const router = open(servers);
  if (ready) await until(() => router.replicas().every(({ state }) => state === 'healthy'));
  return [router, ...servers];
}

function open(servers: readonly PlainServer[]): ReplicaRouter {
  const [logger, ambient] = [silentLogger, systemAmbient()];
  const protocol = plainProtocol({ weights: {}, saysPaused: true });
  const common = { name: 'plain', protocol, model: null, tokenizerFolder: null, maxInFlight: 8, logger, ambient };
  const router = new ReplicaRouter({
    name: 'plain',
    replicas: servers.map(({ url }) => ({ url, open: () => RemoteBackend.open({ ...common, url }) })),
    times: QUICK,
    retryPauseMs: 10,
    logger,
    ambient,
  });
  toClose.push(() => router.close());
  return router;
}

async function generate(router: ReplicaRouter, affinityKey = 'a'): Promise<number> {
  const [settled] = await router.generate([{ promptIds: Int32Array.of(BAR), options: PLAIN, affinityKey }]);
  if (settled?.status !== 'fulfilled') throw settled?.reason;
  return settled.value.ids.length;
}

const states = (router: ReplicaRouter) => router.replicas().map(({ state }) => state);

describe('a server that stands paused by somebody else', () => {
  it('at opening is told, waited for, and let go by the one who paused it', async () => {
    const server = await new PlainServer().listen();
    toClose.push(() => server.close());
    server.paused = true;
    const router = open([server]);
    const waiting = generate(router);
    await until(() => router.trouble()?.includes('stands paused, and not by this studio') ?? false);
    expect(server.paused).toBe(true);
    expect(server.paths()).not.toContain('/resume');
    server.paused = false;
    expect(await waiting).toBeGreaterThan(0);
  });

  it('while it serves is noticed, and a person may resume it here', async () => {
    const [router, server] = await start(1);
    (server as PlainServer).paused = true;
    await until(() => router.trouble()?.includes('not by this studio') ?? false);
    const waiting = generate(router);
    await router.resume();
    expect(await waiting).toBeGreaterThan(0);
    expect(server?.paused).toBe(false);
    expect(router.trouble()).toBeNull();
  });
});

describe('a pause that fails', () => {
  it('lets all servers go on', async () => {
    const [router, refusing, other] = await start(2);
    Object.assign(refusing as object, {
      instead: (path: string, response: { writeHead(status: number): { end(text: string): void } }) => {
        if (path === '/pause') response.writeHead(500).end('{"error":"busy"}');
        return path === '/pause';
      },
    });
    await expect(router.pause()).rejects.toThrow('busy');
    expect(router.trouble()).toBeNull();
    expect([refusing?.paused, other?.paused]).toEqual([false, false]);
    expect(states(router)).toEqual(['healthy', 'healthy']);
    expect(await generate(router)).toBeGreaterThan(0);
  });

  it('because one of them went away does not: that one is paused when it is back', async () => {
    const [router, away, here] = await start(2);
    await away?.close();
    await router.pause();
    expect(here?.paused).toBe(true);
    await away?.listen();
    await until(() => states(router).every((state) => state === 'paused'));
    expect(away?.paused).toBe(true);
    await router.resume();
    expect([away?.paused, here?.paused]).toEqual([false, false]);
  });

  it('with nobody behind it says so too', async () => {
    const [router, away] = await start(1);
    await away?.close();
    const waiting = generate(router);
    await until(() => states(router)[0] === 'down');
    await router.pause();
    expect(router.trouble()).toMatch(/An operator paused .* No server of the backend .* can be used/);
    expect(await router.health()).toMatchObject({ ok: false, held: false });
    await away?.listen();
    await router.resume();
    expect(await waiting).toBeGreaterThan(0);
  });
});

describe('a resume', () => {
  it('that meets an update in its middle changes nothing, and can be repeated', async () => {
    const [router, server] = await start(1);
    await router.pause();
    let load = (): void => undefined;
    const reached = new Promise<void>((resolve) => {
      Object.assign(server as object, {
        instead: (path: string, response: { end(text: string): void }) => {
          if (path !== '/load') return false;
          load = () => response.end('{}');
          resolve();
          return true;
        },
      });
    });
    const updating = router.updateWeights({ source: { kind: 'checkpoint', path: '/new' }, version: 'v2' });
    await reached;
    await expect(router.resume()).rejects.toBeInstanceOf(Conflict);
    expect(router.trouble()).toContain('An operator paused');
    const waiting = generate(router);
    load();
    await updating;
    expect(server?.paused).toBe(true);
    await router.resume();
    expect(await waiting).toBeGreaterThan(0);
  });

  it('reaches a server that is held back after a failed update', async () => {
    const [router, server] = await start(1);
    const failing = (path: string, response: { writeHead(status: number): { end(): void } }) => {
      if (path === '/flush') response.writeHead(500).end();
      return path === '/flush';
    };
    Object.assign(server as object, { instead: failing });
    await expect(
      router.updateWeights({ source: { kind: 'checkpoint', path: '/new' }, version: 'v2' }),
    ).rejects.toMatchObject({ details: { serving: null } });
    await until(() => router.trouble()?.includes('stays paused') ?? false);
    Object.assign(server as object, { instead: () => false });
    const waiting = generate(router);
    await router.resume();
    expect(await waiting).toBeGreaterThan(0);
    expect(server?.paused).toBe(false);
  });
});
