/**
 * What every InferenceBackend must do, as tests: `describeBackend(name, open)` in a test file of the backend. `open`
 * gives a ready backend whose vocabulary is byte-level or larger; it is opened once and closed at the end.
 */
import { afterAll, beforeAll, describe, expect, it, type TestContext } from 'vitest';
import { Cancelled, Invalid } from '../../core/errors';
import { CONSTRAINT_KINDS, type ConstraintKind } from '../../core/inference';
import type {
  BackendCapabilities,
  Constraint,
  GenerationRequest,
  GenerationResult,
  InferenceBackend,
  SamplingOptions,
  WeightUpdate,
} from '../backend';

/** What a backend may be without. A test that needs it is skipped, and says so. */
export type Feature = 'decode' | 'scoring' | 'seed' | ConstraintKind;

export interface ConformanceOptions {
  /**
   * What this backend is without: just this, so that no test is skipped by accident. `whatever it says` for a server that
   * nobody here has started. Default: nothing.
   */
  lacks?: readonly Feature[] | 'whatever it says';
  /** Largest difference allowed between a sampled log-probability and the same token scored. Default 1e-3. */
  logprobTolerance?: number;
  /** False for a backend that says nothing a model would say (scripted): tests of free sampling are left out. */
  samples?: boolean;
  /** The same weights where teacher forcing works: holds the numbers of a server that cannot score by itself. */
  teacher?: () => Promise<Pick<InferenceBackend, 'getLogprobs'>>;
  /** New weights to bring, and a source that cannot be loaded: the version must move with the first and stay with the second. */
  weights?: { next: WeightUpdate['source']; broken: WeightUpdate['source'] };
  timeoutMs?: number;
}

/** A longer context takes long to fill. */
const LARGEST_FILLED = 8192;

export const PLAIN: SamplingOptions = { maxTokens: 24, temperature: 1, topP: 1, topK: 0, minP: 0, seed: 1, stop: [] };

