import { describe, expect, it } from 'vitest';
import { Cancelled, TimedOut, Unavailable } from '../core/errors';
import { bearableSize } from './pool';
import type { SandboxPool } from './sandbox';
import { javascript, openPool, runAt } from './testing';

/** Sandboxes of level wasm exist on every host. */
const want = { level: 'wasm', accept: ['wasm'], kind: 'javascript' } as const;

async function withPool(
  options: Parameters<typeof openPool>[0],
  work: (pool: SandboxPool) => Promise<void>,
): Promise<void> {
  // Only the levels that exist everywhere: the rest has tests of its own.
  const pool = await openPool({ programFolders: [], ...options });
  try {
    await work(pool);
  } finally {
    await pool.close();
  }
}
const wasm = (pool: SandboxPool) => pool.stats().find((entry) => entry.level === 'wasm');

describe('a pool of sandboxes', () => {
  it('has one ready at the start and starts more only up to its size', () =>
    withPool({ size: 2 }, async (pool) => {
      expect(wasm(pool)).toEqual({ level: 'wasm', size: 1, busy: 0, waiting: 0, replaced: 0 });
      const first = await pool.acquire(want);
      const second = await pool.acquire(want);
      expect(second.sandbox).not.toBe(first.sandbox);
      const third = pool.acquire(want);
      expect(wasm(pool)).toMatchObject({ size: 2, busy: 2, waiting: 1 });
      await first.release();
      expect((await third).sandbox).toBe(first.sandbox);
      await (await third).release();
      await second.release();
    }));

  it('serves in the order of asking', () =>
    withPool({ size: 1 }, async (pool) => {
      const held = await pool.acquire(want);
      const order: number[] = [];
      const later = [1, 2, 3, 4].map(async (n) => {
        const lease = await pool.acquire(want);
        order.push(n);
        await lease.release();
      });
      await held.release();
      await Promise.all(later);
      expect(order).toEqual([1, 2, 3, 4]);
    }));

  it('lets a caller wait so long and no longer', () =>
    withPool({ size: 1, acquireMs: 50 }, async (pool) => {
      const held = await pool.acquire(want);
      await expect(pool.acquire(want)).rejects.toThrow(TimedOut);
      expect(wasm(pool)?.waiting).toBe(0);
      await held.release();
      await (await pool.acquire(want)).release();
    }));

  it('lets a caller stop waiting', () =>
    withPool({ size: 1 }, async (pool) => {
      const held = await pool.acquire(want);
      const stop = new AbortController();
      const waiting = expect(pool.acquire({ ...want, signal: stop.signal })).rejects.toThrow(Cancelled);
      stop.abort();
      await waiting;
      await expect(pool.acquire({ ...want, signal: stop.signal })).rejects.toThrow(Cancelled);
      expect(wasm(pool)?.waiting).toBe(0);
      await held.release();
    }));

  it('takes a sandbox back once, however often it is released', () =>
    withPool({ size: 1 }, async (pool) => {
      const lease = await pool.acquire(want);
      await Promise.all([lease.release(), lease.release()]);
      const next = await pool.acquire(want);
      await lease.release();
      expect(wasm(pool)).toMatchObject({ size: 1, busy: 1 });
      await next.release();
    }));

  it('replaces a broken one', () =>
    withPool({ size: 1 }, async (pool) => {
      const lease = await pool.acquire(want);
      await lease.sandbox.close();
      await lease.release();
      expect(wasm(pool)?.replaced).toBe(1);
      expect((await runAt(pool, 'wasm', javascript('return 5'))).value).toBe(5);
    }));

  it('ends what has been idle beyond those kept warm', () =>
    withPool({ size: 3, idleMs: 50 }, async (pool) => {
      const leases = await Promise.all([1, 2, 3].map(() => pool.acquire(want)));
      expect(wasm(pool)?.size).toBe(3);
      await Promise.all(leases.map((lease) => lease.release()));
      while (wasm(pool)?.size !== 1) await new Promise((resolve) => setTimeout(resolve, 20));
    }));

  it('runs many short calls through few sandboxes', () =>
    withPool({ size: 4 }, async (pool) => {
      const values = await Promise.all(
        Array.from(
          { length: 100 },
          async (_, i) => (await runAt(pool, 'wasm', { ...javascript('return args'), args: i } as never)).value,
        ),
      );
      expect(values).toEqual(Array.from({ length: 100 }, (_, i) => i));
      expect(wasm(pool)?.size).toBeLessThanOrEqual(4);
    }));

  it('reports every level, with the reason where one is absent', () =>
    withPool({}, async (pool) => {
      const levels = pool.levels();
      expect(levels.map((entry) => entry.level)).toEqual(['none', 'wasm', 'process', 'container', 'vm']);
      for (const entry of levels) {
        expect(entry.available).toBe(entry.kinds.length > 0);
        if (!entry.available) expect(entry.reason).toMatch(/\.$/);
      }
    }));

  it('never goes to a level that was not named', () =>
    withPool({}, async (pool) => {
      await expect(pool.acquire({ level: 'vm', accept: ['vm', 'container'], kind: 'javascript' })).rejects.toThrow(
        'No sandbox that the skill accepts runs javascript on this host. vm: This version has no virtual machine level yet. container: This version has no container level yet. Another level is used only if the skill names it under sandbox.accept.',
      );
      await expect(pool.acquire({ level: 'wasm', accept: [], kind: 'python' })).rejects.toThrow(
        'wasm: it does not run python.',
      );
      const strongest = await pool.acquire({ level: 'vm', accept: ['none', 'wasm', 'container'], kind: 'javascript' });
      expect(strongest.sandbox.level).toBe('wasm');
      await strongest.release();
    }));

  it('when closed ends what runs and refuses what waits', async () => {
    const pool = await openPool({ programFolders: [], size: 1 });
    const held = await pool.acquire(want);
    const running = held.sandbox.run(javascript('for (;;);'));
    const waiting = expect(pool.acquire(want)).rejects.toThrow(Unavailable);
    await pool.close();
    await waiting;
    expect((await running).status).toBe('error');
    await held.release();
    await expect(pool.acquire(want)).rejects.toThrow(Unavailable);
  });
});

it('a pool is as large as wanted, or as the memory bears', () => {
  const GIB = 1024 ** 3;
  expect([
    bearableSize(16, 24 * GIB),
    bearableSize(16, 2 * GIB),
    bearableSize(16, GIB / 4),
    bearableSize(1, GIB / 4),
  ]).toEqual([16, 8, 2, 1]);
});
