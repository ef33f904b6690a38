import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { fixedAmbient } from '../../core/ambient';
import { Cancelled, Conflict, Invalid, TimedOut, Unavailable } from '../../core/errors';
import { silentLogger } from '../../observability/logger';
import type { GenerationResult, SamplingOptions, UnfinishedUpdate } from '../backend';
import { generateThrough } from './continue-generation';
import type { GenerationPiece } from './generation-piece';
import type { ServerProtocol } from './protocol';
import { RemoteBackend, type RemoteOptions } from './remote-backend';
import { BAR, END, openPlain, type PlainProtocolOptions, plainProtocol, type Reply } from './testing/plain-server';
import { WeightLabel } from './weight-label';

const PLAIN: SamplingOptions = { maxTokens: 40, temperature: 1, topP: 1, topK: 0, minP: 0, seed: 1, stop: [] };
const toClose: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const one of toClose.splice(0).reverse()) await one.close();
});

async function start(protocol: PlainProtocolOptions = {}, more: Partial<RemoteOptions> = {}) {
  const ambient = fixedAmbient();
  const { server, backend } = await openPlain(protocol, { ambient, ...more });
  toClose.push(server, backend);
  const generate = async (changes: Partial<SamplingOptions> = {}, prompt = 'ab|', signal?: AbortSignal) => {
    const [settled] = await backend.generate([
      {
        promptIds: Int32Array.from(new TextEncoder().encode(prompt)),
        options: { ...PLAIN, ...changes },
        affinityKey: 'one',
        ...(signal && { signal }),
      },
    ]);
    if (settled?.status !== 'fulfilled') throw settled?.reason;
    return settled.value;
  };
  return { server, backend, generate, ambient };
}

const textOf = (result: GenerationResult) => new TextDecoder().decode(result.bytes);
const failureOf = async (promise: Promise<unknown>): Promise<Error & { details: Record<string, unknown> }> =>
  promise.then(
    () => Promise.reject(new Error('It did not fail.')),
    (error) => error,
  );

