import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Cancelled } from '../core/errors';
import type { SandboxLevel } from '../core/vocabulary';
import type { SandboxPool, SandboxRequest } from './sandbox';
import { javascript, openPool, python, runAt, runsHere } from './testing';

let pool: SandboxPool;
beforeAll(async () => {
  pool = await openPool({ size: 2 });
});
afterAll(() => pool.close());

/** Body of main, and what comes of it at every level. */
const CASES: [name: string, body: string, expected: Record<string, unknown>][] = [
  [
    'returns a value',
    'return { sum: args.n + env.secret, list: [1, "é"] }',
    { status: 'success', value: { sum: 12, list: [1, 'é'] } },
  ],
  ['returns nothing as null', '', { status: 'success', value: null }],
  ['may be awaited', 'return Promise.resolve(4).then((x) => x * 2)', { status: 'success', value: 8 }],
  [
    'prints',
    'console.log("a", 1, { b: [2] }); console.error("c"); return 1',
    { stdout: 'a 1 {"b":[2]}\n', stderr: 'c\n' },
  ],
  [
    'throws',
    'throw new RangeError("too far")',
    { status: 'error', value: null, stderr: expect.stringContaining('RangeError: too far') },
  ],
  ['throws what is no error', 'throw { code: 7 }', { status: 'error', stderr: expect.stringContaining('{"code":7}') }],
  [
    'rejects',
    'return Promise.reject(new Error("no"))',
    { status: 'error', stderr: expect.stringContaining('Error: no') },
  ],
  [
    'returns what JSON cannot hold',
    'return () => 1',
    { status: 'error', stderr: expect.stringContaining('which JSON cannot hold') },
  ],
  [
    'returns broken text',
    'return { ["k\\0"]: "a\\u0000b\\ud800c", back: "\\\\u0000" }',
    { value: { 'k\u2400': 'a\u2400b\ufffdc', back: '\\u0000' } },
  ],
  ['recurses without end', 'return (function f() { return [f()]; })()', { status: 'error', value: null }],
  ['takes all memory', 'const x = []; for (;;) x.push(new Array(1000).fill(1))', { status: 'error', value: null }],
  [
    'is nested deeply',
    'let x = []; for (let i = 0; i < 300; i++) x = [x]; return x',
    { status: 'error', value: null, stderr: expect.stringContaining('nested too deeply') },
  ],
  ['reads what is nested without end', 'return JSON.parse("[".repeat(1e6))', { status: 'error', value: null }],
  [
    'finds no file, network or process',
    'return [typeof require, typeof process, typeof fetch, typeof Deno, typeof std, typeof os, typeof setTimeout].join()',
    { value: Array(7).fill('undefined').join() },
  ],
  [
    'finds no way through a constructor',
    'return (0, eval)("typeof process") + console.log.constructor("return typeof globalThis.process")()',
    { value: 'undefinedundefined' },
  ],
  ['imports nothing', 'return import("node:fs")', { status: 'error', value: null }],
];
const LEVELS: SandboxLevel[] = ['wasm', 'process', 'none'];

