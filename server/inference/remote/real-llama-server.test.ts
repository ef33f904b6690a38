/** The protocol against a real llama-server (STUDIO_TEST_LLAMA_SERVER names the program; `npm run test:servers` sets it). */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { seededRandom, systemAmbient } from '../../core/ambient';
import { Cancelled, Invalid, NotFound, Unavailable } from '../../core/errors';
import { silentLogger } from '../../observability/logger';
import type { GenerationResult, SamplingOptions } from '../backend';
import { EmbeddedBackend } from '../embedded/embedded-backend';
import { encodeGguf, type GgufTensor, type GgufValue } from '../gguf/write';
import { describeBackend, PLAIN } from '../testing/conformance';
import { type RealServer, startServer } from '../testing/real-servers';
import { writeTinyModel } from '../testing/tiny-model';
import { createHttpClient, type HttpClient } from './http-client';
import { llamaServer } from './llama-server';
import { complete } from './llama-server-wire';
import type { ServerFacts } from './protocol';
import type { StoredLabels } from './remembered-label';
import { RemoteBackend } from './remote-backend';

const program = process.env.STUDIO_TEST_LLAMA_SERVER ?? '';
const SLOTS = 4;
const CONTEXT = 1024;
const TINY_WIDTH = 64;
/** As the embedded model computes float weights. By itself the server rounds keys and values to 16 bits. */
const EXACT = ['--flash-attn', 'off', '--cache-type-k', 'f32', '--cache-type-v', 'f32'];