describe('a generation', () => {
  it('has ids, numbers, bytes, its finish and the version of the weights', async () => {
    const { generate, server } = await start();
    const result = await generate();
    expect(textOf(result)).toBe('one two three<end>');
    expect(result.ids.at(-1)).toBe(END);
    expect(result).toMatchObject({ finishReason: 'eos', endTokenSampled: true, stopString: null, logprobKind: 'raw' });
    expect(result.weightVersions).toEqual([{ version: 'plain', start: 0, end: 14 }]);
    expect(server.asked[0]?.body.ids).toEqual([97, 98, 124]);
  });

  it('says whether the end-of-turn token is among the ids: some engines keep it to themselves', async () => {
    const { generate, server } = await start();
    server.change = ({ ids, logprobs, ...reply }) => ({
      ...reply,
      ids: ids.slice(0, -1),
      logprobs: logprobs.slice(0, -1),
      endTokenSampled: false,
    });
    const kept = await generate();
    expect(kept).toMatchObject({ finishReason: 'eos', endTokenSampled: false, stopString: null });
    expect([textOf(kept), kept.ids.at(-1)]).toEqual(['one two three', 'e'.charCodeAt(0)]);
    server.change = (reply) => ({ ...reply, ids: [], logprobs: [], endTokenSampled: true });
    expect(await generate()).toMatchObject({ finishReason: 'eos', endTokenSampled: false, ids: { length: 0 } });
  });

  it('is held to the context: less is asked for, and a prompt that fills it is refused with its length', async () => {
    const { generate, server } = await start();
    const long = `${'x'.repeat(57)}|`;
    expect((await generate({}, long)).finishReason).toBe('length');
    expect(server.asked[0]?.body.maxTokens).toBe(6);
    const error = await failureOf(generate({}, `${'x'.repeat(63)}|`));
    expect(error).toBeInstanceOf(Invalid);
    expect(error.message).toContain('64 tokens');
    expect(server.paths()).toEqual(['/generate']);
  });

  it('does not send ids that are in no vocabulary, or an empty prompt', async () => {
    const { backend, server } = await start();
    const request = { options: PLAIN, affinityKey: 'one' };
    const settled = await backend.generate([
      { ...request, promptIds: Int32Array.of(1, -7) },
      { ...request, promptIds: new Int32Array(0) },
      { ...request, promptIds: Int32Array.of(BAR) },
    ]);
    expect(settled.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'fulfilled']);
    expect(settled[0]).toMatchObject({ reason: { message: expect.stringContaining('-7 at position 1') } });
    expect(server.paths()).toEqual(['/generate']);
  });

  it.each([
    ['fewer numbers than ids', (reply: Reply) => ({ ...reply, logprobs: [-1] }), /14 token ids but 1 log-prob/],
    ['no ids', (reply: Reply) => ({ ...reply, ids: [], logprobs: [], finish: 'length' }), /without any token ids/],
    [
      'a longer prompt than was sent',
      (reply: Reply) => ({ ...reply, promptTokens: 4 }),
      /read 4 tokens where 3 were sent/,
    ],
    [
      'a negative id',
      (reply: Reply) => ({ ...reply, ids: [5, -1, ...reply.ids.slice(2)] }),
      /token id -1 at position 1/,
    ],
    ['zeros for numbers', (reply: Reply) => ({ ...reply, logprobs: reply.ids.map(() => 0) }), /does not compute them/],
    [
      'spans that overlap',
      (reply: Reply) => ({
        ...reply,
        versions: [
          { version: 'a', start: 0, end: 8 },
          { version: 'b', start: 6, end: 14 },
        ],
      }),
      /weights b made the tokens 6 to 14 of 14/,
    ],
    [
      'spans with a hole',
      (reply: Reply) => ({ ...reply, versions: [{ version: 'a', start: 0, end: 3 }] }),
      /11 of 14 tokens/,
    ],
  ])('with %s is refused', async (_, change, says) => {
    const { generate, server } = await start();
    server.change = change as never;
    const error = await failureOf(generate());
    expect(error).toBeInstanceOf(Invalid);
    expect(error.message).toMatch(says);
    expect(error.message).toContain(`The backend plain (${server.url})`);
  });

  it('may have zeros where they can be true: a few tokens, greedy, a filter', async () => {
    const { generate, server } = await start();
    server.change = (reply) => ({ ...reply, logprobs: reply.ids.map(() => 0) });
    for (const changes of [{ maxTokens: 8 }, { temperature: 0 }, { topK: 1 }]) await generate(changes);
  });

  it('gives numbers as they came, and none as NaN', async () => {
    const { generate, server } = await start();
    server.change = (reply) => ({ ...reply, logprobs: reply.ids.map((_, k) => (k === 0 ? null : -9999)) });
    expect(Array.from((await generate()).logprobs.slice(0, 2))).toEqual([Number.NaN, -9999]);
  });

  it('ends at once when it is stopped, with the reason', async () => {
    const { generate, server } = await start();
    server.holdAt = 3;
    const stop = new AbortController();
    const running = failureOf(generate({}, 'ab|', stop.signal));
    await server.reached('/generate');
    stop.abort(new TimedOut('The trajectory ran out of time.'));
    expect(await running).toBeInstanceOf(TimedOut);
    expect(await failureOf(generate({}, 'ab|', AbortSignal.abort()))).toBeInstanceOf(Cancelled);
  });

  it('that broke off is a failure, and the same request again starts afresh', async () => {
    const { generate, server } = await start();
    let broken = true;
    server.instead = (path, response) => {
      if (path !== '/generate' || !broken) return false;
      broken = false;
      response.writeHead(200, { 'content-type': 'application/json' });
      response.write('{"ids":[111,110,101],"logprobs":[-1,-1,-1],"finish":"stop"');
      response.end();
      return true;
    };
    const error = await failureOf(generate());
    expect(error).toBeInstanceOf(Unavailable);
    expect(error.message).toContain('broke off in the middle');
    expect(error.details).toMatchObject({ retry: true, reached: true });
    const result = await generate();
    expect(textOf(result)).toBe('one two three<end>');
    expect(result.logprobs).toHaveLength(result.ids.length);
  });
});

describe('stop strings', () => {
  it('end where they are complete, also where the server samples on or names none', async () => {
    const { generate, server } = await start();
    server.honoursStops = false;
    for (const change of [(reply: unknown) => reply, (reply: Reply) => ({ ...reply, finish: 'stop' })]) {
      server.change = change as never;
      const result = await generate({ stop: ['never', 'two'] });
      expect(result).toMatchObject({ finishReason: 'stop', stopString: 'two', endTokenSampled: false });
      expect(textOf(result)).toBe('one two');
      expect([result.ids.length, result.logprobs.length, result.byteEnds.length]).toEqual([7, 7, 7]);
      expect(result.weightVersions).toEqual([{ version: 'plain', start: 0, end: 7 }]);
    }
  });

  it('keep every token the server sampled when it is the one that completes them', async () => {
    const { generate } = await start();
    const result = await generate({ stop: ['two', 'e t'] });
    expect(result).toMatchObject({ stopString: 'e t', finishReason: 'stop' });
    expect(textOf(result)).toBe('one t');
  });

  it('do not look into the end-of-turn token, and take the word of a server for text it cleaned up', async () => {
    const { generate, server } = await start();
    expect(await generate({ stop: ['<end>'] })).toMatchObject({ finishReason: 'eos', stopString: null });
    server.change = (reply) => ({ ...reply, finish: 'stop', stopString: 'Two' });
    expect(await generate({ stop: ['Two'] })).toMatchObject({ finishReason: 'stop', stopString: 'Two' });
  });
});

