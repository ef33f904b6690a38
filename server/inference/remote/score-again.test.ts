/** Numbers become raw by the weights that sampled them, or stay labelled as what they are. */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { systemAmbient } from '../../core/ambient';
import { Cancelled, Unavailable } from '../../core/errors';
import type { GenerationResult, SamplingOptions, WeightUpdate } from '../backend';
import { scoreThrough } from './score-again';
import { openPlain, type PlainProtocolOptions, scoreOf } from './testing/plain-server';

const toClose: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const one of toClose.splice(0).reverse()) await one.close();
});

async function start(protocol: PlainProtocolOptions = { weights: {} }) {
  const { server, backend } = await openPlain(protocol, { ambient: systemAmbient() });
  toClose.push(server, backend);
  server.logprobKind = 'sampled';
  const generate = async (
    changes: Partial<SamplingOptions> = {},
    more: { raw?: boolean; signal?: AbortSignal } = {},
  ) => {
    const options = { maxTokens: 40, temperature: 0.6, topP: 1, topK: 0, minP: 0, seed: 1, stop: [], ...changes };
    const promptIds = Int32Array.from(Buffer.from('ab|'));
    const { raw = true, signal } = more;
    const [settled] = await backend.generate([
      { promptIds, options, affinityKey: 'one', rawLogprobs: raw, ...(signal && { signal }) },
    ]);
    if (settled?.status !== 'fulfilled') throw settled?.reason;
    return settled.value;
  };
  return { server, backend, generate };
}

const checkpoint: WeightUpdate['source'] = { kind: 'checkpoint', path: '/new' };

/** Every number is that of the weights that the token's span names. */
function expectFits({ ids, logprobs, logprobKind, weightVersions }: GenerationResult): void {
  expect(logprobKind).toBe('raw');
  for (const { version, start, end } of weightVersions)
    for (let k = start; k < end; k++) expect(logprobs[k]).toBe(Math.fround(scoreOf(ids[k] as number, version)));
}