describe('a javascript program', () => {
  for (const [name, body, expected] of CASES)
    it(`that ${name} gives the same at every level`, async () => {
      const outcomes = [];
      for (const level of LEVELS)
        if (runsHere(pool, level, 'javascript'))
          outcomes.push({ ...(await runAt(pool, level, javascript(body))), durationMs: 0 });
      expect(outcomes[0]).toMatchObject(expected);
      for (const outcome of outcomes) expect(outcome).toEqual(outcomes[0]);
    });

  it('without main, or with no valid text, is an error that says so', async () => {
    const run = (source: string) => runAt(pool, 'wasm', { ...(javascript('') as object), source } as SandboxRequest);
    expect((await run('let x = 1')).stderr).toContain('The source defines no function main(args, env).');
    expect((await run('function main( {')).stderr).toContain('SyntaxError');
    expect((await run('const main = async ({ n }) => n')).value).toBe(5);
  });

  it('finds nothing of the call before', async () => {
    await runAt(pool, 'wasm', javascript('globalThis.left = 1; Object.prototype.left = 2; JSON.stringify = () => "9"'));
    expect((await runAt(pool, 'wasm', javascript('return [typeof left, JSON.stringify(1)]'))).value).toEqual([
      'undefined',
      '1',
    ]);
  });

  it('cannot break the answer by replacing what the harness uses', async () => {
    const body = 'JSON.stringify = () => "{"; Promise.prototype.then = 5; Promise.resolve = () => 1; return 3';
    for (const level of LEVELS) {
      if (!runsHere(pool, level, 'javascript')) continue;
      const outcome = await runAt(pool, level, javascript(body));
      expect(['success', 'error']).toContain(outcome.status);
      expect((await runAt(pool, level, javascript('return 1'))).value).toBe(1);
    }
  });

  for (const level of LEVELS) {
    it(`in an endless loop is stopped at level ${level}, and the sandbox serves on`, async () => {
      if (!runsHere(pool, level, 'javascript')) return;
      const replaced = () => pool.stats().find((entry) => entry.level === level)?.replaced;
      const before = replaced();
      const outcome = await runAt(pool, level, javascript('console.log("in"); for (;;);', 200));
      expect(outcome).toMatchObject({ status: 'timeout', value: null, stdout: 'in\n' });
      expect(outcome.stderr).toContain('past its limit of 200 ms');
      expect(replaced()).toBe(before);
    });

    it(`that keeps the engine busy in one instruction is killed at level ${level}, and replaced`, async () => {
      if (!runsHere(pool, level, 'javascript')) return;
      const replaced = () => pool.stats().find((entry) => entry.level === level)?.replaced ?? 0;
      const before = replaced();
      const outcome = await runAt(
        pool,
        level,
        javascript('let x = 3n ** 100000n; x = x ** 20n; return String(x).length', 150),
      );
      expect(outcome).toMatchObject({ status: 'timeout', value: null });
      expect(replaced()).toBeGreaterThanOrEqual(before);
      expect((await runAt(pool, level, javascript('return 2'))).value).toBe(2);
    });

    it(`whose promise never settles is a timeout at level ${level}`, async () => {
      if (!runsHere(pool, level, 'javascript')) return;
      const outcome = await runAt(pool, level, javascript('return new Promise(() => {})', 5_000));
      expect(outcome).toMatchObject({ status: 'timeout', value: null });
      expect(outcome.stderr).toContain('can never settle');
    });

    it(`is ended by an abort at level ${level}`, async () => {
      if (!runsHere(pool, level, 'javascript')) return;
      const lease = await pool.acquire({ level, accept: [], kind: 'javascript' });
      const stop = new AbortController();
      const running = expect(lease.sandbox.run(javascript('for (;;);'), stop.signal)).rejects.toThrow(Cancelled);
      setTimeout(() => stop.abort(), 50);
      await running;
      await lease.release();
      await expect(lease.sandbox.run(javascript('return 1'))).rejects.toThrow('The sandbox has ended.');
    });
  }

  it('has output past the cap counted', async () => {
    const small = await openPool({ size: 1, limits: { outputBytes: 1000 } });
    try {
      for (const level of LEVELS) {
        if (!runsHere(small, level, 'javascript')) continue;
        const outcome = await runAt(
          small,
          level,
          javascript('console.log("x".repeat(899)); console.log("y".repeat(200)); return 1'),
        );
        expect(outcome).toMatchObject({ status: 'success', value: 1, droppedBytes: 201 });
        expect(outcome.stdout.length).toBe(900);
      }
    } finally {
      await small.close();
    }
  });
});

describe('python at level none', () => {
  it('runs as a plain process, and its group ends with it', async () => {
    if (!runsHere(pool, 'none', 'python')) return;
    expect(
      await runAt(pool, 'none', python('import sys; print("out"); print("err", file=sys.stderr); sys.exit(2)')),
    ).toMatchObject({
      status: 'error',
      stdout: 'out\n',
      stderr: 'err\n',
      exitCode: 2,
    });
    const late = await runAt(
      pool,
      'none',
      python('import os, time\nif os.fork() == 0: time.sleep(600)\nprint(1, flush=True); time.sleep(600)', 700),
    );
    expect(late).toMatchObject({ status: 'timeout', stdout: '1\n', exitCode: null });
  });
});