describe('weight versions', () => {
  it('are those of the reply where it has spans, and then no label is asked for', async () => {
    const { generate, server } = await start({ weights: {} });
    server.says = 'spans';
    expect((await generate()).weightVersions).toEqual([{ version: 'v1', start: 0, end: 14 }]);
    server.asked.length = 0;
    await generate();
    expect(server.paths()).toEqual(['/generate']);
  });

  it.each(['nothing', 'label'] as const)(
    'say that they are mixed when the label moved (reply says %s)',
    async (says) => {
      const { generate, server } = await start({ weights: {} });
      server.says = says;
      server.holdAt = 7;
      const running = generate();
      await server.reached('/generate');
      server.label = 'v2';
      server.holdAt = null;
      expect((await running).weightVersions).toEqual([{ version: 'v1→v2', start: 0, end: 14 }]);
      expect((await generate()).weightVersions).toEqual([{ version: 'v2', start: 0, end: 14 }]);
    },
  );

  it('of a reply stand alone where the server has no route for them', async () => {
    const { generate, server } = await start();
    server.says = 'label';
    expect((await generate()).weightVersions).toEqual([{ version: 'v1', start: 0, end: 14 }]);
  });

  it('are never ones that were being read before they were asked for', async () => {
    const reads: ((version: string) => void)[] = [];
    const label = new WeightLabel(() => new Promise((read) => reads.push(read)));
    const [first, second, third] = [label.fresh(), label.fresh(), label.fresh()];
    expect(reads).toHaveLength(1);
    reads[0]?.('old');
    expect(await first).toBe('old');
    await Promise.resolve();
    expect(reads).toHaveLength(2);
    reads[1]?.('new');
    expect([await second, await third]).toEqual(['new', 'new']);
  });

  it('are read once for many requests', async () => {
    const { backend, server } = await start({ weights: {} });
    const one = { promptIds: Int32Array.of(BAR), options: PLAIN, affinityKey: 'k' };
    const settled = await backend.generate(Array.from({ length: 50 }, () => one));
    expect(settled.every(({ status }) => status === 'fulfilled')).toBe(true);
    expect(server.paths().filter((path) => path === '/version').length).toBeLessThan(40);
  });
});

