import { describe, expect, it } from 'vitest';
import { Cancelled, Invalid, Unavailable } from '../../core/errors';
import { loopbackSource } from './testing/loopback-backend';
import { ask, generate, openRouter, startServers, until } from './testing/open-router';

describe('a router over replicas', () => {
  it('spreads keys over the servers and keeps the requests of a key on one', async () => {
    const servers = await startServers(3);
    const router = await openRouter(servers);
    const turns = Array.from({ length: 6 }, (_, trajectory) => `trj_${trajectory}`);
    for (let turn = 0; turn < 4; turn++) {
      const settled = await router.generate(turns.map((key) => ask(key)));
      expect(settled.every((one) => one.status === 'fulfilled')).toBe(true);
    }
    expect(servers.map((server) => new Set(server.keys).size)).toEqual([2, 2, 2]);
  });

  it('holds back what is over the limits of requests and of tokens, and sends it as soon as there is room', async () => {
    const [byCount, byTokens] = await startServers(2, { takesMs: 20 });
    const four = await openRouter([byCount as never], { maxInFlight: 4 });
    await four.generate(Array.from({ length: 20 }, (_, k) => ask(`${k}`)));
    expect(byCount?.mostRunning).toBe(4);
    const three = await openRouter([byTokens as never], { tokensInFlight: 15 });
    await three.generate(Array.from({ length: 9 }, (_, k) => ask(`${k}`)));
    expect(byTokens?.mostRunning).toBe(3);
    expect(byTokens?.came).toHaveLength(9);
    expect(three.replicas()).toMatchObject([{ inFlight: 0, tokensInFlight: 0 }]);
  });

  it('says what all the servers can do together', async () => {
    const [one, two] = await startServers(2);
    if (two) two.context = 2000;
    const router = await openRouter([one as never, two as never]);
    expect(await router.capabilities()).toMatchObject({
      contextLength: 2000,
      maxInFlight: 16,
      modelName: 'tiny',
      batchSize: 1,
      constraints: ['choice', 'regex'],
    });
    expect(await router.health()).toEqual({ ok: true, message: '2 of 2 servers serve tiny, weights v0.' });
    expect(await router.weightVersion()).toBe('v0');
  });

  it('sends a failed request elsewhere when that is safe, each time afresh, and never more often than three times', async () => {
    const [broken, well] = await startServers(2);
    const router = await openRouter([broken as never, well as never]);
    Object.assign(broken as object, { mode: 'drop', onlyGenerations: true });
    const results = await Promise.all(Array.from({ length: 4 }, (_, k) => generate(router, ask(`${k}`))));
    for (const { ids, logprobs, byteEnds, weightVersions } of results) {
      // Nothing of the try that failed is left in it.
      expect([ids.length, logprobs.length, byteEnds.length, weightVersions.at(-1)?.end]).toEqual([3, 3, 3, 3]);
    }
    expect(well?.came).toHaveLength(4);
    Object.assign(well as object, { mode: 'drop', onlyGenerations: true });
    const [before] = [(broken?.generated ?? 0) + (well?.generated ?? 0)];
    const failed = generate(router, ask('k'));
    await expect(failed).rejects.toBeInstanceOf(Unavailable);
    await expect(failed).rejects.toThrow('tried 4 times');
    await expect(failed).rejects.toMatchObject({ details: { retry: false } });
    expect((broken?.generated ?? 0) + (well?.generated ?? 0)).toBe(before);
  });

  it('waits before it sends a failed request again, and no longer than it is wanted', async () => {
    const [broken] = await startServers(1);
    const router = await openRouter([broken as never], { retryPauseMs: 600_000 });
    Object.assign(broken as object, { mode: 'drop', onlyGenerations: true });
    const stop = new AbortController();
    const failed = generate(router, ask('k', { signal: stop.signal }));
    await until(() => router.replicas()[0]?.errors === 1);
    // It is well, and takes requests again.
    Object.assign(broken as object, { mode: 'well' });
    await until(() => router.replicas()[0]?.state === 'healthy');
    await generate(router, ask('other'));
    expect([router.replicas()[0]?.errors, broken?.came.length]).toEqual([1, 1]);
    stop.abort(new Cancelled('Enough.'));
    await expect(failed).rejects.toThrow('Enough.');
  });

  it('never repeats what another try would meet again', async () => {
    const servers = await startServers(2);
    const router = await openRouter(servers);
    await expect(generate(router, ask('k', { id: -1 }))).rejects.toBeInstanceOf(Invalid);
    expect(servers.flatMap((server) => server.came)).toEqual([-1]);
    expect(router.replicas().every((replica) => replica.state === 'healthy')).toBe(true);
    expect(router.replicas().map(({ errors }) => errors)).toEqual([1, 0]);
  });

  it('takes a server that refuses some as one with fewer places', async () => {
    const [small] = await startServers(1, { capacity: 2, takesMs: 10 });
    const router = await openRouter([small as never]);
    const settled = await router.generate(Array.from({ length: 30 }, (_, k) => ask(`${k}`)));
    expect(settled.filter((one) => one.status === 'fulfilled')).toHaveLength(30);
    expect(small?.mostRunning).toBe(2);
    expect(router.trouble()).toBeNull();
  });

  it('ends a wait at once when the request is stopped, and stops what is in flight', async () => {
    const [server] = await startServers(1, { takesMs: 60_000 });
    const router = await openRouter([server as never], { maxInFlight: 1 });
    const stop = new AbortController();
    const running = generate(router, ask('a', { signal: stop.signal }));
    await until(() => server?.running === 1);
    const reason = new Cancelled('The run was cancelled.');
    const waitsOnly = new AbortController();
    const waiting = generate(router, ask('b', { signal: waitsOnly.signal }));
    waitsOnly.abort(reason);
    await expect(waiting).rejects.toBe(reason);
    stop.abort();
    await expect(running).rejects.toBeInstanceOf(Cancelled);
    await until(() => router.replicas()[0]?.inFlight === 0);
    expect(server?.came).toHaveLength(1);
    await expect(generate(router, ask('c', { signal: AbortSignal.abort(reason) }))).rejects.toBe(reason);
  });

  it('scores pairs on all servers, in their order, and stops the rest at the first failure', async () => {
    const servers = await startServers(2);
    const router = await openRouter(servers);
    const pair = (id: number, length: number) => ({
      promptIds: Int32Array.of(id),
      completionIds: new Int32Array(length),
    });
    const scores = await router.getLogprobs([pair(1, 1), pair(2, 2), pair(3, 3), pair(4, 1)]);
    expect(scores.map(({ logprobs }) => logprobs.length)).toEqual([1, 2, 3, 1]);
    expect(servers.every((server) => server.came.length === 2)).toBe(true);
    await expect(router.getLogprobs([pair(-1, 1), ...Array(40).fill(pair(5, 1))])).rejects.toBeInstanceOf(Invalid);
    expect(servers.flatMap((server) => server.came).length).toBeLessThan(40);
  });

  it('holds all requests back while it is paused, after those under way', async () => {
    const servers = await startServers(2, { takesMs: 40 });
    const router = await openRouter(servers);
    const running = generate(router, ask('a'));
    await until(() => servers.some((server) => server.running === 1));
    await router.pause();
    expect(servers.every((server) => server.running === 0)).toBe(true);
    await running;
    expect(router.trouble()).toContain('paused');
    const waiting = generate(router, ask('b'));
    expect((await router.tokenize('ab', { special: false })).ids).toHaveLength(2);
    expect(router.replicas().map(({ state }) => state)).toEqual(['paused', 'paused']);
    expect(servers.flatMap((server) => server.came)).toHaveLength(1);
    await router.resume();
    expect((await waiting).ids).toHaveLength(3);
    expect(router.trouble()).toBeNull();
  });

  it('ends everything that waits when it is closed', async () => {
    const [server] = await startServers(1, { takesMs: 60_000 });
    const router = await openRouter([server as never], { maxInFlight: 1 });
    const all = Promise.allSettled([generate(router, ask('a')), generate(router, ask('b'))]);
    await until(() => server?.running === 1);
    await router.close();
    for (const one of await all) expect(one).toMatchObject({ status: 'rejected', reason: expect.any(Unavailable) });
    await expect(generate(router, ask('c'))).rejects.toBeInstanceOf(Unavailable);
    await expect(router.tokenize('a', { special: false })).rejects.toBeInstanceOf(Unavailable);
  });

  it('reads the figures of the servers while someone looks', async () => {
    const [server] = await startServers(1);
    const router = await openRouter([server as never], { figureStepMs: 20 });
    while (!((router.replicas()[0]?.figures?.tokensPerSecond ?? 0) > 0)) await generate(router, ask('a'));
    await until(() => router.replicas()[0]?.figures?.running === 0);
    expect(router.replicas()[0]?.figures).toMatchObject({ waiting: null, promptTokensPerSecond: null });
    await server?.kill();
    await until(() => router.replicas()[0]?.figures === null);
  });

  it('does not lose a replica whose metrics cannot be read', async () => {
    const [server] = await startServers(1);
    const source = loopbackSource(server?.url ?? '');
    let read = 0;
    const metrics = source.metrics && { ...source.metrics, read: () => Promise.reject(new Error(`no ${read++}`)) };
    const router = await openRouter([], { replicas: [{ ...source, ...(metrics && { metrics }) }], figureStepMs: 10 });
    await until(() => router.replicas()[0]?.state === 'healthy' && read > 2);
    expect(router.replicas()[0]).toMatchObject({ figures: null, state: 'healthy', errors: 0 });
  });
});