export function describeBackend(
  name: string,
  open: () => Promise<InferenceBackend>,
  options: ConformanceOptions = {},
): void {
  const { logprobTolerance = 1e-3, samples = true, timeoutMs = 60_000, teacher, weights, lacks = [] } = options;

  describe(name, { timeout: timeoutMs }, () => {
    let backend: InferenceBackend;
    let can: BackendCapabilities;
    let prompt: Int32Array;

    beforeAll(async () => {
      backend = await open();
      can = await backend.capabilities();
      prompt = await promptOf('Count to three.');
    }, timeoutMs);
    afterAll(() => backend?.close());

    const promptOf = async (content: string) => {
      const text = await backend.applyTemplate([{ role: 'user', content }], { addGenerationPrompt: true });
      return (await backend.tokenize(text, { special: true })).ids;
    };
    const request = (changes: Partial<SamplingOptions> = {}, key = 'one'): GenerationRequest => ({
      promptIds: prompt,
      options: { ...PLAIN, ...changes },
      affinityKey: key,
    });
    const generate = async (wanted: GenerationRequest): Promise<GenerationResult> => {
      const [settled] = await backend.generate([wanted]);
      if (settled?.status !== 'fulfilled') throw settled?.reason;
      return settled.value;
    };

    const missing = (): Feature[] => [
      ...(backend.decode ? [] : ['decode' as const]),
      ...(can.canScore ? [] : ['scoring' as const]),
      ...(can.seeded ? [] : ['seed' as const]),
      ...CONSTRAINT_KINDS.filter((kind) => !can.constraints.includes(kind)),
    ];
    const needs = (context: TestContext, feature: Feature) =>
      context.skip(missing().includes(feature), `the backend has no ${feature}`);

    it('can do all that is said of it', (context) => {
      if (lacks === 'whatever it says') return context.skip('nothing is said of it');
      expect(missing().sort()).toEqual([...lacks].sort());
    });

    it('is ready and says what it can do', async () => {
      expect((await backend.health()).ok).toBe(true);
      expect(can.contextLength).toBeGreaterThan(0);
      expect(can.maxInFlight).toBeGreaterThan(0);
    });

    it('gives an id, a number and its bytes for every token, and the version of the weights', async () => {
      const result = await generate(request());
      expect(result.ids.length).toBeGreaterThan(0);
      expect(result.logprobs.length).toBe(result.ids.length);
      expectBytes(result);
      expect(result.logprobKind).toBe(can.logprobs);
      expect(result.logprobs.every((value) => value <= 0 && Number.isFinite(value))).toBe(true);
      expect(result.weightVersions).toHaveLength(1);
      expect(result.weightVersions[0]).toMatchObject({ start: 0, end: result.ids.length });
    });

    it('gives back the bytes of any text it encodes', async () => {
      for (const text of [
        'plain',
        ' two  spaces ',
        'línea\nnueva\t',
        '数字 7',
        '👩‍🚀🌊',
        '{"a": [1, 2.5e-3]}',
        '\u0000\u0001',
      ]) {
        for (const special of [true, false]) {
          const encoded = await backend.tokenize(text, { special });
          expectBytes(encoded);
          expect(new TextDecoder().decode(encoded.bytes)).toBe(text);
        }
      }
      expect((await backend.tokenize('', { special: false })).ids).toHaveLength(0);
    });

    it('gives the bytes of ids, those of control tokens too', async (context) => {
      needs(context, 'decode');
      const decode = async (ids: Int32Array) => (await backend.decode?.(ids)) ?? expect.fail('It does not decode.');
      const encoded = await backend.tokenize('plain 数字 👩‍🚀', { special: false });
      const decoded = await decode(encoded.ids);
      expect(Array.from(decoded.bytes)).toEqual(Array.from(encoded.bytes));
      expect(Array.from(decoded.byteEnds)).toEqual(Array.from(encoded.byteEnds));
      const prompted = await decode(prompt);
      const rendered = await backend.applyTemplate([{ role: 'user', content: 'Count to three.' }], {
        addGenerationPrompt: true,
      });
      expect(new TextDecoder().decode(prompted.bytes)).toBe(rendered);
    });

    it('never lets plain text become a control token', async () => {
      // A control token of the template is one id with special on, and several with special off.
      const rendered = await backend.applyTemplate([{ role: 'user', content: 'x' }], { addGenerationPrompt: true });
      const markers = new Set(['<|im_end|>', '<tool_call>', ...(rendered.match(/<[^<>\s]+>/g) ?? [])]);
      for (const marker of markers) {
        const plain = await backend.tokenize(`a${marker}b`, { special: false });
        expect(new TextDecoder().decode(plain.bytes)).toBe(`a${marker}b`);
        const control = await backend.tokenize(marker, { special: true });
        if (control.ids.length === 1) expect(Array.from(plain.ids)).not.toContain(control.ids[0]);
      }
    });

    it('renders a longer conversation as an extension of the shorter one', async () => {
      const first = [{ role: 'user' as const, content: 'one' }];
      const longer = [
        ...first,
        { role: 'assistant' as const, content: 'two' },
        { role: 'user' as const, content: 'three' },
      ];
      // As the harness asks: some servers render nothing else.
      const short = await backend.applyTemplate(first, { addGenerationPrompt: true });
      const long = await backend.applyTemplate(longer, { addGenerationPrompt: true });
      expect(long.startsWith(short)).toBe(true);
      expect(long).toContain('three');
    });

    it('scores what it sampled with the numbers it gave while sampling', async (context) => {
      if (!teacher) needs(context, 'scoring');
      const scorer = can.canScore ? backend : await teacher?.();
      let compared = 0;
      for (const changes of [{}, { temperature: 0 }, { temperature: 0.7 }, { topK: 5 }, { topP: 0.8, minP: 0.01 }]) {
        const result = await generate(request(changes));
        if (result.logprobKind !== 'raw') continue;
        compared++;
        const [scored] = (await scorer?.getLogprobs([{ promptIds: prompt, completionIds: result.ids }])) ?? [];
        expect(scored?.logprobs).toHaveLength(result.ids.length);
        for (const [k, value] of (scored?.logprobs ?? []).entries())
          expect(Math.abs(value - (result.logprobs[k] ?? 0))).toBeLessThan(logprobTolerance);
      }
      context.skip(compared === 0 && can.logprobs !== 'raw', `its log-probabilities are not raw but ${can.logprobs}`);
      expect(compared).toBeGreaterThan(0);
    });

    it('agrees with another server of the same weights', async (context) => {
      if (!teacher) return context.skip('no other server of the same weights was given');
      needs(context, 'scoring');
      const { ids } = await generate(request({ seed: 11 }));
      const pairs = [{ promptIds: prompt, completionIds: ids }];
      const [ours] = await backend.getLogprobs(pairs);
      const [theirs] = await (await teacher()).getLogprobs(pairs);
      for (const [k, value] of (ours?.logprobs ?? []).entries())
        expect(Math.abs(value - (theirs?.logprobs[k] ?? 0))).toBeLessThan(logprobTolerance);
    });

    it('scores tokens up to the last that its context holds', async (context) => {
      needs(context, 'scoring');
      context.skip(
        can.contextLength > LARGEST_FILLED,
        `the context holds ${can.contextLength} tokens, and filling more than ${LARGEST_FILLED} takes long`,
      );
      const all = Int32Array.from({ length: can.contextLength }, (_, k) => prompt[k % prompt.length] as number);
      const promptIds = all.slice(0, -4);
      const score = async (by: Pick<InferenceBackend, 'getLogprobs'>, completionIds: Int32Array) => {
        const [scores] = await by.getLogprobs([{ promptIds, completionIds }], { alternatives: 2 });
        if (!scores) throw new Error('There are no scores.');
        return scores;
      };
      const full = await score(backend, all.slice(-4));
      const before = await score(backend, all.slice(-4, -1));
      expect(full.logprobs).toHaveLength(4);
      expect(full.alternatives?.ids).toHaveLength(8);
      for (const [k, value] of before.logprobs.entries())
        expect(Math.abs(value - (full.logprobs[k] ?? 0))).toBeLessThan(logprobTolerance);
      expect(full.alternatives?.ids.slice(0, 6)).toEqual(before.alternatives?.ids);
      expect(full.logprobs[3]).toBeLessThanOrEqual((full.alternatives?.logprobs[6] ?? 0) + logprobTolerance);
      if (!teacher) return;
      const taught = await score(await teacher(), all.slice(-4));
      expect(Math.abs((taught.logprobs[3] ?? 0) - (full.logprobs[3] ?? 1))).toBeLessThan(logprobTolerance);
    });

    it('gives the likeliest tokens and the entropy of each position beside the scores', async (context) => {
      needs(context, 'scoring');
      const { ids } = await generate(request({ temperature: 0, maxTokens: 6 }));
      const [scored] = await backend.getLogprobs([{ promptIds: prompt, completionIds: ids }], {
        alternatives: 3,
        entropy: can.entropy,
      });
      expect(scored?.alternatives?.k).toBe(3);
      expect(scored?.alternatives?.ids).toHaveLength(3 * ids.length);
      ids.forEach((id, k) => {
        // Sampled greedily: the token is the likeliest, and its number is the same in both places.
        expect(scored?.alternatives?.ids[3 * k]).toBe(id);
        const own = scored?.logprobs[k] ?? 0;
        expect(Math.abs((scored?.alternatives?.logprobs[3 * k] ?? 0) - own)).toBeLessThan(logprobTolerance);
        expect(scored?.alternatives?.logprobs[3 * k + 1]).toBeLessThanOrEqual(own + logprobTolerance);
        if (can.entropy) expect(scored?.entropy?.[k]).toBeGreaterThan(-1e-3);
      });
      const [several] = await backend.getLogprobs([{ promptIds: prompt, completionIds: ids }]);
      expect(several).toMatchObject({ alternatives: null, entropy: null });
    });

    it('samples the same tokens for the same seed, also beside other requests', async (context) => {
      needs(context, 'seed');
      const alone = await generate(request({ seed: 7 }));
      const others = [1, 2, 3].map((seed) => request({ seed }, `other ${seed}`));
      const settled = await backend.generate([request({ seed: 7 }, 'again'), ...others]);
      const beside = settled[0];
      expect(beside?.status === 'fulfilled' && Array.from(beside.value.ids)).toEqual(Array.from(alone.ids));
    });

    it.runIf(samples)('samples other tokens for another seed', async () => {
      const texts = await Promise.all([1, 2, 3, 4].map((seed) => generate(request({ seed }))));
      expect(new Set(texts.map((result) => result.ids.join())).size).toBeGreaterThan(1);
    });

    it('keeps the tokens of a stop string and names it', async (context) => {
      const free = await generate(request({ temperature: 0, maxTokens: 40 }));
      const text = new TextDecoder('utf-8', { fatal: false }).decode(free.bytes);
      // Any run of ordinary characters the model does write; it may begin and end inside tokens.
      const found = /[\x21-\x7e]{2,4}/.exec(text.slice(1));
      if (!found) return context.skip(`the model wrote no two ordinary characters: ${JSON.stringify(text)}`);
      const stopped = await generate(request({ temperature: 0, maxTokens: 40, stop: ['\u0007never\u0007', found[0]] }));
      expect(stopped).toMatchObject({ finishReason: 'stop', stopString: found[0] });
      expect(Array.from(stopped.ids)).toEqual(Array.from(free.ids.slice(0, stopped.ids.length)));
      const written = new TextDecoder('utf-8', { fatal: false }).decode(stopped.bytes);
      const lastStart = stopped.byteEnds[stopped.ids.length - 2] ?? 0;
      expect(written).toContain(found[0]);
      expect(new TextDecoder('utf-8', { fatal: false }).decode(stopped.bytes.slice(0, lastStart))).not.toContain(
        found[0],
      );
    });

    it('finishes with "length" when there is no more room, and refuses a prompt that fills the context', async () => {
      const short = await generate(request({ maxTokens: 2, seed: 3 }));
      expect(short.ids.length).toBeLessThanOrEqual(2);
      const filler = (await backend.tokenize('a b c d ', { special: false })).ids;
      const long = new Int32Array(can.contextLength).map((_, k) => filler[k % filler.length] ?? 0);
      const [refused] = await backend.generate([{ ...request(), promptIds: long }]);
      expect(refused).toMatchObject({ status: 'rejected' });
      const reason = refused?.status === 'rejected' ? refused.reason : null;
      expect(reason).toBeInstanceOf(Invalid);
      expect(reason.message).toContain(can.contextLength.toLocaleString('en').replace(',', ''));
      const almost = await generate({ ...request({ maxTokens: 50 }), promptIds: long.slice(0, -3) });
      expect(almost.ids.length).toBeLessThanOrEqual(3);
      expect(['length', 'eos']).toContain(almost.finishReason);
    });

    it('refuses ids that no vocabulary has', async () => {
      for (const wrong of [-1, 2_000_000_000]) {
        const [settled] = await backend.generate([{ ...request(), promptIds: Int32Array.of(...prompt, wrong) }]);
        expect(settled?.status === 'rejected' && settled.reason).toBeInstanceOf(Invalid);
      }
      expect((await generate(request())).ids.length).toBeGreaterThan(0);
    });

    it('settles each request of a batch on its own', async () => {
      const settled = await backend.generate([
        request(),
        { ...request(), promptIds: new Int32Array(0) },
        request({}, 'two'),
      ]);
      expect(settled.map((one) => one.status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
    });

    it('stops a request on abort and serves others after it', async () => {
      const stop = new AbortController();
      const running = backend.generate([{ ...request({ maxTokens: 100_000, temperature: 0 }), signal: stop.signal }]);
      stop.abort();
      const [settled] = await running;
      // A very quick backend may be done before; a stopped one says so.
      if (settled?.status === 'rejected') expect(settled.reason).toBeInstanceOf(Cancelled);
      const already = await backend.generate([{ ...request(), signal: AbortSignal.abort() }]);
      expect(already[0]).toMatchObject({ status: 'rejected' });
      expect((await generate(request())).ids.length).toBeGreaterThan(0);
    });

    it('takes more requests at once than it has sequences', async () => {
      const many = Array.from({ length: 2 * can.maxInFlight + 3 }, (_, k) =>
        request({ maxTokens: 3, seed: k }, `many ${k}`),
      );
      const settled = await backend.generate(many);
      expect(settled.every((one) => one.status === 'fulfilled')).toBe(true);
    });

    const written = async (constraint: Constraint, maxTokens: number) => {
      const result = await generate(request({ constraint, maxTokens }));
      // An engine that is told to end by the end-of-turn token samples it; it is no part of the text.
      const end = result.endTokenSampled ? (result.byteEnds[result.ids.length - 2] ?? 0) : result.bytes.length;
      expect(['stop', 'eos']).toContain(result.finishReason);
      return new TextDecoder().decode(result.bytes.subarray(0, end));
    };
    const underConstraint: Record<ConstraintKind, () => Promise<void>> = {
      choice: async () => {
        expect(['zqx', 'zq']).toContain(await written({ kind: 'choice', choices: ['zqx', 'zq'] }, 20));
      },
      regex: async () => {
        expect(await written({ kind: 'regex', pattern: '[ab]{2}-(x|yz)' }, 20)).toMatch(/^[ab]{2}-(x|yz)$/);
      },
      grammar: async () => {
        const constraint = { kind: 'grammar' as const, grammar: 'root ::= "Answer: " ("yes" | "no") "\\n"' };
        expect(await written(constraint, 60)).toMatch(/^Answer: (yes|no)\n$/);
        const broken = { kind: 'grammar' as const, grammar: 'root ::= (' };
        await expect(generate(request({ constraint: broken }))).rejects.toBeInstanceOf(Invalid);
      },
      json_schema: async () => {
        const schema = {
          type: 'object',
          properties: { move: { enum: ['up', 'down'] }, far: { type: 'boolean' } },
          required: ['move', 'far'],
          additionalProperties: false,
        };
        const value = JSON.parse(await written({ kind: 'json_schema', schema }, 200));
        expect(Object.keys(value)).toEqual(['move', 'far']);
        const cut = await generate(request({ constraint: { kind: 'json_schema', schema }, maxTokens: 3 }));
        expect(cut).toMatchObject({ finishReason: 'length', endTokenSampled: false });
      },
    };

    it.for(CONSTRAINT_KINDS)(
      'writes only what a constraint allows, and stops when that is complete: %s',
      async (kind, context) => {
        needs(context, kind);
        await underConstraint[kind]();
      },
    );

    it('moves the version with new weights, and keeps it with weights that cannot be loaded', async (context) => {
      if (!weights) return context.skip('no new weights were given');
      const before = await backend.weightVersion();
      const old = await generate(request({ temperature: 0 }));
      await expect(backend.updateWeights({ source: weights.broken, version: 'broken' })).rejects.toThrow();
      expect(await backend.weightVersion()).toBe(before);
      expect(Array.from((await generate(request({ temperature: 0 }))).ids)).toEqual(Array.from(old.ids));
      await backend.updateWeights({ source: weights.next, version: 'next' });
      expect(await backend.weightVersion()).toBe('next');
      const fresh = await generate(request({ temperature: 0 }));
      expect(fresh.weightVersions).toEqual([{ version: 'next', start: 0, end: fresh.ids.length }]);
      // The same prompt again: were the prefix cache stale, its numbers would still be those of the old weights.
      expect(fresh.logprobs[0]).not.toBe(old.logprobs[0]);
      if (!can.canScore) return;
      const [scored] = await backend.getLogprobs([{ promptIds: prompt, completionIds: fresh.ids }]);
      expect(Math.abs((scored?.logprobs[0] ?? 0) - (fresh.logprobs[0] ?? 1))).toBeLessThan(logprobTolerance);
    });

    it('refuses options that mean nothing', async () => {
      for (const changes of [
        { maxTokens: 0 },
        { temperature: -1 },
        { temperature: Number.NaN },
        { topP: 0 },
        { topK: 1.5 },
      ])
        await expect(backend.generate([request(changes)])).rejects.toBeInstanceOf(Invalid);
    });
  });
}

/** Every token's bytes lie end to end: the ends grow and the last one is the length. */
function expectBytes(encoded: { ids: Int32Array; bytes: Uint8Array; byteEnds: Uint32Array }): void {
  expect(encoded.byteEnds.length).toBe(encoded.ids.length);
  let last = 0;
  for (const end of encoded.byteEnds) {
    expect(end).toBeGreaterThanOrEqual(last);
    last = end;
  }
  expect(last).toBe(encoded.bytes.length);
}