describe('new weights', () => {
  const checkpoint = { kind: 'checkpoint' as const, path: '/new' };

  it('are brought in order and serve under their version', async () => {
    const { backend, server, generate } = await start({ weights: {} });
    await backend.updateWeights({ source: checkpoint, version: 'v2' });
    expect(server.paths()).toEqual([
      '/version',
      '/pause',
      '/load',
      '/flush',
      '/stamp',
      '/version',
      '/resume',
      '/about',
    ]);
    expect(server.asked.find(({ path }) => path === '/load')?.body).toEqual({ path: '/new', version: 'v2' });
    expect(await backend.weightVersion()).toBe('v2');
    expect((await generate()).weightVersions[0]?.version).toBe('v2');
    server.asked.length = 0;
    await backend.updateWeights({ source: { kind: 'external' }, version: 'v3' });
    expect(server.paths()).toEqual(['/version', '/pause', '/flush', '/stamp', '/version', '/resume', '/about']);
  });

  it('let generations end with the old ones when drained, and hold new ones back', async () => {
    const { backend, server, generate } = await start({ weights: {} });
    server.script = (version) => (version === 'v1' ? 'a'.repeat(20) : 'b'.repeat(20));
    server.holdAt = 7;
    const old = generate({ maxTokens: 20 });
    await server.reached('/generate');
    const update = backend.updateWeights({ source: checkpoint, version: 'v2' });
    await server.reached('/pause');
    expect(backend.trouble()).toContain('takes the weights v2');
    const fresh = generate({ maxTokens: 20 });
    server.holdAt = null;
    await update;
    expect([textOf(await old), (await old).weightVersions]).toEqual([
      'a'.repeat(20),
      [{ version: 'v1', start: 0, end: 20 }],
    ]);
    expect([textOf(await fresh), (await fresh).weightVersions]).toEqual([
      'b'.repeat(20),
      [{ version: 'v2', start: 0, end: 20 }],
    ]);
    expect(backend.trouble()).toBeNull();
  });

  it.each(['nothing', 'label', 'spans'] as const)(
    'interrupt generations, which go on with the new ones and say which made what (reply says %s)',
    async (says) => {
      const { backend, server, generate } = await start({ weights: {} });
      server.says = says;
      server.script = (version) => (version === 'v1' ? 'a'.repeat(39) : 'b'.repeat(39));
      server.holdAt = 7;
      const running = generate({ maxTokens: 30, seed: 5 });
      await server.reached('/generate');
      await backend.updateWeights({ source: checkpoint, version: 'v2', inFlight: 'interrupt' });
      const result = await running;
      const text = textOf(result);
      expect(text).toBe('a'.repeat(7) + 'b'.repeat(23));
      const seam = 7;
      expect(result).toMatchObject({ finishReason: 'length', logprobs: { length: 30 } });
      expect(result.weightVersions).toEqual([
        { version: 'v1', start: 0, end: seam },
        { version: 'v2', start: seam, end: 30 },
      ]);
      const [first, second] = server.asked.filter(({ path }) => path === '/generate').map(({ body }) => body);
      expect(second).toMatchObject({ maxTokens: 30 - seam });
      expect(second?.ids).toHaveLength(3 + seam);
      expect(second?.seed).not.toBe(first?.seed);
    },
  );

  it('find a stop string that begins before the interruption and ends after it', async () => {
    const { backend, server, generate } = await start({ weights: {} });
    server.script = () => 'abcdefghijklmnopqrstuvwxyz';
    server.holdAt = 7;
    const running = generate({ stop: ['bcdefghijklmnopqrstuvwx'] });
    await server.reached('/generate');
    await backend.updateWeights({ source: checkpoint, version: 'v2', inFlight: 'interrupt' });
    const result = await running;
    expect(server.paths().filter((path) => path === '/generate')).toHaveLength(2);
    expect(textOf(result)).toBe('abcdefghijklmnopqrstuvwx');
    expect(result).toMatchObject({ finishReason: 'stop', stopString: 'bcdefghijklmnopqrstuvwx' });
  });

  it('begin a constrained generation anew', async () => {
    const { backend, server, generate } = await start({ weights: {} });
    server.script = (version) => (version === 'v1' ? 'a'.repeat(20) : 'b'.repeat(20));
    server.holdAt = 7;
    const running = generate({ maxTokens: 20, constraint: { kind: 'regex', pattern: 'a{20}|b{20}' } });
    await server.reached('/generate');
    await backend.updateWeights({ source: checkpoint, version: 'v2', inFlight: 'interrupt' });
    expect(textOf(await running)).toBe('b'.repeat(20));
    expect((await running).weightVersions).toEqual([{ version: 'v2', start: 0, end: 20 }]);
  });

  it('that cannot be loaded leave the old ones serving, and the error says so', async () => {
    const { backend, server, generate } = await start({ weights: {} });
    const error = await failureOf(
      backend.updateWeights({ source: { kind: 'checkpoint', path: '/broken' }, version: 'v2' }),
    );
    expect(error).toBeInstanceOf(Invalid);
    expect(error.message).toContain('no weights in /broken');
    expect(error.message).toContain('The weights v1 go on serving.');
    expect(server).toMatchObject({ paused: false, label: 'v1' });
    expect((await generate()).weightVersions[0]?.version).toBe('v1');
  });

  it('stay out when the server cannot be paused', async () => {
    const { backend, server, generate } = await start({ weights: {} });
    server.instead = (path, response) => path === '/pause' && !!response.writeHead(500).end('{"error":"busy"}');
    const error = await failureOf(backend.updateWeights({ source: checkpoint, version: 'v2' }));
    expect(error.message).toContain('could not be paused');
    expect(error.message).toContain('The weights v1 go on serving.');
    expect((await generate()).weightVersions[0]?.version).toBe('v1');
  });

  it.each([
    ['/flush', 'its prefix cache could not be emptied'],
    ['/stamp', 'their version could not be stamped'],
  ])('whose %s fails leave the server paused, until it is resumed', async (failing, says) => {
    const { backend, server, generate } = await start({ weights: {} });
    server.instead = (path, response) => path === failing && !!response.writeHead(500).end('{"error":"no"}');
    const error = await failureOf(backend.updateWeights({ source: checkpoint, version: 'v2' }));
    expect(error.message).toContain(says);
    expect(error.message).toContain('stays paused');
    expect(server.paused).toBe(true);
    const waiting = generate();
    await sleep(20);
    expect(server.paths()).not.toContain('/generate');
    expect(backend.trouble()).toContain('stays paused');
    await backend.resume();
    await waiting;
    server.instead = () => false;
    await backend.updateWeights({ source: checkpoint, version: 'v3' });
    expect(await backend.weightVersion()).toBe('v3');
  });

  it('whose label does not hold are not believed', async () => {
    const { backend, server } = await start({ weights: {} });
    server.instead = (path, response) => path === '/stamp' && !!response.end('{}');
    const error = await failureOf(backend.updateWeights({ source: checkpoint, version: 'v2' }));
    expect(error.message).toContain('says that its weights are v1 after they were stamped v2');
  });

  it('whose loading had no answer leave the server paused: nobody can say which serve', async () => {
    const { backend, server } = await start({ weights: {} });
    server.instead = (path, response) => path === '/load' && !!response.destroy();
    const error = await failureOf(backend.updateWeights({ source: checkpoint, version: 'v2' }));
    expect(error.message).toContain('stays paused');
    expect(server.paused).toBe(true);
  });

  it('are refused where the server takes none, or not so, and one at a time', async () => {
    const { backend } = await start();
    expect((await failureOf(backend.updateWeights({ source: checkpoint, version: 'v2' }))).message).toContain(
      'takes no new weights at all',
    );
    const other = await start({ weights: { canPause: false } });
    const update = { source: checkpoint, version: 'v2', inFlight: 'interrupt' as const };
    expect(await failureOf(other.backend.updateWeights(update))).toBeInstanceOf(Invalid);
    const lora = { kind: 'lora' as const, path: '/a' };
    expect((await failureOf(other.backend.updateWeights({ source: lora, version: 'v2' }))).message).toContain(
      'it takes a checkpoint folder and weights that a trainer moves',
    );
    const first = other.backend.updateWeights({ source: checkpoint, version: 'v2' });
    expect(await failureOf(other.backend.updateWeights({ source: checkpoint, version: 'v3' }))).toBeInstanceOf(
      Conflict,
    );
    await first;
  });

  it('are remembered here for a server that keeps no label, drained here where it cannot pause', async () => {
    const { backend, server, generate } = await start({ weights: { keepsLabel: false, canPause: false } });
    server.script = (version) => (version === 'v1' ? 'a'.repeat(20) : 'b'.repeat(20));
    server.holdAt = 7;
    const old = generate({ maxTokens: 20 });
    await server.reached('/generate');
    const update = backend.updateWeights({ source: checkpoint, version: 'v2' });
    await sleep(20);
    expect(server.paths()).not.toContain('/load');
    server.holdAt = null;
    await update;
    expect(textOf(await old)).toBe('a'.repeat(20));
    expect((await old).weightVersions[0]?.version).toBe('plain');
    expect((await generate()).weightVersions[0]?.version).toBe('v2');
    expect(server.paths()).not.toContain('/version');
  });
});

