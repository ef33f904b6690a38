/** A real vLLM on the processor, serving the tiny model whose log-probabilities llama.cpp computes as well. */
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { systemAmbient } from '../../core/ambient';
import { Cancelled, Invalid, NotFound } from '../../core/errors';
import type { BackendCheck } from '../../core/inference';
import { silentLogger } from '../../observability/logger';
import type {
  CompletionScores,
  GenerationRequest,
  GenerationResult,
  InferenceBackend,
  SamplingOptions,
} from '../backend';
import { EmbeddedBackend } from '../embedded/embedded-backend';
import { writeTinyCheckpoint, writeTinyLora } from '../testing/checkpoint';
import { describeBackend, PLAIN } from '../testing/conformance';
import { type RealServer, startVllm } from '../testing/real-servers';
import { writeTinyModel } from '../testing/tiny-model';
import { checkServer } from './check';
import { createHttpClient } from './http-client';
import { PROTOCOLS } from './protocols';
import { RemoteBackend } from './remote-backend';
import { vllm } from './vllm';

const program = process.env.STUDIO_TEST_VLLM ?? '';
const CONTEXT = 4096;
const SHAPE = { context: CONTEXT, heads: 2, ownOutput: true };
/** Two engines, both with 32-bit weights, keys and values. Other weights differ by one and more. */
const TOLERANCE = 1e-3;
/** Limit against hanging: two cores may be busy with something else. */
const HANG_MS = 600_000;

if (program === '') console.log('No vLLM is here (STUDIO_TEST_VLLM): npm run test:servers vllm brings and tests one.');

