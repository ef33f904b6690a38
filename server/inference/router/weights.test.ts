import { describe, expect, it } from 'vitest';
import { Conflict, Invalid, Unavailable } from '../../core/errors';
import type { WeightUpdate } from '../backend';
import { ask, generate, openRouter, pause, startServers, until } from './testing/open-router';

const to = (version: string, changes: Partial<WeightUpdate> = {}): WeightUpdate => ({
  source: { kind: 'checkpoint', path: `/ckpt/${version}` },
  version,
  ...changes,
});
const versionsOf = async (work: Promise<PromiseSettledResult<{ weightVersions: { version: string }[] }>[]>) =>
  (await work).map((one) => (one.status === 'fulfilled' ? one.value.weightVersions[0]?.version : one.reason));

describe('new weights over replicas', () => {
  it('drains one server after the other while the others serve, and no request is lost', async () => {
    const servers = await startServers(3, { takesMs: 30 });
    const router = await openRouter(servers);
    let most = 0;
    let least = 3;
    const watching = setInterval(() => {
      const updating = router.replicas().filter(({ state }) => state === 'updating').length;
      most = Math.max(most, updating);
      least = Math.min(least, 3 - updating);
    }, 1);
    const before = router.generate(Array.from({ length: 30 }, (_, k) => ask(`${k}`)));
    const stopped = router.stoppedMs();
    const updating = router.updateWeights(to('v1'));
    const during = router.generate(Array.from({ length: 30 }, (_, k) => ask(`${k}`)));
    await updating;
    clearInterval(watching);
    expect([most, least]).toEqual([1, 2]);
    expect(router.stoppedMs()).toBe(stopped);
    for (const version of [...(await versionsOf(before)), ...(await versionsOf(during))])
      expect(['v0', 'v1']).toContain(version);
    expect(await router.weightVersion()).toBe('v1');
    expect(await versionsOf(router.generate(Array.from({ length: 9 }, (_, k) => ask(`${k}`))))).toEqual(
      Array(9).fill('v1'),
    );
    expect(servers.map(({ updates }) => updates)).toEqual([['v1'], ['v1'], ['v1']]);
  });

  it('prefers the newest weights while they are mixed, and says what all still serve', async () => {
    const [first, second] = await startServers(2);
    const router = await openRouter([first as never, second as never]);
    Object.assign(second as object, { takesMs: 150 });
    const updating = router.updateWeights(to('v1'));
    await until(() => router.replicas()[1]?.state === 'updating' && router.replicas()[0]?.state === 'healthy');
    expect(await router.weightVersion()).toBe('v0');
    expect(await versionsOf(router.generate([ask('a'), ask('b')]))).toEqual(['v1', 'v1']);
    await updating;
    expect(await router.weightVersion()).toBe('v1');
  });

  it('updates all at once when generations are interrupted or a trainer moves the tensors; requests wait, with a reason', async () => {
    const servers = await startServers(3, { takesMs: 60 });
    const router = await openRouter(servers);
    for (const update of [to('v1', { inFlight: 'interrupt' }), to('v2', { source: { kind: 'external' } })]) {
      const updating = router.updateWeights(update);
      expect(router.replicas().map(({ state }) => state)).toEqual(['updating', 'updating', 'updating']);
      expect(router.trouble()).toContain(update.version);
      const waiting = router.generate([ask('a')]);
      await expect(router.updateWeights(to('v9'))).rejects.toBeInstanceOf(Conflict);
      await updating;
      expect(await versionsOf(waiting)).toEqual([update.version]);
      expect(router.trouble()).toBeNull();
    }
    expect(router.stoppedMs()).toBeGreaterThan(100);
  });

  it('keeps the old weights everywhere when the first server says that the new ones are wrong', async () => {
    const servers = await startServers(3, { refusesWeights: 'no such folder' });
    const router = await openRouter(servers);
    const failed = router.updateWeights(to('v1'));
    await expect(failed).rejects.toBeInstanceOf(Invalid);
    await expect(failed).rejects.toThrow(/no such folder\. The weights v0 go on serving\.$/);
    expect(router.replicas().map(({ state }) => state)).toEqual(['healthy', 'healthy', 'healthy']);
    expect(servers.flatMap(({ updates }) => updates)).toEqual([]);
    expect(await router.weightVersion()).toBe('v0');
  });

  it('takes out the one that could not take them, says which serve what, and takes it back with the next', async () => {
    const [first, failing, third] = await startServers(3);
    const servers = [first as never, failing as never, third as never];
    const router = await openRouter(servers);
    Object.assign(failing as object, { refusesWeights: 'disk full' });
    const failed = router.updateWeights(to('v1'));
    await expect(failed).rejects.toThrow(/disk full/);
    await expect(failed).rejects.toThrow(
      new RegExp(`v1 are served by ${first?.url}, ${third?.url} alone; ${failing?.url}`),
    );
    expect(await router.weightVersion()).toBe('v1');
    await pause(150);
    expect(router.replicas()[1]).toMatchObject({ state: 'down', weightVersion: 'v0' });
    expect(router.replicas()[1]?.reason).toContain('v1');
    expect(await versionsOf(router.generate(Array.from({ length: 6 }, (_, k) => ask(`${k}`))))).toEqual(
      Array(6).fill('v1'),
    );
    expect(failing?.came).toEqual([]);
    Object.assign(failing as object, { refusesWeights: null });
    await router.updateWeights(to('v2'));
    await until(() => router.replicas().every(({ state }) => state === 'healthy'));
    expect(router.replicas().map(({ weightVersion }) => weightVersion)).toEqual(['v2', 'v2', 'v2']);
  });

  it('brings a server that comes back the weights it missed before it serves', async () => {
    const [away, here] = await startServers(2);
    const router = await openRouter([away as never, here as never]);
    await away?.kill();
    await until(() => router.replicas()[0]?.state === 'down');
    await router.updateWeights(to('v1'));
    expect(await router.weightVersion()).toBe('v1');
    await away?.start();
    await until(() => router.replicas()[0]?.state === 'healthy');
    expect(away?.updates).toEqual(['v1']);
    // Started again without anybody asking: it has its first weights, and is noticed.
    await away?.kill();
    Object.assign(away as object, { version: 'v0' });
    await away?.start();
    await until(() => away?.updates.length === 2 && router.replicas()[0]?.state === 'healthy');
    expect(await versionsOf(router.generate([ask('a'), ask('b')]))).toEqual(['v1', 'v1']);
  });

  it('brings them also to one whose first weights have a label that was never met', async () => {
    const [away, here] = await startServers(2);
    const router = await openRouter([away as never, here as never]);
    await router.updateWeights(to('v1'));
    await away?.kill();
    Object.assign(away as object, { version: 'base' });
    await away?.start();
    await until(() => away?.updates.length === 2 && router.replicas()[0]?.state === 'healthy');
    expect(await versionsOf(router.generate([ask('a'), ask('b')]))).toEqual(['v1', 'v1']);
  });

  it('loses nothing when a server dies under its update', async () => {
    const [dying, other] = await startServers(2, { takesMs: 40 });
    const router = await openRouter([dying as never, other as never]);
    const running = router.generate(Array.from({ length: 10 }, (_, k) => ask(`${k}`)));
    const updating = router.updateWeights(to('v1'));
    await until(() => router.replicas()[0]?.state === 'updating');
    await dying?.kill();
    await expect(updating).rejects.toThrow(`served by ${other?.url} alone`);
    expect((await running).every((one) => one.status === 'fulfilled')).toBe(true);
    await dying?.start();
    await until(() => router.replicas()[0]?.state === 'healthy');
    expect(dying?.updates).toEqual(['v1']);
  });

  it('never rolls back what a trainer brought by itself', async () => {
    const [one, two] = await startServers(2);
    const router = await openRouter([one as never, two as never]);
    await router.updateWeights(to('v1'));
    for (const server of [one, two]) Object.assign(server as object, { version: 'step 7' });
    await until(() =>
      router.replicas().every(({ weightVersion, state }) => weightVersion === 'step 7' && state === 'healthy'),
    );
    expect(await router.weightVersion()).toBe('step 7');
    expect([one?.updates, two?.updates]).toEqual([['v1'], ['v1']]);
  });

  it('has nothing to update while no server answers', async () => {
    const [server] = await startServers(1);
    const router = await openRouter([server as never]);
    await server?.kill();
    await until(() => router.trouble() !== null);
    await expect(router.updateWeights(to('v1'))).rejects.toBeInstanceOf(Unavailable);
    await server?.start();
    expect((await generate(router, ask('a'))).weightVersions[0]?.version).toBe('v0');
  });
});