describe('an interruption from elsewhere', () => {
  const ids = (text: string) => Int32Array.from(new TextEncoder().encode(text));
  const piece = (text: string, finish: GenerationPiece['finish']): GenerationPiece => ({
    ids: ids(text),
    logprobs: new Float32Array(text.length),
    logprobKind: 'raw',
    finish,
    endTokenSampled: false,
    stopString: null,
    tokenBytes: null,
    weightVersions: text ? [{ version: 'v', start: 0, end: text.length }] : [],
  });
  const through = (pieces: GenerationPiece[], more: Partial<Parameters<typeof generateThrough>[1]> = {}) => {
    const waits: number[] = [];
    const asked: number[] = [];
    const done = generateThrough(
      { promptIds: ids('ab|'), options: { ...PLAIN, maxTokens: 10 }, signal: undefined },
      {
        ask: async (prompt, { maxTokens }) => {
          asked.push(prompt.length, maxTokens);
          return pieces.shift() ?? piece('', 'aborted');
        },
        serves: async () => true,
        wait: async (ms) => waits.push(ms),
        server: 'The server',
        ...more,
      },
    );
    return { done, waits, asked };
  };

  it('is gone on from when the server serves again, with what is left', async () => {
    const answers = [false, false, true];
    const { done, waits, asked } = through([piece('one', 'aborted'), piece(' two', 'eos')], {
      serves: async () => answers.shift() ?? true,
    });
    expect(await done).toMatchObject({ finish: 'eos', ids: { length: 7 }, weightVersions: [{ start: 0, end: 7 }] });
    expect(asked).toEqual([3, 10, 6, 7]);
    expect(waits).toEqual([50, 100]);
  });

  it('again and again has a seed of its own each time, which every server takes, and columns of one length', async () => {
    for (const seed of [0, 7, 2 ** 31 - 1, 2 ** 53 - 1]) {
      const pieces = ['one', '', 'two', 'x'].map((text, k) => piece(text, k < 3 ? 'aborted' : 'eos'));
      const seeds: number[] = [];
      const result = await generateThrough(
        { promptIds: ids('ab|'), options: { ...PLAIN, maxTokens: 10, seed }, signal: undefined },
        {
          ask: async (_, options) => {
            seeds.push(options.seed);
            return pieces.shift() ?? expect.fail('It was asked too often.');
          },
          serves: async () => true,
          wait: async () => undefined,
          server: 'The server',
        },
      );
      expect(seeds[0]).toBe(seed);
      // Beyond 2^31 a server may read the first one as another.
      expect(new Set([seed % 2 ** 31, ...seeds.slice(1)]).size).toBe(4);
      for (const later of seeds.slice(1)) expect(later >= 0 && later < 2 ** 31 && Number.isInteger(later)).toBe(true);
      expect([result.ids.length, result.logprobs.length, result.weightVersions.at(-1)?.end]).toEqual([7, 7, 7]);
    }
  });

  it('leaves numbers of the kind that all of them are, else of one that nobody may count on', async () => {
    const kindOf = async (first: GenerationPiece, second: GenerationPiece) => {
      const { logprobKind, logprobs } = await through([
        { ...first, logprobs: new Float32Array(first.ids.length).fill(-1) },
        { ...second, logprobs: new Float32Array(second.ids.length).fill(-2) },
      ]).done;
      expect([...logprobs]).toEqual([...Array(first.ids.length).fill(-1), ...Array(second.ids.length).fill(-2)]);
      return logprobKind;
    };
    const sampled = { ...piece('one', 'aborted'), logprobKind: 'sampled' as const };
    expect(await kindOf(sampled, { ...piece('two', 'eos'), logprobKind: 'sampled' })).toBe('sampled');
    expect(await kindOf(sampled, piece('two', 'eos'))).toBe('unknown');
    expect(await kindOf(piece('one', 'aborted'), { ...piece('two', 'eos'), logprobKind: 'constrained' })).toBe(
      'unknown',
    );
    expect(await kindOf(sampled, piece('', 'eos'))).toBe('sampled');
    expect(await kindOf(piece('', 'aborted'), { ...piece('two', 'eos'), logprobKind: 'sampled' })).toBe('sampled');
  });

  it('after the last token is the end', async () => {
    const { done, asked } = through([piece('0123456789', 'aborted')]);
    expect(await done).toMatchObject({ finish: 'length', ids: { length: 10 } });
    expect(asked).toHaveLength(2);
  });

  it('that never ends is given up, and may be sent elsewhere', async () => {
    const { done, waits } = through([piece('one', 'aborted')]);
    const error = await failureOf(done);
    expect(error).toBeInstanceOf(Unavailable);
    expect(error.message).toContain('stopped a generation 41 times in a row without a token of it');
    expect(error.details).toMatchObject({ retry: true });
    expect(Math.max(...waits)).toBe(2_000);
  });
});