describe.skipIf(program === '')('a real llama-server', { timeout: 300_000 }, () => {
  let folder: string;
  let modelPath: string;
  let loraPath: string;
  const servers: RealServer[] = [];
  let teacher: EmbeddedBackend;
  let url: string;

  const start = async (flags: string[], model = modelPath) => {
    const server = await startServer({
      program,
      args: (port) => [
        ...['--host', '127.0.0.1', '--port', String(port), '--model', model, '--alias', 'tiny', '--threads', '1'],
        ...['--ctx-size', String(SLOTS * CONTEXT), '--parallel', String(SLOTS), '--metrics', ...flags],
      ],
    });
    servers.push(server);
    return server;
  };
  const open = (at = url, model: string | null = null, labels?: StoredLabels) =>
    RemoteBackend.open({
      name: 'llama',
      url: at,
      protocol: llamaServer,
      model,
      tokenizerFolder: null,
      maxInFlight: SLOTS,
      logger: silentLogger,
      ambient: systemAmbient(),
      capabilities: { seeded: true, entropy: true },
      ...(labels && { labels }),
    });

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'llama-server-'));
    modelPath = join(folder, 'tiny.gguf');
    loraPath = join(folder, 'adapter.gguf');
    await writeTinyModel(modelPath);
    await writeTinyGgufLora(loraPath);
    teacher = await EmbeddedBackend.open({
      name: 'teacher',
      modelPath,
      threads: 1,
      maxSequences: 2,
      logger: silentLogger,
    });
    // What --lora-init-without-apply loads is applied to every request all the same.
    const adapters = ['--lora-scaled', `${loraPath}:0`, '--cache-ram', '0'];
    url = (await start([...EXACT, ...adapters])).url;
  }, 300_000);
  afterAll(async () => {
    await teacher?.close();
    for (const server of servers) await server.stop();
    await rm(folder, { recursive: true, force: true });
  });

  describeBackend('llama-server on a tiny random model', () => open(), {
    teacher: async () => teacher,
    weights: { next: { kind: 'lora', path: 'adapter.gguf' }, broken: { kind: 'lora', path: 'unknown.gguf' } },
    timeoutMs: 120_000,
  });

  describe('by itself', () => {
    let http: HttpClient;
    let facts: ServerFacts;
    let backend: RemoteBackend;
    let promptIds: Int32Array;
    let plainUrl: string;

    beforeAll(async () => {
      plainUrl = (await start(EXACT)).url;
      http = createHttpClient({ backend: 'llama', url: plainUrl });
      facts = await llamaServer.describe(http, { model: null });
      backend = await open(plainUrl);
      const text = await backend.applyTemplate([{ role: 'user', content: 'Go.' }], { addGenerationPrompt: true });
      promptIds = (await backend.tokenize(text, { special: true })).ids;
    });
    afterAll(async () => {
      await backend?.close();
      await http?.close();
    });

    const generate = async (changes: Partial<SamplingOptions>, signal?: AbortSignal): Promise<GenerationResult> => {
      const options = { ...PLAIN, ...changes };
      const [settled] = await backend.generate([{ promptIds, options, affinityKey: 'k', ...(signal && { signal }) }]);
      if (settled?.status !== 'fulfilled') throw settled?.reason;
      return settled.value;
    };
    const busySlots = async () => {
      const { body } = await http.getJson('/slots');
      return (body as { is_processing: boolean }[]).filter((slot) => slot.is_processing).length;
    };

    it('says what it is, and which model it serves', async () => {
      expect(facts).toMatchObject({ modelName: 'tiny', contextLength: CONTEXT, slots: SLOTS, logprobs: 'raw' });
      expect((await llamaServer.describe(http, { model: 'tiny' })).fingerprint).toBe(facts.fingerprint);
      await expect(open(plainUrl, 'other.gguf')).rejects.toThrow(NotFound);
      const again = (await start(EXACT)).url;
      const another = createHttpClient({ backend: 'llama', url: again });
      expect((await llamaServer.describe(another, { model: null })).fingerprint).not.toBe(facts.fingerprint);
      await another.close();
    });

    it('renders and encodes as the model inside the studio does', async () => {
      const conversation = [
        { role: 'system' as const, content: 'Be brief.' },
        { role: 'user' as const, content: 'Go.' },
        { role: 'assistant' as const, content: 'Gone.' },
      ];
      for (const addGenerationPrompt of [true, false]) {
        const text = await backend.applyTemplate(conversation, { addGenerationPrompt });
        expect(text).toBe(await teacher.applyTemplate(conversation, { addGenerationPrompt }));
        expect(text).toContain('Gone.<|im_end|>');
        const encoded = await backend.tokenize(text, { special: true });
        expect(Array.from(encoded.ids)).toEqual(Array.from((await teacher.tokenize(text, { special: true })).ids));
      }
    });

    it('gives the raw number of every token, whatever shapes the sampling, and as another llama.cpp does', async () => {
      const shapes: Partial<SamplingOptions>[] = [
        { seed: 1 },
        { temperature: 0 },
        { temperature: 0.5, topK: 5 },
        { topP: 0.7, minP: 0.02 },
        { constraint: { kind: 'choice', choices: ['up', 'down'] } },
        { constraint: { kind: 'regex', pattern: '[a-f]{3,5}é🌊\\d' } },
        { constraint: { kind: 'grammar', grammar: 'root ::= [a-z ]+' }, stop: ['e', 'a', 'i', 'o'] },
      ];
      for (const shape of shapes) {
        const result = await generate(shape);
        expect(result.logprobKind).toBe('raw');
        for (const scorer of [backend, teacher]) {
          const [scored] = await scorer.getLogprobs([{ promptIds, completionIds: result.ids }]);
          for (const [k, value] of result.logprobs.entries())
            expect(Math.abs(value - (scored?.logprobs[k] ?? Number.NaN))).toBeLessThan(1e-3);
        }
      }
    });

    it('samples from the distribution that it reports', async () => {
      const counts = new Map<number, number>();
      const draws = 1500;
      const request = (seed: number) => ({ promptIds, options: { ...PLAIN, maxTokens: 1, seed }, affinityKey: 'k' });
      const settled = await backend.generate(Array.from({ length: draws }, (_, k) => request(k + 1)));
      for (const one of settled) {
        const id = one.status === 'fulfilled' ? (one.value.ids[0] ?? -1) : -1;
        counts.set(id, (counts.get(id) ?? 0) + 1);
      }
      const [likeliest] = await backend.getLogprobs([{ promptIds, completionIds: Int32Array.of(5) }], {
        alternatives: 5,
      });
      for (const [rank, id] of (likeliest?.alternatives?.ids ?? []).entries()) {
        const expected = draws * Math.exp(likeliest?.alternatives?.logprobs[rank] ?? 0);
        // Six standard deviations of a count.
        expect(Math.abs((counts.get(id) ?? 0) - expected)).toBeLessThan(6 * Math.sqrt(expected));
      }
    });

    it('gives alternatives and entropy as another llama.cpp does', async () => {
      const { ids } = await generate({ seed: 4, maxTokens: 8 });
      const pairs = [{ promptIds, completionIds: ids }];
      const [ours] = await backend.getLogprobs(pairs, { alternatives: 5, entropy: true });
      const [theirs] = await teacher.getLogprobs(pairs, { alternatives: 5, entropy: true });
      for (const [k, value] of (ours?.entropy ?? []).entries()) expect(value).toBeCloseTo(theirs?.entropy?.[k] ?? 0, 2);
      for (const [k, value] of (ours?.alternatives?.logprobs ?? []).entries())
        expect(Math.abs(value - (theirs?.alternatives?.logprobs[k] ?? 0))).toBeLessThan(1e-3);
    });

    it('ends with the end-of-turn token among the ids', async () => {
      for (let seed = 0; seed < 60; seed++) {
        const result = await generate({ seed, maxTokens: 400 });
        if (result.finishReason !== 'eos') continue;
        expect(result.endTokenSampled).toBe(true);
        const ends = await backend.tokenize('<|im_end|><|endoftext|>', { special: true });
        expect(Array.from(ends.ids)).toContain(result.ids.at(-1));
        return;
      }
      throw new Error('No text of sixty ended.');
    });

    it('takes 64 requests on four slots, each with its own tokens', async () => {
      const requests = Array.from({ length: 64 }, (_, seed) => ({
        promptIds,
        options: { ...PLAIN, maxTokens: 12, seed },
        affinityKey: `k${seed}`,
      }));
      const results = (await backend.generate(requests)).map((one) => (one.status === 'fulfilled' ? one.value : null));
      const pairs = results.map((result) => ({ promptIds, completionIds: result?.ids ?? new Int32Array(0) }));
      const scores = await teacher.getLogprobs(pairs);
      for (const [k, result] of results.entries()) {
        expect(result?.ids.length).toBeGreaterThan(0);
        for (const [at, value] of (result?.logprobs ?? []).entries())
          expect(Math.abs(value - (scores[k]?.logprobs[at] ?? 0))).toBeLessThan(1e-3);
      }
    });

    it('stops working on a request that is given up', async () => {
      const stop = new AbortController();
      // None of them may end by itself before it is given up.
      const constraint = { kind: 'grammar' as const, grammar: 'root ::= [a-z]{600}' };
      const running = Array.from({ length: SLOTS }, () => generate({ constraint, maxTokens: 900 }, stop.signal));
      const settled = Promise.allSettled(running);
      await expect.poll(busySlots, { interval: 5 }).toBeGreaterThan(0);
      stop.abort();
      for (const one of await settled) expect(one).toMatchObject({ status: 'rejected', reason: expect.any(Cancelled) });
      await expect.poll(busySlots, { timeout: 30_000 }).toBe(0);
      expect((await generate({})).ids.length).toBeGreaterThan(0);
    });

    it('names the context length when a prompt is too long for the server', async () => {
      const call = { options: PLAIN, requestId: 'r', affinityKey: 'k' };
      const tooLong = { ...call, promptIds: new Int32Array(CONTEXT + 10).fill(promptIds[0] ?? 0) };
      await expect(llamaServer.generate(http, facts, tooLong)).rejects.toThrow(String(CONTEXT));
      await expect(llamaServer.generate(http, facts, tooLong)).rejects.toBeInstanceOf(Invalid);
    });

    it('refuses constraints that no server can keep, in words', async () => {
      const impossible = { type: 'object', properties: { a: { $ref: '#/nowhere' } } };
      await expect(generate({ constraint: { kind: 'json_schema', schema: impossible } })).rejects.toThrow('nowhere');
      await expect(generate({ constraint: { kind: 'regex', pattern: 'a(?=b)' } })).rejects.toThrow('look-ahead');
      await expect(generate({ constraint: { kind: 'grammar', grammar: ' ' } })).rejects.toThrow('empty');
    });

    it('takes no adapters where old prompts would go on being used, and says how it must be started', async () => {
      const other = await start([...EXACT, '--lora-scaled', `${loraPath}:0`]);
      const withMemory = await open(other.url);
      const update = { source: { kind: 'lora' as const, path: loraPath }, version: 'next' };
      await expect(withMemory.updateWeights(update)).rejects.toThrow('--cache-ram 0');
      const { body } = await http.getJson('/lora-adapters');
      expect(body).toEqual([]);
      const [scale] = ((await (await fetch(`${other.url}/lora-adapters`)).json()) as { scale: number }[]) ?? [];
      expect(scale?.scale).toBe(0);
      expect((await withMemory.capabilities()).weightSources).toEqual(['lora']);
      await withMemory.close();
    });

    it('uses no prompt of the old weights after an adapter was turned on', async () => {
      const other = await start([...EXACT, '--lora-scaled', `${loraPath}:0`, '--cache-ram', '0']);
      const kept: string[] = [];
      const labels: StoredLabels = {
        labelOf: async (...of) =>
          kept.find((label) => label.startsWith(of.join(' ')))?.slice(of.join(' ').length + 1) ?? null,
        keepLabel: async (...label) => void kept.unshift(label.join(' ')),
      };
      const changing = await open(other.url, null, labels);
      const draws = () =>
        changing.generate(
          Array.from({ length: 3 * SLOTS }, (_, seed) => ({
            promptIds,
            options: { ...PLAIN, maxTokens: 1, temperature: 0, seed },
            affinityKey: `k${seed}`,
          })),
        );
      await draws();
      await changing.updateWeights({ source: { kind: 'lora', path: loraPath }, version: 'next' });
      const results = await draws();
      const client = createHttpClient({ backend: 'changing', url: other.url });
      const fields = { prompt: promptIds, n_predict: 1, n_probs: 1e6, temperature: 0, cache_prompt: false };
      const { positions } = await complete(
        client,
        await llamaServer.describe(client, { model: null }),
        fields,
        undefined,
      );
      const fresh = new Map(positions[0]?.likeliest.map(({ id, logprob }) => [id, logprob]));
      for (const one of results) {
        if (one.status === 'rejected') throw one.reason;
        expect(one.value.weightVersions).toEqual([{ version: 'next', start: 0, end: 1 }]);
        expect(Math.abs((one.value.logprobs[0] ?? 0) - (fresh.get(one.value.ids[0] ?? -1) ?? 0))).toBeLessThan(1e-3);
      }
      await client.close();
      await changing.close();
      const opened = await open(other.url, null, labels);
      expect(await opened.weightVersion()).toBe('next');
      await opened.close();
    });

    it('offers no new weights without adapters, and no embeddings without --embeddings', async () => {
      expect((await backend.capabilities()).weightSources).toEqual([]);
      expect(facts.routes.has('embeddings')).toBe(false);
      const embedder = await start(['--embeddings', '--pooling', 'mean']);
      const client = createHttpClient({ backend: 'embedder', url: embedder.url });
      const found = await llamaServer.describe(client, { model: null });
      expect(found.routes.has('embeddings')).toBe(true);
      const vectors = (await llamaServer.embed?.(client, found, ['one', 'two'])) ?? [];
      expect(vectors.map((vector) => vector.length)).toEqual([TINY_WIDTH, TINY_WIDTH]);
      const norms = vectors.map((vector) => Math.hypot(...vector));
      for (const norm of norms) expect(norm).toBeCloseTo(1, 3);
      expect(Array.from(vectors[0] ?? [])).not.toEqual(Array.from(vectors[1] ?? []));
      await client.close();
    });

    it('scores what it drafted, since the server gives no numbers for that', async () => {
      const lookup = ['--spec-ngram-simple-size-n', '2', '--spec-ngram-simple-size-m', '4'];
      const tutorial = join(process.cwd(), 'samples', 'models', 'tutorial.gguf');
      const drafting = await start([...EXACT, '--spec-type', 'ngram-simple', ...lookup], tutorial);
      const drafts = await open(drafting.url);
      const content = 'Thought: between 7 and 12, try 10.\n'.repeat(9);
      const text = await drafts.applyTemplate([{ role: 'user', content }], { addGenerationPrompt: true });
      const prompt = (await drafts.tokenize(text, { special: true })).ids;
      const requests = Array.from({ length: 8 }, (_, seed) => ({
        promptIds: prompt,
        options: { ...PLAIN, maxTokens: 60, seed },
        affinityKey: 'k',
      }));
      for (const one of await drafts.generate(requests)) {
        if (one.status === 'rejected') throw one.reason;
        const [scored] = await drafts.getLogprobs([{ promptIds: prompt, completionIds: one.value.ids }]);
        for (const [k, value] of one.value.logprobs.entries())
          expect(Math.abs(value - (scored?.logprobs[k] ?? Number.NaN))).toBeLessThan(1e-3);
      }
      const { body } = await drafts.http.text('GET', '/metrics');
      expect(Number(/spec_decode_num_accepted_tokens_total (\d+)/.exec(body)?.[1])).toBeGreaterThan(0);
      await drafts.close();
    });
  });

  it('is not healthy while it loads its model, and then is', async () => {
    const large = join(folder, 'large.gguf');
    await writeTinyModel(large, { extraTokens: 200_000 });
    let at = 0;
    const starting = startServer({
      program,
      args: (port) => {
        at = port;
        return ['--host', '127.0.0.1', '--port', String(port), '--model', large, '--threads', '1', '--ctx-size', '256'];
      },
    });
    await expect.poll(() => at).toBeGreaterThan(0);
    const client = createHttpClient({ backend: 'loading', url: `http://127.0.0.1:${at}` });
    const messages = new Set<string>();
    let refused: unknown = null;
    for (;;) {
      const health = await llamaServer.health(client);
      if (health.ok) break;
      messages.add(health.message);
      if (health.message.includes('Loading model'))
        refused ??= await llamaServer.describe(client, { model: null }).catch((error: unknown) => error);
      await sleep(5);
    }
    servers.push(await starting);
    expect([...messages].some((message) => message.includes('Loading model'))).toBe(true);
    expect(refused).toBeInstanceOf(Unavailable);
    expect((await llamaServer.describe(client, { model: null })).contextLength).toBe(256);
    await client.close();
  });
});

/** An adapter of the tiny model's feed-forward gates, strong enough to change what is sampled. */
async function writeTinyGgufLora(path: string): Promise<void> {
  const rank = 4;
  const hidden = 160;
  const random = seededRandom(5);
  const tensors: GgufTensor[] = [];
  for (let layer = 0; layer < 3; layer++)
    for (const [name, dimensions] of [
      ['lora_a', [TINY_WIDTH, rank]],
      ['lora_b', [rank, hidden]],
    ] as const) {
      const data = Float32Array.from({ length: dimensions[0] * dimensions[1] }, () => random() - 0.5);
      tensors.push({ name: `blk.${layer}.ffn_gate.weight.${name}`, dimensions, data });
    }
  const metadata = new Map<string, GgufValue>([
    ['general.architecture', { type: 'string', value: 'llama' }],
    ['general.type', { type: 'string', value: 'adapter' }],
    ['adapter.type', { type: 'string', value: 'lora' }],
    ['adapter.lora.alpha', { type: 'float32', value: 16 }],
  ]);
  await writeFile(path, encodeGguf({ metadata, tensors }));
}