describe.skipIf(program === '')('a real vLLM', { timeout: HANG_MS }, () => {
  // Named before anything runs: the suite is told its paths.
  const folder = join(tmpdir(), `real-vllm-${process.pid}`);
  let server: RealServer;
  const path = (name: string) => join(folder, name);
  const teachers = new Map<number, Promise<EmbeddedBackend>>();

  /** The model of a checkpoint in llama.cpp. */
  const teacher = (seed: number): Promise<EmbeddedBackend> => {
    const opened = teachers.get(seed) ?? openTeacher(seed);
    teachers.set(seed, opened);
    return opened;
  };
  const openTeacher = async (seed: number): Promise<EmbeddedBackend> => {
    const modelPath = path(`seed-${seed}.gguf`);
    await writeTinyModel(modelPath, { ...SHAPE, seed });
    const options = { name: 'teacher', threads: 1, logger: silentLogger, maxSequences: 2, contextLength: CONTEXT };
    return EmbeddedBackend.open({ ...options, modelPath });
  };
  let check: BackendCheck;
  const shared = { key: null, model: null, tokenizerFolder: null, logger: silentLogger, ambient: systemAmbient() };
  const checkAt = (url: string) =>
    checkServer({ ...shared, url, kind: null, contextLength: null, backendName: 'vllm', protocols: PROTOCOLS });
  const openAt = (url: string, { capabilities }: BackendCheck): Promise<RemoteBackend> =>
    RemoteBackend.open({ ...shared, name: 'vllm', url, protocol: vllm, maxInFlight: 32, capabilities });
  const open = () => openAt(server.url, check);

  beforeAll(async () => {
    await mkdir(folder);
    await writeTinyCheckpoint(path('seed-1'), { ...SHAPE, seed: 1 });
    await writeTinyCheckpoint(path('seed-2'), { ...SHAPE, seed: 2 });
    await writeTinyCheckpoint(path('other-vocabulary'), { ...SHAPE, seed: 3, extraTokens: 4 });
    await writeTinyCheckpoint(path('tied'), { ...SHAPE, seed: 3, ownOutput: false });
    await writeTinyLora(path('lora-1'), { seed: 1 });
    await writeTinyLora(path('lora-2'), { seed: 2 });
    await writeTinyLora(path('lora-cut'), { seed: 3 });
    await writeFile(join(path('lora-cut'), 'adapter_model.safetensors'), 'cut');
    server = await startVllm(program, path('seed-1'), { contextLength: CONTEXT });
    check = await checkAt(server.url);
  }, HANG_MS);
  afterAll(async () => {
    for (const one of teachers.values()) await (await one).close();
    await server?.stop();
    await rm(folder, { recursive: true, force: true });
  }, HANG_MS);

  it('passes the check, which finds out what it can do', () => {
    expect(check.items.filter(({ status }) => status !== 'pass').map(({ id, says }) => `${id}: ${says}`)).toEqual([
      expect.stringContaining('embeddings'),
    ]);
    expect(check).toMatchObject({ ok: true, kind: 'vllm', serverVersion: expect.stringMatching(/^\d+\.\d+/) });
    expect(check.capabilities).toMatchObject({
      tokenIds: true,
      logprobs: 'raw',
      canScore: true,
      entropy: false,
      constraints: ['json_schema', 'regex', 'grammar', 'choice'],
      weightSources: ['checkpoint', 'external'],
      canPause: true,
      seeded: true,
      embeddings: false,
      contextLength: CONTEXT,
    });
  });

  describeBackend('conformance', open, {
    logprobTolerance: TOLERANCE,
    timeoutMs: HANG_MS,
    teacher: () => teacher(1),
    weights: {
      next: { kind: 'checkpoint', path: path('seed-2') },
      broken: { kind: 'checkpoint', path: path('nowhere') },
    },
  });

  describe('weights and load', () => {
    let backend: RemoteBackend;
    let prompt: Int32Array;
    const request = (changes: Partial<SamplingOptions> = {}, signal?: AbortSignal): GenerationRequest => ({
      promptIds: prompt,
      options: { ...PLAIN, ...changes },
      affinityKey: String(changes.seed ?? 1),
      ...(signal && { signal }),
    });
    const generate = async (...requests: GenerationRequest[]): Promise<GenerationResult[]> =>
      (await backend.generate(requests)).map((settled) => {
        if (settled.status === 'rejected') throw settled.reason;
        return settled.value;
      });
    const one = async (wanted: GenerationRequest): Promise<GenerationResult> =>
      (await generate(wanted))[0] as GenerationResult;
    const running = async (): Promise<number> => {
      const text = await (await fetch(`${server.url}/metrics`)).text();
      return Number(/^vllm:num_requests_running\{[^}]*\} (\S+)/m.exec(text)?.[1]);
    };
    /** Far from the end token: sixteen of these keep the engine busy for seconds. */
    const LONG = { temperature: 0.2, maxTokens: 2000 };
    const underWay = () => generate(...Array.from({ length: 16 }, (_, seed) => request({ ...LONG, seed })));
    const untilRunning = () => expect.poll(running, { timeout: 60_000, interval: 20 }).toBeGreaterThan(0);
    const sampled = async (): Promise<number> => {
      const text = await (await fetch(`${server.url}/metrics`)).text();
      return Number(/^vllm:generation_tokens_total\{[^}]*\} (\S+)/m.exec(text)?.[1]);
    };
    /** Positions [start, end) have the numbers that the model gives them. */
    const expectNumbersOf = async (
      model: Pick<InferenceBackend, 'getLogprobs'>,
      { ids, logprobs }: GenerationResult,
      start = 0,
      end = ids.length,
      before = prompt,
    ) => {
      const promptIds = Int32Array.of(...before, ...ids.subarray(0, start));
      const [scores] = await model.getLogprobs([{ promptIds, completionIds: ids.slice(start, end) }]);
      const differences = Array.from(scores?.logprobs ?? [], (value, k) =>
        Math.abs(value - (logprobs[start + k] ?? 0)),
      );
      expect(differences).toHaveLength(end - start);
      expect(Math.max(...differences)).toBeLessThan(TOLERANCE);
    };
    const loadSeed = (seed: number, version: string, inFlight?: 'drain' | 'interrupt') =>
      backend.updateWeights({ source: { kind: 'checkpoint', path: path(`seed-${seed}`) }, version, inFlight });

    beforeAll(async () => {
      backend = await open();
      const text = await backend.applyTemplate([{ role: 'user', content: 'Go on.' }], { addGenerationPrompt: true });
      prompt = (await backend.tokenize(text, { special: true })).ids;
    }, HANG_MS);
    afterAll(() => backend?.close());

    it('serves a new checkpoint with its version and its numbers, from an empty prefix cache', async () => {
      const [first, second] = [await teacher(1), await teacher(2)];
      await loadSeed(1, 'one');
      const long = { ...request({ temperature: 0 }), promptIds: new Int32Array(600).map((_, k) => 5 + (k % 200)) };
      const before = await one(long);
      expect(before.weightVersions).toEqual([{ version: 'one', start: 0, end: before.ids.length }]);
      await expectNumbersOf(first, await one(request()));
      await loadSeed(2, 'two');
      expect(await backend.weightVersion()).toBe('two');
      await expectNumbersOf(second, await one(request()));
      const after = await one(long);
      expect(after.weightVersions).toEqual([{ version: 'two', start: 0, end: after.ids.length }]);
      await expectNumbersOf(second, after, 0, after.ids.length, long.promptIds);
    });

    it('keeps the old weights when new ones cannot be loaded', async () => {
      const second = await teacher(2);
      await loadSeed(2, 'kept');
      for (const name of ['nowhere', 'other-vocabulary', 'tied'])
        await expect(
          backend.updateWeights({ source: { kind: 'checkpoint', path: path(name) }, version: 'lost' }),
        ).rejects.toThrow(/kept go on serving/);
      expect(await backend.weightVersion()).toBe('kept');
      await expectNumbersOf(second, await one(request()));
      expect(backend.trouble()).toBeNull();
      await loadSeed(1, 'and on');
      expect((await one(request())).weightVersions[0]?.version).toBe('and on');
    });

    it('lets requests under way end with the old weights, and those that come after have the new ones', async () => {
      const [first, second] = [await teacher(1), await teacher(2)];
      await loadSeed(1, 'drained');
      const under = underWay();
      await untilRunning();
      const update = loadSeed(2, 'fresh');
      await expect.poll(() => backend.trouble(), { interval: 5 }).toContain('takes the weights fresh');
      const late = one(request({ seed: 99 }));
      const results = await under;
      await update;
      for (const result of results)
        expect(result.weightVersions).toEqual([{ version: 'drained', start: 0, end: result.ids.length }]);
      await expectNumbersOf(first, results[3] as GenerationResult);
      expect((await late).weightVersions).toEqual([{ version: 'fresh', start: 0, end: (await late).ids.length }]);
      await expectNumbersOf(second, await late);
    });

    it('interrupts requests under way and goes on with the new weights: spans and numbers fit each token', async () => {
      const [first, second] = [await teacher(1), await teacher(2)];
      await loadSeed(1, 'early');
      const before = await sampled();
      const under = underWay();
      // Stopped before its first token, a generation would have nothing of the old weights.
      await expect.poll(sampled, { timeout: 60_000, interval: 20 }).toBeGreaterThan(before + 100);
      await loadSeed(2, 'late', 'interrupt');
      const results = await under;
      const mixed = results.filter(({ weightVersions }) => weightVersions.length > 1);
      expect(mixed.length).toBeGreaterThan(0);
      for (const { ids, weightVersions } of mixed) {
        expect(weightVersions.map(({ version }) => version)).toEqual(['early', 'late']);
        expect(weightVersions[0]).toMatchObject({ start: 0 });
        expect(weightVersions[1]).toMatchObject({ start: weightVersions[0]?.end, end: ids.length });
      }
      const result = mixed[0] as GenerationResult;
      const seam = result.weightVersions[0]?.end ?? 0;
      await expectNumbersOf(first, result, 0, seam);
      await expectNumbersOf(second, result, seam);
    });

    it.each(['drain', 'interrupt'] as const)(
      'scores what a constraint shaped by the weights that sampled it, whatever comes after (%s)',
      async (how) => {
        const both = { before: await teacher(1), after: await teacher(2) };
        const constraint = { kind: 'grammar' as const, grammar: 'root ::= [a-z]{300} "."' };
        const shaped = (seed: number) => ({ ...request({ constraint, maxTokens: 400, seed }), rawLogprobs: true });
        await loadSeed(1, 'before');
        const under = generate(...Array.from({ length: 8 }, (_, seed) => shaped(seed)));
        await untilRunning();
        await loadSeed(2, 'after', how);
        for (const result of await under) {
          expect(result.logprobKind).toBe('raw');
          const version = how === 'drain' ? 'before' : 'after';
          expect(result.weightVersions).toEqual([{ version, start: 0, end: result.ids.length }]);
          await expectNumbersOf(both[version], result);
        }
      },
    );

    it('scores again what an update stopped', async () => {
      const [first, second] = [await teacher(1), await teacher(2)];
      await loadSeed(1, 'stopped');
      const { ids } = await one(request({ ...LONG, maxTokens: 1000 }));
      const pair = { promptIds: prompt, completionIds: ids };
      const [[byFirst], [bySecond]] = [await first.getLogprobs([pair]), await second.getLogprobs([pair])];
      const under = backend.getLogprobs(Array.from({ length: 160 }, () => pair));
      await sleep(200);
      await loadSeed(2, 'went on', 'interrupt');
      const scored = await under;
      const fits = (by: CompletionScores | undefined) =>
        scored.filter(({ logprobs }) =>
          logprobs.every((value, k) => Math.abs(value - (by?.logprobs[k] ?? Number.NaN)) < TOLERANCE),
        ).length;
      expect(fits(byFirst)).toBeGreaterThan(0);
      expect(fits(bySecond)).toBeGreaterThan(0);
      expect(fits(byFirst) + fits(bySecond)).toBe(scored.length);
    });

    it('takes what a trainer moved by itself: a stamp and an empty cache, nothing loaded', async () => {
      const first = await teacher(1);
      await loadSeed(1, 'before the trainer');
      await backend.updateWeights({ source: { kind: 'external' }, version: 'trainer-7' });
      expect((await one(request())).weightVersions[0]?.version).toBe('trainer-7');
      await expectNumbersOf(first, await one(request()));
    });

    it('holds requests while it is paused', async () => {
      await backend.pause();
      let done = false;
      const waiting = one(request()).finally(() => {
        done = true;
      });
      await sleep(300);
      expect(done).toBe(false);
      expect(backend.trouble()).toContain('paused');
      await backend.resume();
      expect((await waiting).ids.length).toBeGreaterThan(0);
    });

    it('stops a request in the engine when it is cancelled', async () => {
      const stop = new AbortController();
      const requests = Array.from({ length: 8 }, (_, seed) => request({ ...LONG, seed, maxTokens: 4000 }, stop.signal));
      const settled = backend.generate(requests);
      await untilRunning();
      stop.abort();
      for (const result of await settled)
        expect(result.status === 'rejected' ? result.reason : null).toBeInstanceOf(Cancelled);
      await expect.poll(running, { timeout: 10_000, interval: 50 }).toBe(0);
    });

    it('serves a hundred requests at once, of which a third fit into the engine', async () => {
      const results = await generate(...Array.from({ length: 100 }, (_, seed) => request({ seed, maxTokens: 40 })));
      expect(results).toHaveLength(100);
      for (const result of results) expect(result.ids.length).toBeGreaterThan(0);
    });

    it('keeps the whole token in whose middle a stop string ends', async () => {
      // No text encodes to it, but it is sampled like any other.
      const tokenizer = JSON.parse(await readFile(join(path('seed-1'), 'tokenizer.json'), 'utf8'));
      const token: number = tokenizer.model.vocab['n:Ġ'];
      expect(token).toBeGreaterThan(256);
      const free = await generate(...Array.from({ length: 32 }, (_, seed) => request({ seed, maxTokens: 200 })));
      const seed = free.findIndex(({ ids }) => ids.includes(token));
      expect(seed).toBeGreaterThanOrEqual(0);
      const stopped = await one(request({ seed, maxTokens: 200, stop: ['n:'] }));
      expect(stopped).toMatchObject({ finishReason: 'stop', stopString: 'n:', endTokenSampled: false });
      expect(stopped.ids.at(-1)).toBe(token);
      expect(new TextDecoder().decode(stopped.bytes)).toMatch(/n: $/);
      expect(stopped.ids.join()).toBe(free[seed]?.ids.slice(0, stopped.ids.length).join());
    });

    it('says in the words of the server what does not fit', async () => {
      const http = createHttpClient({ backend: 'vllm', url: server.url });
      try {
        const facts = await vllm.describe(http, { model: null });
        const call = (promptIds: Int32Array) =>
          vllm.generate(http, facts, { promptIds, options: PLAIN, requestId: `r${promptIds.length}`, affinityKey: '' });
        const tooLong = await call(new Int32Array(CONTEXT).fill(40)).catch((error) => error);
        expect(tooLong).toBeInstanceOf(Invalid);
        expect(tooLong.message).toContain(`context of ${CONTEXT} tokens`);
        const outside = await call(Int32Array.of(5, 99_999)).catch((error) => error);
        expect(outside).toBeInstanceOf(Invalid);
        expect(outside.message).toContain('99999');
        await expect(vllm.describe(http, { model: 'another' })).rejects.toBeInstanceOf(NotFound);
        // Without the route that knows spans the tokens and numbers are the same.
        const plain = {
          ...facts,
          routes: new Set([...facts.routes].filter((route) => route !== 'tokens-in-tokens-out')),
        };
        const options = { ...PLAIN, temperature: 0 };
        const wanted = { promptIds: prompt, options, affinityKey: '' };
        const exact = await vllm.generate(http, facts, { ...wanted, requestId: 'exact' });
        const other = await vllm.generate(http, plain, { ...wanted, requestId: 'other' });
        expect(other.ids.join()).toBe(exact.ids.join());
        expect(other.weightVersions).toBeNull();
        other.logprobs.forEach((value, k) => {
          expect(value).toBeCloseTo(exact.logprobs[k] ?? 0, 4);
        });
      } finally {
        await http.close();
      }
    });
  });

  describe('with adapters', () => {
    let server: RealServer;
    let backend: RemoteBackend;
    let check: BackendCheck;
    let prompt: Int32Array;
    const greedy = async (from: RemoteBackend): Promise<GenerationResult> => {
      const options = { ...PLAIN, temperature: 0 };
      const [settled] = await from.generate([{ promptIds: prompt, options, affinityKey: '' }]);
      if (settled?.status !== 'fulfilled') throw settled?.reason;
      return settled.value;
    };
    const load = (name: string) =>
      backend.updateWeights({ source: { kind: 'lora', path: path(name) }, version: `of ${name}` });

    beforeAll(async () => {
      server = await startVllm(program, path('seed-1'), { contextLength: CONTEXT, lora: true });
      check = await checkAt(server.url);
      backend = await openAt(server.url, check);
      prompt = (await backend.tokenize('<|im_start|>', { special: true })).ids;
    }, HANG_MS);
    afterAll(async () => {
      await backend?.close();
      await server?.stop();
    }, HANG_MS);

    it('says why it does not score', () => {
      expect(check.capabilities).toMatchObject({ canScore: false, weightSources: ['checkpoint', 'lora', 'external'] });
      expect(check.items.find(({ id }) => id === 'scoring')?.says).toContain('--enable-lora');
    });

    it('serves one after another, each with its version, until base weights come', async () => {
      const plain = await greedy(backend);
      const seen = new Set([plain.ids.join()]);
      for (const name of ['lora-1', 'lora-2']) {
        await load(name);
        expect(await backend.weightVersion()).toBe(`of ${name}`);
        const adapted = await greedy(backend);
        expect(adapted.weightVersions).toEqual([{ version: `of ${name}`, start: 0, end: adapted.ids.length }]);
        seen.add(adapted.ids.join());
        // Another process that opens the server now finds the adapter that serves.
        const other = await openAt(server.url, check);
        expect(await other.weightVersion()).toBe(`of ${name}`);
        expect((await greedy(other)).ids.join()).toBe(adapted.ids.join());
        await other.close();
      }
      expect(seen.size).toBe(3);
      await backend.updateWeights({ source: { kind: 'checkpoint', path: path('seed-1') }, version: 'base again' });
      expect(await greedy(backend)).toMatchObject({
        ids: plain.ids,
        weightVersions: [{ version: 'base again', start: 0, end: plain.ids.length }],
      });
    });

    it('keeps the one that serves when another cannot be loaded', async () => {
      await load('lora-2');
      const before = await greedy(backend);
      for (const name of ['nowhere', 'lora-cut']) await expect(load(name)).rejects.toThrow(/of lora-2 go on serving/);
      const after = await greedy(backend);
      expect(after.ids.join()).toBe(before.ids.join());
      expect(after.weightVersions[0]?.version).toBe('of lora-2');
    });
  });
});