describe('a pause', () => {
  it('lets generations end, holds new ones back, and outlives an update', async () => {
    const { backend, server, generate } = await start({ weights: {} });
    server.holdAt = 7;
    const running = generate();
    await server.reached('/generate');
    const paused = backend.pause();
    await server.reached('/pause');
    server.holdAt = null;
    await paused;
    expect(textOf(await running)).toBe('one two three<end>');
    expect(backend.trouble()).toContain('paused by a person');
    const stop = new AbortController();
    const stopped = failureOf(generate({}, 'ab|', stop.signal));
    const waiting = generate();
    await backend.updateWeights({ source: { kind: 'checkpoint', path: '/new' }, version: 'v2' });
    expect(server.paused).toBe(true);
    expect(backend.trouble()).toContain('paused by a person');
    stop.abort();
    expect(await stopped).toBeInstanceOf(Cancelled);
    expect(server.paths().filter((path) => path === '/generate')).toHaveLength(1);
    await backend.resume();
    expect((await waiting).weightVersions[0]?.version).toBe('v2');
  });

  it('is told to a server that was started again, and ended at one that knows of none', async () => {
    const { backend, server } = await start({ weights: {} });
    await backend.pause();
    server.paused = false;
    await backend.pause();
    expect(server.paused).toBe(true);
    await backend.resume();
    server.paused = true;
    await backend.resume();
    expect(server.paused).toBe(false);
  });

  it('is given up when its signal says so, and the server goes on', async () => {
    for (const canPause of [true, false]) {
      const { backend, server, generate } = await start({ weights: { canPause } });
      server.holdAt = 7;
      const running = generate();
      await server.reached('/generate');
      const stop = new AbortController();
      const paused = failureOf(backend.pause(stop.signal));
      if (canPause) await server.reached('/pause');
      stop.abort(new Cancelled('Enough.'));
      expect((await paused).message).toBe('Enough.');
      expect(backend.trouble()).toBeNull();
      server.holdAt = null;
      expect(textOf(await running)).toBe('one two three<end>');
      if (canPause) await server.reached('/resume');
    }
  });

  it('is no failure of a server that is away: it may be asked again', async () => {
    const { backend, server } = await start({ weights: {} });
    await server.close();
    expect((await failureOf(backend.pause())).details).toMatchObject({ retry: true });
    expect(backend.trouble()).toBeNull();
  });

  it('by somebody else is told where the server says so, and nothing of one from here', async () => {
    const { backend, server } = await start({ weights: {}, saysPaused: true });
    expect(await backend.pausedElsewhere()).toBeNull();
    server.paused = true;
    expect(await backend.pausedElsewhere()).toMatch(/^The backend plain .* stands paused, and not by this studio/);
    await backend.pause();
    expect(await backend.pausedElsewhere()).toBeNull();
    await backend.resume();
    expect(await backend.pausedElsewhere()).toBeNull();
    const { backend: silent, server: other } = await start({ weights: {} });
    other.paused = true;
    expect(await silent.pausedElsewhere()).toBeNull();
  });
});

