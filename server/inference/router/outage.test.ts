/** Refused connections, 503, hung servers. Requests wait, are told why, and go on. */
import { describe, expect, it } from 'vitest';
import { Cancelled } from '../../core/errors';
import { ask, generate, openRouter, pause, QUICK, startServers, until } from './testing/open-router';

const many = (count: number) => Array.from({ length: count }, (_, k) => ask(`${k}`));

describe('when servers fail', () => {
  it('waits for the only server, says why, counts the time, and goes on when it is back on its port', async () => {
    const [server] = await startServers(1, { takesMs: 30 });
    const router = await openRouter([server as never]);
    const stoppedBefore = router.stoppedMs();
    const running = router.generate(many(12));
    await until(() => (server?.running ?? 0) > 0);
    await server?.kill();
    await until(() => router.trouble() !== null);
    expect(router.trouble()).toContain(server?.url);
    expect(router.trouble()).toMatch(/requests wait/);
    expect(await router.health()).toMatchObject({ ok: false });
    const patient = router.tokenize('ab', { special: false });
    const stop = new AbortController();
    const impatient = generate(router, ask('other', { signal: stop.signal }));
    stop.abort(new Cancelled('Enough.'));
    await expect(impatient).rejects.toThrow('Enough.');
    await pause(100);
    expect(router.stoppedMs() - stoppedBefore).toBeGreaterThanOrEqual(100);
    await server?.start();
    expect((await running).every((one) => one.status === 'fulfilled')).toBe(true);
    expect((await patient).ids).toHaveLength(2);
    expect(router.trouble()).toBeNull();
    const stopped = router.stoppedMs();
    await pause(20);
    expect(router.stoppedMs()).toBe(stopped);
  });

  it('names each of two servers with its own reason where neither can be used', async () => {
    const servers = await startServers(2);
    const router = await openRouter(servers);
    for (const server of servers) await server.kill();
    const stop = new AbortController();
    const waiting = generate(router, ask('a', { signal: stop.signal }));
    const refused = servers.map(({ url }) => `${url}: it refused the connection`);
    await until(() => refused.every((words) => router.trouble()?.includes(words)));
    expect(router.trouble()).not.toContain('cannot either');
    stop.abort(new Cancelled('Enough.'));
    await expect(waiting).rejects.toThrow('Enough.');
  });

  it('waits for a server that was never there yet', async () => {
    const [server] = await startServers(1);
    await server?.kill();
    const router = await openRouter([server as never], { ready: false });
    const waiting = generate(router, ask('a'));
    await expect(router.capabilities()).rejects.toMatchObject({ code: 'unavailable', details: { retry: true } });
    await expect(router.weightVersion()).rejects.toMatchObject({ code: 'unavailable' });
    expect(router.trouble()).toContain('refused the connection');
    await server?.start();
    expect((await waiting).ids).toHaveLength(3);
    expect((await router.capabilities()).modelName).toBe('tiny');
  });

  it('sends what a dead replica had to the others, and takes it back by itself', async () => {
    const [dying, other] = await startServers(2, { takesMs: 40 });
    const router = await openRouter([dying as never, other as never]);
    const running = router.generate(many(8));
    await until(() => (dying?.running ?? 0) > 0);
    await dying?.kill();
    expect((await running).every((one) => one.status === 'fulfilled')).toBe(true);
    expect(router.trouble()).toBeNull();
    const [down] = router.replicas();
    expect(down).toMatchObject({ state: 'down', inFlight: 0 });
    expect(down?.errors).toBeGreaterThan(0);
    expect((await router.health()).message).toContain(dying?.url);
    await dying?.start();
    await until(() => router.replicas().every((replica) => replica.state === 'healthy'));
    await router.generate(many(8));
    expect(dying?.came.length).toBeGreaterThan(4);
  });

  it('does not count the servers that are gone among the tries of a request', async () => {
    const servers = await startServers(7);
    const router = await openRouter(servers, { times: { ...QUICK, lookMs: 60_000, firstPauseMs: 60_000 } });
    for (const gone of servers.slice(0, 6)) await gone.kill();
    expect((await generate(router, ask('a'))).ids).toHaveLength(3);
    expect(router.replicas().map(({ state }) => state)).toEqual([...Array(6).fill('down'), 'healthy']);
  });

  it('takes a hung server for dead, and sends its requests elsewhere', async () => {
    const [hung, other] = await startServers(2);
    const router = await openRouter([hung as never, other as never], { times: { ...QUICK, answerMs: 200 } });
    Object.assign(hung as object, { mode: 'hang' });
    const settled = await router.generate(many(6));
    expect(settled.every((one) => one.status === 'fulfilled')).toBe(true);
    expect(other?.came).toHaveLength(6);
    expect(router.replicas()[0]).toMatchObject({ state: 'down', inFlight: 0, tokensInFlight: 0 });
    Object.assign(hung as object, { mode: 'well' });
    await until(() => router.replicas().every((replica) => replica.state === 'healthy'));
  });

  // The client by itself would give up after 30 s.
  it('tells the weights of the others while nobody has noticed that one hangs', { timeout: 20_000 }, async () => {
    const [hung, other] = await startServers(2);
    const times = { ...QUICK, lookMs: 60_000, answerMs: 200 };
    const router = await openRouter([hung as never, other as never], { times });
    Object.assign(hung as object, { mode: 'hang' });
    expect(await router.weightVersion()).toBe('v0');
  });

  it('leaves a slow request alone as long as its server is well', async () => {
    const [slow] = await startServers(1, { takesMs: 600 });
    const router = await openRouter([slow as never]);
    expect((await generate(router, ask('a'))).ids).toHaveLength(3);
    expect(slow?.came).toHaveLength(1);
  });

  it('notices a server that is sick before any request meets it', async () => {
    const [server] = await startServers(1);
    const router = await openRouter([server as never]);
    Object.assign(server as object, { mode: 'sick' });
    await until(() => router.trouble() !== null);
    expect(router.trouble()).toContain('503');
    Object.assign(server as object, { mode: 'well' });
    await until(() => router.trouble() === null);
    expect(router.replicas()[0]?.errors).toBe(0);
  });

  it('goes on after a while of 503 without losing a request', async () => {
    const [server] = await startServers(1, { takesMs: 5 });
    const router = await openRouter([server as never], { maxInFlight: 4 });
    Object.assign(server as object, { mode: 'sick' });
    const running = router.generate(many(12));
    await pause(150);
    Object.assign(server as object, { mode: 'well' });
    expect((await running).every((one) => one.status === 'fulfilled')).toBe(true);
  });

  it('waits, and says why, while a server that is well has no room for anything', async () => {
    const [server] = await startServers(1);
    const router = await openRouter([server as never]);
    Object.assign(server as object, { mode: 'refuse', onlyGenerations: true });
    const running = router.generate(many(3));
    await until(() => (router.replicas()[0]?.errors ?? 0) > 8);
    await until(() => router.trouble() !== null);
    expect(router.trouble()).toContain('status 503: not now');
    Object.assign(server as object, { mode: 'well' });
    expect((await running).every((one) => one.status === 'fulfilled')).toBe(true);
  });

  it('gives a request up after three more tries when it is the one that breaks the server', async () => {
    const [server] = await startServers(1);
    const router = await openRouter([server as never]);
    Object.assign(server as object, { mode: 'drop', onlyGenerations: true });
    await expect(generate(router, ask('a'))).rejects.toThrow('tried 4 times');
    Object.assign(server as object, { mode: 'well' });
    expect((await generate(router, ask('b'))).ids).toHaveLength(3);
  });

  it('leaves out a server that came back with another model or a smaller context, and says so', async () => {
    const [changing, other] = await startServers(2);
    const router = await openRouter([changing as never, other as never]);
    await router.capabilities();
    for (const [change, word] of [
      [{ model: 'large' }, 'large'],
      [{ model: 'tiny', context: 100 }, 'context'],
    ] as const) {
      await changing?.kill();
      Object.assign(changing as object, change);
      await changing?.start();
      await until(() => router.replicas()[0]?.reason?.includes(word) ?? false);
      expect(router.replicas()[0]?.state).toBe('down');
      const before = changing?.came.length;
      await router.generate(many(6));
      expect(changing?.came).toHaveLength(before ?? 0);
    }
    Object.assign(changing as object, { context: 4096 });
    await until(() => router.replicas()[0]?.state === 'healthy');
  });

  it('refuses a server that is not what the backend was added as', async () => {
    const [server] = await startServers(1);
    const known = await openRouter([server as never]);
    const expected = { ...(await known.capabilities()), modelName: 'other' };
    const router = await openRouter([server as never], { ready: false, expected });
    await until(() => router.replicas()[0]?.reason?.includes('serves tiny') ?? false);
    expect(await router.capabilities()).toMatchObject({ modelName: 'other' });
    expect(router.trouble()).toContain('is of other');
  });
});