describe('numbers of another kind than raw', () => {
  it('are scored again when that is asked for, also where some are missing', async () => {
    const { server, generate } = await start();
    expect(await generate({}, { raw: false })).toMatchObject({ logprobKind: 'sampled' });
    expect(server.paths()).not.toContain('/score');
    expectFits(await generate());
    server.logprobKind = 'raw';
    server.change = (reply) => ({ ...reply, logprobs: reply.logprobs.map((value, k) => (k === 2 ? null : value)) });
    expectFits(await generate());
    server.change = (reply) => reply;
    server.asked.length = 0;
    await generate();
    expect(server.paths()).not.toContain('/score');
  });

  it('stay what they are where the server cannot score', async () => {
    const { generate } = await start({ weights: {}, scores: false });
    expect(await generate()).toMatchObject({ logprobKind: 'sampled' });
  });

  it('stay what they are when somebody else changed the weights before they could be scored', async () => {
    const { server, generate } = await start();
    server.says = 'label';
    server.holdsScores = true;
    const sampled = generate();
    await server.reached('/score');
    server.loaded = 'v2';
    server.label = 'v2';
    server.holdsScores = false;
    const result = await sampled;
    expect(result).toMatchObject({ logprobKind: 'sampled', weightVersions: [{ version: 'v1' }] });
    expect([...result.logprobs].every((value) => value === -0.5)).toBe(true);
  });

  it('stay what they are of a generation that two weights made', async () => {
    const { server, generate } = await start();
    server.says = 'spans';
    server.holdAt = 7;
    const sampled = generate();
    await server.reached('/generate');
    server.loaded = 'v2';
    server.label = 'v2';
    server.holdAt = null;
    expect(await sampled).toMatchObject({ logprobKind: 'sampled', weightVersions: [{ end: 7 }, { start: 7 }] });
    expect(server.paths()).not.toContain('/score');
  });

  it.each(['nothing', 'label', 'spans'] as const)(
    'are scored by the old weights before a drained update brings new ones (reply says %s)',
    async (says) => {
      const { server, backend, generate } = await start();
      server.says = says;
      server.holdAt = 7;
      const old = generate();
      await server.reached('/generate');
      const update = backend.updateWeights({ source: checkpoint, version: 'v2' });
      // It is paused as soon as nothing is sampled any more, so the scoring meets a paused server.
      await server.reached('/pause');
      server.holdAt = null;
      await update;
      const result = await old;
      expect(result.weightVersions).toMatchObject([{ version: 'v1' }]);
      expectFits(result);
      expect((await generate()).weightVersions).toMatchObject([{ version: 'v2' }]);
    },
  );

  it.each(['nothing', 'label', 'spans'] as const)(
    'are scored piece by piece when an update interrupts, each by its own weights (reply says %s)',
    async (says) => {
      const { server, backend, generate } = await start();
      server.says = says;
      server.script = () => 'a'.repeat(39);
      server.holdAt = 7;
      const running = generate({ maxTokens: 30 });
      await server.reached('/generate');
      await backend.updateWeights({ source: checkpoint, version: 'v2', inFlight: 'interrupt' });
      const result = await running;
      expect(result.weightVersions).toEqual([
        { version: 'v1', start: 0, end: 7 },
        { version: 'v2', start: 7, end: 30 },
      ]);
      expectFits(result);
      expect(server.paused).toBe(false);
    },
  );

  it('are not asked for of what a constraint throws away', async () => {
    const { server, backend, generate } = await start();
    server.script = () => 'a'.repeat(20);
    server.logprobKind = 'constrained';
    server.holdAt = 7;
    const running = generate({ maxTokens: 20, constraint: { kind: 'regex', pattern: 'a{20}' } });
    await server.reached('/generate');
    await backend.updateWeights({ source: checkpoint, version: 'v2', inFlight: 'interrupt' });
    expectFits(await running);
    expect(server.paths().filter((path) => path === '/score')).toHaveLength(1);
  });

  it('stay what they are when a trainer moved the tensors: those serve before anything could be scored', async () => {
    const { server, backend, generate } = await start();
    server.holdAt = 7;
    const sampled = generate();
    await server.reached('/generate');
    server.loaded = 'v2';
    const update = backend.updateWeights({ source: { kind: 'external' }, version: 'v2' });
    await server.reached('/pause');
    server.holdAt = null;
    await update;
    expect(server.paths().filter((path) => path === '/pause' || path === '/resume')).toEqual(['/pause', '/resume']);
    expect(await sampled).toMatchObject({ logprobKind: 'sampled' });
  });

  it('are given up with the generation', async () => {
    const { server, generate } = await start();
    server.holdsScores = true;
    const stop = new AbortController();
    const sampled = generate({}, { signal: stop.signal });
    await server.reached('/score');
    stop.abort();
    await expect(sampled).rejects.toBeInstanceOf(Cancelled);
  });
});

describe('a scoring that an update stops', () => {
  it('is asked for again and is of the new weights', async () => {
    const { server, backend } = await start();
    server.holdsScores = true;
    const scores = backend.getLogprobs([{ promptIds: Int32Array.of(1), completionIds: Int32Array.of(7, 8) }]);
    await server.reached('/score');
    const update = backend.updateWeights({ source: checkpoint, version: 'v2', inFlight: 'interrupt' });
    await server.reached('/pause');
    await sleep(20);
    server.holdsScores = false;
    await update;
    const version = await backend.weightVersion();
    expect(version).toBe('v2');
    const [{ logprobs } = { logprobs: [] }] = await scores;
    expect([...logprobs]).toEqual([7, 8].map((id) => Math.fround(scoreOf(id, version))));
  });

  it('again and again is given up, and may be sent elsewhere', async () => {
    const waits: number[] = [];
    const patience = { wait: async (ms: number) => waits.push(ms), signal: undefined, server: 'The server' };
    const error = await scoreThrough(async () => null, patience).catch((thrown) => thrown);
    expect(error).toBeInstanceOf(Unavailable);
    expect(error.message).toContain('stopped a scoring 41 times in a row');
    expect(error.details).toMatchObject({ retry: true });
    expect(Math.max(...waits)).toBe(2_000);
  });
});