describe('after an update that was cut off', () => {
  const cut = (kind: 'checkpoint' | 'external', version = 'v2'): UnfinishedUpdate => ({
    update: { source: kind === 'external' ? { kind } : { kind, path: '/new' }, version },
    before: [],
  });

  it('a server is paused, emptied and let go', async () => {
    const { backend, server, generate } = await start({ weights: {} });
    server.paused = true;
    await backend.settle(cut('checkpoint'));
    expect(server.paths()).toEqual(['/pause', '/version', '/flush', '/resume', '/about']);
    expect(server.paused).toBe(false);
    expect((await generate()).weightVersions[0]?.version).toBe('v1');
  });

  it('one that is paused from here stays so', async () => {
    const { backend, server } = await start({ weights: {} });
    await backend.pause();
    server.asked.length = 0;
    await backend.settle(cut('checkpoint'));
    expect(server.paths()).toEqual(['/version', '/flush', '/about']);
    expect(backend.trouble()).toContain('paused by a person');
    expect(server.paused).toBe(true);
  });

  it('one whose weights or cache nobody can be sure of is held back until a person decides', async () => {
    const { backend, server, generate } = await start({ weights: {} });
    const error = await failureOf(backend.settle(cut('external')));
    expect(error).toBeInstanceOf(Unavailable);
    expect(error.details).toMatchObject({ retry: false });
    expect(error.message).toMatch(/^The backend plain .* cannot be used after an update to v2 .*: nobody can say/);
    expect(server.paused).toBe(true);
    const waiting = generate();
    expect(backend.trouble()).toBe(error.message);
    await backend.resume();
    expect(textOf(await waiting)).toBe('one two three<end>');
    server.instead = (path, response) => path === '/flush' && !!response.writeHead(500).end();
    await failureOf(backend.settle(cut('checkpoint')));
    expect(backend.trouble()).toContain('stays paused');
    server.instead = () => false;
    await backend.updateWeights({ source: { kind: 'external' }, version: 'v3' });
    expect(backend.trouble()).toBeNull();
  });

  it('tensors that a trainer moved count as in when their label is there, or none is kept', async () => {
    const { backend, server } = await start({ weights: {} });
    await backend.settle(cut('external', server.label));
    expect(backend.trouble()).toBeNull();
    const { backend: unlabelled } = await start({ weights: { keepsLabel: false } });
    await unlabelled.settle(cut('external'));
    expect(unlabelled.trouble()).toBeNull();
  });

  it('one that went away meanwhile is asked again later', async () => {
    const { backend, server } = await start({ weights: {} });
    server.instead = (path, response) => path === '/flush' && !!response.destroy();
    expect((await failureOf(backend.settle(cut('checkpoint')))).details).toMatchObject({ retry: true });
    expect(backend.trouble()).toBeNull();
    server.instead = () => false;
    await backend.settle(cut('checkpoint'));
    expect(server.paused).toBe(false);
  });

  it('there is nothing to do at one that takes no weights', async () => {
    const { backend, server } = await start();
    await backend.settle(cut('checkpoint'));
    expect(server.paths()).toEqual(['/about']);
  });
});

describe('constraints', () => {
  const choice = { kind: 'choice' as const, choices: ['one two three', 'four'] };

  it('are held against the first answers of each kind: one that fits by chance proves nothing', async () => {
    const { generate, server } = await start();
    const fitting = server.script;
    const chatting = () => 'Sure! Here is';
    for (let answers = 0; answers < 7; answers++) await generate({ constraint: choice });
    server.script = chatting;
    await expect(generate({ constraint: choice })).rejects.toThrow('ignores constraints of the kind choice');
    server.script = fitting;
    for (let answers = 0; answers < 7; answers++) await generate({ constraint: choice });
    server.script = chatting;
    await expect(generate({ constraint: choice })).rejects.toThrow('ignores constraints of the kind choice');
    server.script = fitting;
    for (let answers = 0; answers < 8; answers++) await generate({ constraint: choice });
    server.script = chatting;
    // By now this kind was seen to fit again and again.
    await generate({ constraint: choice });
    const error = await failureOf(generate({ constraint: { kind: 'json_schema', schema: { type: 'object' } } }));
    expect(error).toBeInstanceOf(Unavailable);
    expect(error.message).toContain('ignores constraints of the kind json_schema');
    expect(error.message).toContain('Sure! Here is');
    expect(error.message).not.toContain('<end>');
  });

  it('may be cut by the limit or a stop string', async () => {
    for (const changes of [{ maxTokens: 5 }, { stop: ['two'] }]) {
      const { generate } = await start();
      await generate({ constraint: choice, ...changes });
    }
    const { generate } = await start();
    await expect(generate({ constraint: { kind: 'choice', choices: ['one two three four'] } })).rejects.toThrow(
      /ignores/,
    );
  });
});

describe('scores', () => {
  it('come in the order of the pairs, at most 16 are asked for at once', async () => {
    const { backend, server } = await start();
    let running = 0;
    let most = 0;
    server.instead = (path, response) => {
      if (path !== '/score') return false;
      most = Math.max(most, ++running);
      const ids = server.asked.at(-1)?.body.completion as number[];
      setTimeout(() => {
        running--;
        response.end(JSON.stringify({ logprobs: ids.map((id) => -id / 1000) }));
      }, 5);
      return true;
    };
    const pairs = Array.from({ length: 60 }, (_, k) => ({
      promptIds: Int32Array.of(1),
      completionIds: Int32Array.from({ length: k % 4 }, (_, i) => k + i),
    }));
    const scores = await backend.getLogprobs(pairs);
    for (const [k, { logprobs }] of scores.entries())
      expect(Array.from(logprobs)).toEqual(Array.from(pairs[k]?.completionIds ?? [], (id) => Math.fround(-id / 1000)));
    expect(most).toBeGreaterThan(1);
    expect(most).toBeLessThanOrEqual(16);
  });

  it('are refused where the server has none, sends too few, or an id is in no vocabulary', async () => {
    const pair = { promptIds: Int32Array.of(1), completionIds: Int32Array.of(2, 3) };
    const { backend } = await start({ scores: false });
    expect((await failureOf(backend.getLogprobs([pair]))).message).toContain('cannot score given tokens');
    const other = await start();
    await expect(other.backend.getLogprobs([{ ...pair, completionIds: Int32Array.of(-4) }])).rejects.toBeInstanceOf(
      Invalid,
    );
    other.server.instead = (path, response) => path === '/score' && !!response.end('{"logprobs":[-1]}');
    expect((await failureOf(other.backend.getLogprobs([pair, pair]))).message).toContain(
      '1 log-probabilities for 2 tokens',
    );
    await expect(other.backend.getLogprobs([pair], { signal: AbortSignal.abort() })).rejects.toBeInstanceOf(Cancelled);
  });
});

