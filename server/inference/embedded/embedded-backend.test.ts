import { execFileSync, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { Invalid, NotFound, Unavailable } from '../../core/errors';
import { silentLogger } from '../../observability/logger';
import type { GenerationResult, SamplingOptions } from '../backend';
import { describeBackend, PLAIN } from '../testing/conformance';
import { writeTinyModel } from '../testing/tiny-model';
import { EmbeddedBackend, type EmbeddedOptions } from './embedded-backend';

const TUTORIAL = join(process.cwd(), 'samples', 'models', 'tutorial.gguf');
const SMALL = join(process.cwd(), '.cache', 'models', 'SmolLM2-135M-Instruct.Q4_1.gguf');
/** Five control strings, 256 bytes, seven merges. */
const VOCABULARY = 268;
let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tiny-model-'));
  await writeTinyModel(join(folder, 'tiny.gguf'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const openTiny = (changes: Partial<EmbeddedOptions> = {}) =>
  EmbeddedBackend.open({
    name: 'tiny',
    modelPath: join(folder, 'tiny.gguf'),
    threads: 1,
    maxSequences: 4,
    logger: silentLogger,
    ...changes,
  });

describeBackend('embedded backend on a tiny random model', () => openTiny());
describe.runIf(existsSync(TUTORIAL))('with the tutorial model', () => {
  describeBackend('embedded backend', () => openTiny({ name: 'tutorial', modelPath: TUTORIAL }));
});
// Slow.
describe.runIf(existsSync(SMALL) && process.env.STUDIO_TEST_REAL_MODEL === '1')('with a small real model', () => {
  const open = () => openTiny({ name: 'small', modelPath: SMALL, contextLength: 1024 });
  describeBackend('embedded backend', open, { timeoutMs: 300_000 });
});

describe('the embedded backend', { timeout: 240_000 }, () => {
  let backend: EmbeddedBackend;
  afterEach(() => backend?.close());

  const generate = async (
    promptIds: Int32Array,
    changes: Partial<SamplingOptions> = {},
    key = 'k',
  ): Promise<GenerationResult> => {
    const [settled] = await backend.generate([{ promptIds, options: { ...PLAIN, ...changes }, affinityKey: key }]);
    if (settled?.status !== 'fulfilled') throw settled?.reason;
    return settled.value;
  };
  /** Looks at it until it has another process than the one that was ended. */
  const endProcess = async (): Promise<void> => {
    const { pid } = backend;
    process.kill(pid ?? 0, 'SIGKILL');
    const look = async () => ((await backend.health()).ok ? backend.pid : pid);
    await expect.poll(look, { timeout: 30_000 }).not.toBe(pid);
  };
  const encode = async (text: string) => (await backend.tokenize(text, { special: true })).ids;

  it('names the file when it is missing, no model, or cut short', async () => {
    const missing = join(folder, 'not here.gguf');
    await expect(openTiny({ modelPath: missing })).rejects.toThrow(
      new NotFound(`There is no model file at ${missing}.`),
    );
    const text = join(folder, 'text.gguf');
    await writeFile(text, 'hello');
    await expect(openTiny({ modelPath: text })).rejects.toThrow(`The file ${text} is no GGUF model`);
    const endless = join(folder, 'endless.gguf');
    const head = Buffer.alloc(1_024);
    head.write('GGUF');
    head.writeUInt32LE(3, 4);
    head.writeBigUInt64LE(2n ** 62n, 8);
    head.writeBigUInt64LE(2n ** 62n, 16);
    await writeFile(endless, head);
    await expect(openTiny({ modelPath: endless })).rejects.toThrow(`The file ${endless} is no GGUF model`);
    const cut = join(folder, 'cut.gguf');
    await writeFile(cut, (await readFile(join(folder, 'tiny.gguf'))).subarray(0, 100_000));
    await expect(openTiny({ modelPath: cut })).rejects.toBeInstanceOf(Invalid);
    await expect(openTiny({ modelPath: cut })).rejects.toThrow(cut);
  });

  it('keeps the bytes of a character that is split over tokens', async () => {
    backend = await openTiny();
    const grammar = 'root ::= "🌊"';
    const result = await generate(await encode('sea'), { constraint: { kind: 'grammar', grammar }, maxTokens: 10 });
    expect(result.ids).toHaveLength(4);
    expect(Array.from(result.byteEnds)).toEqual([1, 2, 3, 4]);
    expect(new TextDecoder().decode(result.bytes)).toBe('🌊');
    expect(result.finishReason).toBe('stop');
  });

  it('finds a stop string that ends inside a token', async () => {
    backend = await openTiny();
    // `n:` and the space after it are one token of this vocabulary; the grammar leaves the choice of tokens free.
    const constraint = { kind: 'grammar' as const, grammar: 'root ::= "in: the end"' };
    const result = await generate(await encode('x'), { constraint, stop: ['n:'], maxTokens: 20, temperature: 0 });
    expect(result).toMatchObject({ finishReason: 'stop', stopString: 'n:' });
    expect(new TextDecoder().decode(result.bytes)).toMatch(/^in: ?$/);
  });

  it('ends with "eos" on the end-of-turn token and keeps it', async () => {
    backend = await openTiny();
    const ends = await encode('<|im_end|><|endoftext|>');
    for (let seed = 0; seed < 40; seed++) {
      const result = await generate(await encode('a'), { seed, maxTokens: 400 });
      if (result.finishReason !== 'eos') continue;
      expect(Array.from(ends)).toContain(result.ids.at(-1));
      return;
    }
    throw new Error('No text of forty ended; the tiny model has changed.');
  });

  it('goes on from what a sequence holds and gives the numbers of a fresh one', async () => {
    backend = await openTiny({ maxSequences: 1 });
    const prompt = await encode('Thought: the sea is in there. '.repeat(8));
    const first = await generate(prompt, { maxTokens: 10, temperature: 0 });
    const longer = Int32Array.from([...prompt, ...first.ids, ...(await encode(' and more'))]);
    const cached = await generate(longer, { maxTokens: 10, temperature: 0 });
    await generate(await encode('something else altogether'), { maxTokens: 5 }, 'other');
    const fresh = await generate(longer, { maxTokens: 10, temperature: 0 }, 'third');
    expect(Array.from(cached.ids)).toEqual(Array.from(fresh.ids));
    for (const [k, value] of cached.logprobs.entries())
      expect(Math.abs(value - (fresh.logprobs[k] ?? 0))).toBeLessThan(1e-3);
  });

  it('starts a new process after a crash; what was running fails with a sentence', async () => {
    backend = await openTiny();
    const prompt = await encode('a');
    const running = backend.generate([
      { promptIds: prompt, options: { ...PLAIN, maxTokens: 900, temperature: 0 }, affinityKey: 'k' },
    ]);
    await new Promise((next) => setTimeout(next, 20));
    process.kill(backend.pid ?? 0, 'SIGKILL');
    const [settled] = await running;
    expect(settled).toMatchObject({ status: 'rejected', reason: expect.any(Unavailable) });
    expect((await generate(prompt)).ids.length).toBeGreaterThan(0);
    expect((await backend.health()).ok).toBe(true);
  });

  it('starts a new process when it is looked at after its own was ended, as by a machine short of memory', async () => {
    backend = await openTiny();
    await endProcess();
  });

  it('says that it is being started again where that takes long, and is closed meanwhile', async () => {
    const modelPath = join(folder, 'slow.gguf');
    await writeTinyModel(modelPath);
    backend = await openTiny({ modelPath });
    // Opening it lasts until somebody writes to it, and nobody does.
    await rm(modelPath);
    execFileSync('mkfifo', [modelPath]);
    process.kill(backend.pid ?? 0, 'SIGKILL');
    await expect
      .poll(() => backend.health(), { timeout: 10_000 })
      .toMatchObject({ ok: false, held: true, message: expect.stringContaining('is being started again') });
    const waiting = encode('a').catch((error) => error);
    await backend.close();
    expect(await waiting).toBeInstanceOf(Unavailable);
  });

  it('says why it cannot be started again', async () => {
    const modelPath = join(folder, 'gone.gguf');
    await writeTinyModel(modelPath);
    backend = await openTiny({ modelPath });
    await rm(modelPath);
    process.kill(backend.pid ?? 0, 'SIGKILL');
    await expect.poll(async () => (await backend.health()).message).toContain('gone.gguf');
    await writeTinyModel(modelPath);
    expect(await backend.health()).toMatchObject({ ok: true });
  });

  it('serves new weights under their version, and keeps the old ones when the new cannot be used', async () => {
    backend = await openTiny({ version: 'first' });
    const prompt = await encode('a');
    const before = await generate(prompt, { temperature: 0 });
    expect(before.weightVersions[0]?.version).toBe('first');
    const other = join(folder, 'other.gguf');
    await writeTinyModel(other, { seed: 2 });
    const running = generate(prompt, { temperature: 0, maxTokens: 300 }, 'running');
    await backend.updateWeights({ source: { kind: 'checkpoint', path: other }, version: 'second' });
    expect((await running).weightVersions).toHaveLength(1);
    const after = await generate(prompt, { temperature: 0 });
    expect(after.weightVersions[0]?.version).toBe('second');
    expect(Array.from(after.logprobs)).not.toEqual(Array.from(before.logprobs));
    await expect(
      backend.updateWeights({ source: { kind: 'checkpoint', path: join(folder, 'none.gguf') }, version: 'third' }),
    ).rejects.toBeInstanceOf(NotFound);
    const larger = join(folder, 'larger.gguf');
    await writeTinyModel(larger, { extraTokens: 3 });
    await expect(
      backend.updateWeights({ source: { kind: 'checkpoint', path: larger }, version: 'third' }),
    ).rejects.toThrow('vocabulary');
    const still = await generate(prompt, { temperature: 0 });
    expect(still.weightVersions[0]?.version).toBe('second');
    // After a crash it comes back with the new weights.
    await endProcess();
    const again = await generate(prompt, { temperature: 0 });
    expect(again.weightVersions[0]?.version).toBe('second');
    expect(Array.from(again.ids)).toEqual(Array.from(after.ids));
  });

  it('frees the sequence of a stopped request for the ones that wait', async () => {
    backend = await openTiny({ maxSequences: 1 });
    const prompt = await encode('a');
    const stop = new AbortController();
    const options = { ...PLAIN, maxTokens: 1000, temperature: 0 };
    const long = backend.generate([{ promptIds: prompt, options, affinityKey: 'k', signal: stop.signal }]);
    const next = generate(prompt, { maxTokens: 2 }, 'other');
    setTimeout(() => stop.abort(), 10);
    await long;
    expect((await next).ids.length).toBeGreaterThan(0);
  });

  it('refuses ids that are no tokens, and a schema no grammar can hold', async () => {
    backend = await openTiny();
    await expect(generate(Int32Array.of(5, 999_999))).rejects.toThrow("this model's ids go from 0 to");
    const schema = { type: 'object', properties: { n: { type: 'integer', minimum: 3 } } };
    const prompt = await encode('a');
    await expect(generate(prompt, { constraint: { kind: 'json_schema', schema } })).rejects.toThrow(
      '#/properties/n/minimum cannot be enforced',
    );
  });

  it('writes what a regular expression or a list of choices allows, and stops when that is complete', async () => {
    backend = await openTiny();
    const prompt = await encode('a');
    for (let seed = 0; seed < 4; seed++) {
      const pattern = '(ab|n: )+\\d{2}[^\\s\\w]?é';
      const written = await generate(prompt, { seed, constraint: { kind: 'regex', pattern }, maxTokens: 400 });
      expect(new TextDecoder().decode(written.bytes)).toMatch(new RegExp(`^${pattern}$`, 'u'));
      expect(written).toMatchObject({ finishReason: 'stop', stopString: null });
      const choices = ['up', 'down', '数 "7"\n'];
      const chosen = await generate(prompt, { seed, constraint: { kind: 'choice', choices }, maxTokens: 40 });
      expect(choices).toContain(new TextDecoder().decode(chosen.bytes));
      expect(chosen.finishReason).toBe('stop');
    }
    await expect(generate(prompt, { constraint: { kind: 'regex', pattern: 'a(?=b)' } })).rejects.toThrow('look-ahead');
    await expect(generate(prompt, { constraint: { kind: 'choice', choices: [] } })).rejects.toBeInstanceOf(Invalid);
  });

  it('scores with the likeliest tokens and the entropy of each position', async () => {
    backend = await openTiny();
    const promptIds = await encode('the sea is');
    const { ids } = await generate(promptIds, { maxTokens: 12 });
    const pairs = [{ promptIds, completionIds: ids }];
    const [plain] = await backend.getLogprobs(pairs);
    expect(plain).toMatchObject({ entropy: null, alternatives: null });
    const [full] = await backend.getLogprobs(pairs, { alternatives: 5, entropy: true });
    if (!full?.alternatives || !full.entropy || !plain) throw new Error('no scores');
    const vocabulary = Int32Array.from({ length: VOCABULARY }, (_, id) => id);
    for (let k = 0; k < ids.length; k++) {
      expect(full.logprobs[k]).toBeCloseTo(plain.logprobs[k] ?? 0, 4);
      // Every token of the vocabulary as the next one, scored the cheap way.
      const before = Int32Array.from([...promptIds, ...ids.slice(0, k)]);
      const all = await backend.getLogprobs(
        Array.from(vocabulary, (id) => ({ promptIds: before, completionIds: Int32Array.of(id) })),
      );
      const logprobs = all.map((one) => one.logprobs[0] ?? 0);
      expect(logprobs.reduce((sum, value) => sum + Math.exp(value), 0)).toBeCloseTo(1, 4);
      const entropy = -logprobs.reduce((sum, value) => sum + Math.exp(value) * value, 0);
      expect(full.entropy[k]).toBeCloseTo(entropy, 3);
      const ranked = Array.from(vocabulary).sort((a, b) => (logprobs[b] ?? 0) - (logprobs[a] ?? 0));
      const { k: count } = full.alternatives;
      expect(count).toBe(5);
      const listed = Array.from(full.alternatives.logprobs.slice(k * count, (k + 1) * count));
      for (const [rank, value] of listed.entries()) expect(value).toBeCloseTo(logprobs[ranked[rank] ?? 0] ?? 0, 3);
      const first = full.alternatives.ids[k * count] ?? -1;
      expect(logprobs[first]).toBeCloseTo(logprobs[ranked[0] ?? 0] ?? 0, 4);
    }
    const [none] = await backend.getLogprobs([{ promptIds, completionIds: new Int32Array(0) }], { alternatives: 2 });
    expect(none?.logprobs).toHaveLength(0);
    expect(none?.alternatives?.ids).toHaveLength(0);
    await expect(backend.getLogprobs(pairs, { alternatives: 6 })).rejects.toThrow('it can be 0 to 5');
  });

  it('leaves no model process behind when the server process is killed', async () => {
    const script = `
      import { EmbeddedBackend } from ${JSON.stringify(join(import.meta.dirname, 'embedded-backend.ts'))};
      import { silentLogger } from ${JSON.stringify(join(import.meta.dirname, '../../observability/logger.ts'))};
      const backend = await EmbeddedBackend.open({ name: 'x', modelPath: process.argv[2], threads: 1, logger: silentLogger });
      console.log(backend.pid);
      setInterval(() => {}, 1000);`;
    const file = join(folder, 'server.mts');
    await writeFile(file, script);
    const loader = pathToFileURL(createRequire(import.meta.url).resolve('tsx')).href;
    const server = spawn(process.execPath, ['--import', loader, file, join(folder, 'tiny.gguf')], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const pid = Number(await new Promise((next) => server.stdout.once('data', (data) => next(String(data)))));
    expect(isRunning(pid)).toBe(true);
    server.kill('SIGKILL');
    await vi.waitFor(() => expect(isRunning(pid)).toBe(false), { timeout: 20_000 });
  });

  it('samples every sequence of a full batch from its own numbers', async () => {
    backend = await openTiny({ maxSequences: 32 });
    const promptIds = await encode('one prompt for all of them');
    const requests = Array.from({ length: 96 }, (_, i) => ({
      promptIds,
      options: { ...PLAIN, maxTokens: 24, seed: i + 1 },
      affinityKey: `k${i}`,
    }));
    const settled = await backend.generate(requests);
    const results = settled.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
    expect(results).toHaveLength(requests.length);
    // A token drawn from a neighbour's distribution would have another log-probability than the one reported.
    const scores = await backend.getLogprobs(results.map(({ ids }) => ({ promptIds, completionIds: ids })));
    results.forEach(({ logprobs }, i) => {
      for (let k = 0; k < logprobs.length; k++)
        expect(Math.abs((scores[i]?.logprobs[k] ?? 0) - (logprobs[k] ?? 0))).toBeLessThan(1e-3);
    });
  });

  it('says so when it is used after it was closed', async () => {
    backend = await openTiny();
    await backend.close();
    await expect(backend.tokenize('a', { special: false })).rejects.toBeInstanceOf(Unavailable);
  });
});

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
