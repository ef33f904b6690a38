/** What a person reads when a server goes wrong, and that nothing wrong comes out: every switch of the twins. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { Cancelled, Forbidden, Invalid, NotFound, StudioError, Unavailable } from '../../core/errors';
import type { GenerationResult, SamplingOptions } from '../backend';
import { PLAIN } from '../testing/conformance';
import { noFaults } from '../testing/twin/faults';
import { startSglangTwin } from '../testing/twin/sglang';
import { startTensorrtTwin } from '../testing/twin/tensorrt';
import type { Twin } from '../testing/twin/twin';
import { TwinFixture } from '../testing/twin/twin-fixture';
import { createHttpClient } from './http-client';
import type { RemoteBackend } from './remote-backend';
import { sglang } from './sglang';
import { tensorrtLlm } from './tensorrt-llm';

const fixture = new TwinFixture();
beforeAll(() => fixture.open());
afterAll(() => fixture.close());

const KEY = 'k3y-nobody-may-read';

for (const [name, start, protocol] of [
  ['SGLang', startSglangTwin, sglang],
  ['trtllm-serve', startTensorrtTwin, tensorrtLlm],
] as const)
  describe(`on ${name}`, () => {
    let twin: Twin;
    let backend: RemoteBackend;
    const restarts: string[] = [];

    beforeAll(async () => {
      twin = await start({ modelPath: fixture.tiny, disconnectPollMs: 50, key: KEY });
      backend = await fixture.backendOn(twin, {
        protocol,
        key: KEY,
        tokenizerFolder: fixture.tokenizer,
        onRestart: ({ modelName }) => restarts.push(modelName),
      });
    });
    afterEach(() => Object.assign(twin.faults, noFaults()));
    afterAll(() => twin.close());

    const prompt = async () => (await backend.tokenize('Thought: the sea', { special: true })).ids;
    const generate = async (
      changes: Partial<SamplingOptions> = {},
      signal?: AbortSignal,
    ): Promise<GenerationResult> => {
      const [settled] = await backend.generate([
        {
          promptIds: await prompt(),
          options: { ...PLAIN, maxTokens: 8, ...changes },
          affinityKey: 'k',
          ...(signal && { signal }),
        },
      ]);
      if (settled?.status !== 'fulfilled') throw settled?.reason;
      return settled.value;
    };
    /** The refusal, which names the backend and where it is, and holds no key. */
    const refusal = async (work: Promise<unknown>): Promise<StudioError> => {
      const error = await work.then(
        (value) => expect.fail(`nothing was refused: ${JSON.stringify(value)}`),
        (reason) => reason,
      );
      expect(error).toBeInstanceOf(StudioError);
      expect(error.message).toContain(`The backend twin (${twin.url})`);
      expect(error.message).not.toContain('\n');
      expect(JSON.stringify([error.message, error.details])).not.toContain(KEY);
      return error;
    };

    it('refuses a reply without ids, however good its text', async () => {
      twin.faults.missingIds = true;
      const error = await refusal(generate());
      expect(error).toBeInstanceOf(Invalid);
      expect(error.message).toContain('it has no token ids');
    });

    it('gives on a number that says "none", so that the harness can refuse it', async () => {
      twin.faults.logprob = -9999;
      expect((await generate()).logprobs[1]).toBe(-9999);
      twin.faults.logprob = null;
      expect((await generate()).logprobs[1]).toBeNaN();
    });

    it('finds the words in an error body of any shape', async () => {
      for (const errorShape of ['own', 'nested', 'flat', 'string', 'detail'] as const) {
        twin.faults.errorShape = errorShape;
        twin.faults.routes = [name === 'SGLang' ? '/generate' : '/v1/completions'];
        twin.faults.unavailableNext = 1;
        const error = await refusal(generate());
        expect(error).toBeInstanceOf(Unavailable);
        expect(error.message).toContain('status 503: The request queue is full.');
        expect(error.details).toMatchObject({ retry: true, status: 503 });
      }
      expect((await generate()).ids.length).toBeGreaterThan(0);
    });

    it('says that an answer broke off, and that it may be asked for again', async () => {
      for (const fault of ['cutBody', 'drop'] as const) {
        twin.faults.routes = [name === 'SGLang' ? '/generate' : '/v1/completions'];
        twin.faults[fault] = true;
        const error = await refusal(generate());
        expect(error).toBeInstanceOf(Unavailable);
        expect(error.details.retry).toBe(true);
        twin.faults[fault] = false;
      }
      expect((await generate()).ids.length).toBeGreaterThan(0);
      expect(restarts).toEqual([]);
    });

    it('says that a web page is no answer', async () => {
      twin.faults.html = true;
      const error = await refusal(generate());
      expect(error).toBeInstanceOf(Invalid);
      expect(error.message).toContain('is no inference server');
    });

    it('gives up a hung server when it is told to', async () => {
      twin.faults.routes = [name === 'SGLang' ? '/generate' : '/v1/completions'];
      twin.faults.hang = true;
      const stop = new AbortController();
      const hung = generate({}, stop.signal);
      setTimeout(() => stop.abort(), 50);
      await expect(hung).rejects.toBeInstanceOf(Cancelled);
      twin.faults.hang = false;
      expect((await generate()).ids.length).toBeGreaterThan(0);
    });

    it('ends a generation on the server when nobody wants it any more', async () => {
      twin.faults.msPerToken = 20;
      const stop = new AbortController();
      const running = generate({ maxTokens: 900 }, stop.signal);
      while (twin.counters().running === 0) await tick();
      stop.abort();
      await expect(running).rejects.toBeInstanceOf(Cancelled);
      while (twin.counters().running > 0) await tick();
      expect(twin.counters().aborted).toBeGreaterThan(0);
    });

    it('refuses tokens of a prompt that the server changed', async () => {
      twin.faults.addBos = true;
      const error = await refusal(generate());
      expect(error).toBeInstanceOf(Invalid);
      expect(error.message).toContain('it changes prompts');
    });

    it('refuses text that a constraint does not allow, for each kind of constraint', async () => {
      twin.faults.ignoreConstraints = true;
      for (const constraint of [
        {
          kind: 'json_schema' as const,
          schema: { type: 'object', properties: { a: { type: 'boolean' } }, required: ['a'] },
        },
        { kind: 'regex' as const, pattern: 'zq{3}x' },
        { kind: 'grammar' as const, grammar: 'root ::= "zqx"' },
        { kind: 'choice' as const, choices: ['zqx', 'qzx'] },
      ]) {
        const error = await refusal(generate({ constraint }));
        expect(error).toBeInstanceOf(Unavailable);
        expect(error.message).toContain(`ignores constraints of the kind ${constraint.kind}`);
      }
    });

    it('knows a server that came back from the one that went', async () => {
      await generate();
      await twin.kill();
      // The first request may still find a connection that is just being closed.
      await refusal(generate());
      const gone = await refusal(generate());
      expect(gone).toBeInstanceOf(Unavailable);
      expect(gone.details).toMatchObject({ retry: true, reached: false });
      expect((await backend.health()).ok).toBe(false);
      await twin.restart();
      expect((await generate()).ids.length).toBeGreaterThan(0);
      expect(restarts).toHaveLength(1);
    });

    it('tells a wrong key, a wrong model and another kind of server', async () => {
      const other = (changes: object) =>
        fixture.backendOn(twin, { protocol, key: KEY, tokenizerFolder: fixture.tokenizer, ...changes });
      expect(await refusal(other({ key: 'wrong' }))).toBeInstanceOf(Forbidden);
      const unknown = await refusal(other({ model: 'llama-70b' }));
      expect(unknown).toBeInstanceOf(NotFound);
      expect(unknown.message).toMatch(/does not serve the model llama-70b; it serves tiny/);
      const kind = await refusal(other({ protocol: name === 'SGLang' ? tensorrtLlm : sglang }));
      expect(kind).toBeInstanceOf(Invalid);
      expect(kind.message).toMatch(
        name === 'SGLang' ? /is no trtllm-serve: .*"sglang"/ : /is no SGLang: .*"tensorrt_llm"/,
      );
    });

    it('labels the numbers of another temperature as what they are', async () => {
      const result = await generate({ temperature: 0.6 });
      const teacher = await fixture.teacher(fixture.tiny);
      const [scored] = await teacher.getLogprobs([{ promptIds: await prompt(), completionIds: result.ids }]);
      const apart = Math.max(...result.logprobs.map((value, k) => Math.abs(value - (scored?.logprobs[k] ?? 0))));
      // SGLang divides by the temperature, trtllm-serve's PyTorch engine does not.
      expect(result.logprobKind).toBe(name === 'SGLang' ? 'sampled' : 'raw');
      if (name === 'SGLang') expect(apart).toBeGreaterThan(0.05);
      else expect(apart).toBeLessThan(1e-3);
      expect((await generate({ constraint: { kind: 'grammar', grammar: 'root ::= [a-z]+' } })).logprobKind).toBe(
        'constrained',
      );
    });
  });

describe('on a server that cuts long prompts', () => {
  it('refuses what came of one', async () => {
    const twin = await startSglangTwin({ modelPath: fixture.tiny, autoTruncate: true });
    const http = createHttpClient({ backend: 'twin', url: twin.url });
    const facts = await sglang.describe(http, { model: null });
    const promptIds = new Int32Array(1500).fill(70);
    const call = { promptIds, options: { ...PLAIN, maxTokens: 1 }, requestId: 'r-1', affinityKey: 'k' };
    const reply = await sglang.generate(http, facts, call);
    expect(reply.promptTokens).toBe(1023);
    const score = { promptIds, completionIds: Int32Array.of(70), alternatives: 0, entropy: false };
    await expect(sglang.score?.(http, facts, score)).rejects.toThrow(
      'it read 1023 tokens where 1500 were to be scored',
    );
    await http.close();
    await twin.close();
  });
});

const tick = () => new Promise((settle) => setTimeout(settle, 5));