describe('a server that was started again', () => {
  it('is asked anew what it is: other context, constraints unproven, a failed update forgotten', async () => {
    const seen: string[] = [];
    const { backend, server, generate } = await start(
      { weights: { keepsLabel: false } },
      { onRestart: (facts) => seen.push(facts.fingerprint) },
    );
    for (let answers = 0; answers < 8; answers++)
      await generate({ constraint: { kind: 'choice', choices: ['one two three'] } });
    const source = { kind: 'checkpoint' as const, path: '/new' };
    await backend.updateWeights({ source, version: 'v2' });
    expect(await backend.weightVersion()).toBe('v2');
    server.instead = (path, response) => path === '/flush' && !!response.writeHead(500).end();
    await failureOf(backend.updateWeights({ source, version: 'v3' }));
    await server.close();
    expect((await backend.health()).ok).toBe(false);
    server.instead = () => false;
    Object.assign(server, { startedAs: 'second start', contextLength: 32, paused: false });
    server.script = () => 'x';
    await server.listen();
    expect(await backend.health()).toMatchObject({ ok: true });
    expect(backend.trouble()).toBeNull();
    expect(seen).toEqual(['second start']);
    expect((await backend.capabilities()).contextLength).toBe(32);
    expect(await backend.weightVersion()).toBe('plain');
    await expect(generate({ constraint: { kind: 'choice', choices: ['one'] } })).rejects.toThrow(/ignores/);
  });

  it('is noticed by the next request after a broken connection, and by health now and then without one', async () => {
    const { backend, server, generate, ambient } = await start();
    await server.close();
    const error = await failureOf(generate());
    expect(error.details).toMatchObject({ retry: true, reached: false });
    Object.assign(server, { startedAs: 'second start', contextLength: 20 });
    await server.listen();
    expect((await generate()).ids.length).toBeGreaterThan(0);
    expect((await backend.capabilities()).contextLength).toBe(20);
    Object.assign(server, { startedAs: 'third start', contextLength: 10 });
    await backend.health();
    expect((await backend.capabilities()).contextLength).toBe(20);
    ambient.advance(20_000);
    await backend.health();
    expect((await backend.capabilities()).contextLength).toBe(10);
  });
});

describe('opening', () => {
  const lengthless: ServerProtocol['describe'] = async (http, wanted) => ({
    ...(await plainProtocol().describe(http, wanted)),
    contextLength: 0,
  });

  it('fails in a sentence for a server of another kind and for one that is not there', async () => {
    const { server } = await start();
    const open = (more: Partial<RemoteOptions>) =>
      RemoteBackend.open({
        name: 'other',
        url: server.url,
        protocol: plainProtocol(),
        model: null,
        tokenizerFolder: null,
        maxInFlight: 8,
        logger: silentLogger,
        ambient: fixedAmbient(),
        ...more,
      });
    expect((await failureOf(open({ protocol: { ...plainProtocol(), describe: lengthless } }))).message).toContain(
      'does not tell how many tokens its context holds',
    );
    server.contextLength = 0;
    expect((await failureOf(open({}))).message).toContain('is no plain server');
    expect(await failureOf(open({ url: 'http://127.0.0.1:1' }))).toBeInstanceOf(Unavailable);
  });

  it('tokenises, renders and says what it can do, and nothing any more when closed', async () => {
    const { backend } = await start({ weights: {} }, { capabilities: { seeded: true, constraints: ['choice'] } });
    const encoded = await backend.tokenize('né', { special: false });
    expect([Array.from(encoded.ids), Array.from(encoded.byteEnds)]).toEqual([
      [110, 195, 169],
      [1, 2, 3],
    ]);
    expect(await backend.decode(encoded.ids)).toEqual(encoded);
    expect(await backend.applyTemplate([{ role: 'user', content: 'x' }], { addGenerationPrompt: true })).toBe('x|');
    expect(await backend.capabilities()).toMatchObject({
      tokenIds: true,
      constraints: ['choice'],
      weightSources: ['checkpoint', 'external'],
      canPause: true,
      seeded: true,
      contextLength: 64,
      maxInFlight: 8,
    });
    await expect(backend.embed(['x'])).rejects.toBeInstanceOf(Unavailable);
    await backend.close();
    await expect(backend.weightVersion()).rejects.toBeInstanceOf(Unavailable);
    expect((await backend.health()).ok).toBe(false);
  });
});
