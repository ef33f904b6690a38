/** What is asked of an SGLang server and what is read from its answers, on a twin. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Invalid, Unavailable } from '../../core/errors';
import type { Json, JsonObject } from '../../core/vocabulary';
import type { Constraint, SamplingOptions } from '../backend';
import { errorOf, startCannedServer } from '../testing/canned-server';
import { PLAIN } from '../testing/conformance';
import { type SglangTwinOptions, startSglangTwin } from '../testing/twin/sglang';
import type { Twin } from '../testing/twin/twin';
import { TwinFixture } from '../testing/twin/twin-fixture';
import { createHttpClient, type HttpClient } from './http-client';
import type { ServerFacts } from './protocol';
import { sglang } from './sglang';
import { readTriples } from './sglang-generate';

const fixture = new TwinFixture();
let twin: Twin;
let http: HttpClient;
let facts: ServerFacts;

beforeAll(async () => {
  await fixture.open();
  twin = await startSglangTwin({ modelPath: fixture.tiny });
  http = createHttpClient({ backend: 'twin', url: twin.url });
  facts = await sglang.describe(http, { model: null });
});
afterAll(async () => {
  await http.close();
  await twin.close();
  await fixture.close();
});

const promptIds = Int32Array.of(70, 71, 72);
const generate = (changes: Partial<SamplingOptions> = {}) => {
  const call = {
    promptIds,
    options: { ...PLAIN, maxTokens: 6, ...changes },
    requestId: 'abcdefgh-00000001',
    affinityKey: 'k',
  };
  return sglang.generate(http, facts, call);
};
const lastGenerate = () =>
  twin.log.filter(({ path }) => path === '/generate').at(-1)?.body as { sampling_params: Record<string, unknown> };

async function described(options: Partial<SglangTwinOptions>, wanted: string | null = null): Promise<ServerFacts> {
  const other = await startSglangTwin({ modelPath: fixture.tiny, ...options });
  const client = createHttpClient({ backend: 'other', url: other.url });
  try {
    return await sglang.describe(client, { model: wanted });
  } finally {
    await client.close();
    await other.close();
  }
}

describe('what SGLang is', () => {
  it('is told by its own routes', async () => {
    expect(facts).toMatchObject({ modelName: 'tiny.gguf', contextLength: 1024, version: '0.5.20', logprobs: 'raw' });
    expect([...facts.routes].sort()).toEqual(['load', 'pause', 'seed', 'tokenize', 'weight-label']);
    expect([...(await described({ deterministic: false })).routes]).not.toContain('seed');
  });

  it('is another after a restart, and the same after an update', async () => {
    const other = await startSglangTwin({ modelPath: fixture.tiny });
    const client = createHttpClient({ backend: 'other', url: other.url });
    const first = await sglang.describe(client, { model: 'tiny.gguf' });
    await client.postJson('/update_weights_from_disk', { model_path: fixture.next, weight_version: 'v2' });
    const updated = await sglang.describe(client, { model: 'tiny.gguf' });
    expect(updated.fingerprint).toBe(first.fingerprint);
    await other.kill();
    await other.restart();
    expect((await sglang.describe(client, { model: 'tiny.gguf' })).fingerprint).not.toBe(first.fingerprint);
    await client.close();
    await other.close();
  });
});

describe('a generation on SGLang', () => {
  it('sends every sampling field by the names that the server knows', async () => {
    await generate({ topK: 5, topP: 0.9, minP: 0.01, temperature: 0.7, seed: 2 ** 31 + 5, stop: ['n:'] });
    expect(lastGenerate()).toMatchObject({
      rid: 'abcdefgh-00000001',
      input_ids: [70, 71, 72],
      return_logprob: true,
      stream: false,
      sampling_params: {
        max_new_tokens: 6,
        temperature: 0.7,
        top_p: 0.9,
        top_k: 5,
        min_p: 0.01,
        sampling_seed: 5,
        repetition_penalty: 1,
        stop: ['n:'],
      },
    });
    await generate();
    expect(lastGenerate().sampling_params).toMatchObject({ top_k: -1 });
  });

  it('sends no seed to a server that would not heed it', async () => {
    const deaf = { ...facts, routes: new Set([...facts.routes].filter((route) => route !== 'seed')) };
    await sglang.generate(http, deaf, { promptIds, options: PLAIN, requestId: 'r', affinityKey: 'k' });
    expect(Object.keys(lastGenerate().sampling_params)).not.toContain('sampling_seed');
  });

  it('has one field for each kind of constraint', async () => {
    const kinds: [Constraint, Record<string, unknown>][] = [
      [{ kind: 'json_schema', schema: { type: 'boolean' } }, { json_schema: '{"type":"boolean"}' }],
      [{ kind: 'regex', pattern: '[ab]' }, { regex: '[ab]' }],
      [{ kind: 'grammar', grammar: 'root ::= "a"' }, { ebnf: 'root ::= "a"' }],
      [{ kind: 'choice', choices: ['a', 'b'] }, { ebnf: expect.stringContaining('root ::=') }],
    ];
    for (const [constraint, field] of kinds) {
      const reply = await generate({ constraint });
      expect(lastGenerate().sampling_params).toMatchObject(field);
      expect(reply.logprobKind).toBe('constrained');
    }
  });

  it('reads how it ended', async () => {
    expect(await generate({ maxTokens: 2 })).toMatchObject({
      finish: 'length',
      endTokenSampled: false,
      stopString: null,
    });
    const ended = await generate({ constraint: { kind: 'grammar', grammar: 'root ::= "a"' } });
    expect(ended).toMatchObject({ finish: 'eos', endTokenSampled: true, promptTokens: 3, weightVersions: 'default' });
    const text = await sglang.detokenize?.(http, facts, (await generate({ temperature: 0 })).ids);
    const stopped = await generate({ temperature: 0, stop: [text?.at(2) ?? ''] });
    expect(stopped).toMatchObject({ finish: 'stop', stopString: text?.at(2) });
  });

  /** What is read of a reply with these ids and fields; the model's end token is 2. */
  async function readReply(ids: readonly number[], meta: JsonObject = {}) {
    const body = {
      output_ids: [...ids],
      meta_info: {
        finish_reason: { type: 'stop', matched: 2 },
        output_token_logprobs: ids.map((id) => [-1, id, null]),
        ...meta,
      },
    };
    const server = await startCannedServer({ 'POST /generate': { body } });
    const client = createHttpClient({ backend: 'far', url: server.url });
    try {
      return await sglang.generate(client, { ...facts }, call);
    } finally {
      await client.close();
      await server.close();
    }
  }
  const call = { promptIds, options: PLAIN, requestId: 'r', affinityKey: 'k' };

  it('tells an end token that the engine gave from one that it kept to itself', async () => {
    for (const [ids, endTokenSampled] of [
      [[80, 2], true],
      [[2, 80], false],
      [[], false],
    ] as const) {
      const raw = await readReply(ids);
      expect([...raw.ids]).toEqual([...ids]);
      expect(raw).toMatchObject({ finish: 'eos', endTokenSampled, stopString: null });
    }
  });

  it('has the weights of each token where the server says it of all of them, else its label', async () => {
    const spans = (...ends: number[]) =>
      ends.map((end, k) => ({ version: `v${k}`, start: k === 0 ? 0 : (ends[k - 1] ?? 0), end }));
    const versionsOf = async (weight_versions: Json) =>
      (await readReply([80, 81, 2], { weight_versions, weight_version: 'label' })).weightVersions;
    expect(await versionsOf(spans(1, 3))).toEqual(spans(1, 3));
    const [first, second] = spans(1, 3);
    for (const half of [spans(2), spans(1, 4), [{ ...first, end: 2 }, second], [second], [], [{ ...first, end: '3' }]])
      expect(await versionsOf(half as Json)).toBe('label');
    expect((await readReply([80, 2])).weightVersions).toBeNull();
  });

  it('does not take a reply that ended for no reason, or for one that is not known, for a whole one', async () => {
    for (const finish_reason of [null, {}, { type: null }, { type: 'tired' }, 'stop'] as Json[])
      await expect(readReply([80], { finish_reason })).rejects.toThrow('it ended for a reason that is not known here');
  });

  it('has raw numbers at temperature 1 and greedy only, and without a constraint', async () => {
    const constraint: Constraint = { kind: 'choice', choices: ['a', 'b'] };
    for (const [temperature, kind] of [
      [1, 'raw'],
      [0, 'raw'],
      [0.6, 'sampled'],
      [1.5, 'sampled'],
    ] as const) {
      const { ids, logprobs, logprobKind } = await generate({ temperature });
      expect(logprobKind).toBe(kind);
      expect((await generate({ temperature, constraint })).logprobKind).toBe('constrained');
      const call = { promptIds, completionIds: ids, alternatives: 0, entropy: false };
      const raw = await sglang.score?.(http, facts, call);
      const apart = Math.max(...logprobs.map((value, k) => Math.abs(value - (raw?.logprobs[k] ?? Number.NaN))));
      if (kind === 'raw') expect(apart).toBeLessThan(1e-3);
      else expect(apart).toBeGreaterThan(1e-2);
    }
  });

  it('refuses numbers that are of other tokens', () => {
    const ids = Int32Array.of(5, 6);
    const read = (value: unknown) => () => readTriples(http, 'output_token_logprobs', value, ids);
    expect(
      Array.from(
        read([
          [-1, 5, null],
          [null, 6, null],
        ])(),
      ),
    ).toEqual([-1, Number.NaN]);
    expect(read([[-1, 5, null]])).toThrow(/2 token ids but 1 log-probabilities/);
    expect(
      read([
        [-1, 5, null],
        [-1, 7, null],
      ]),
    ).toThrow(/token 1 is of another token/);
    expect(read(null)).toThrow(Invalid);
  });
});

describe('an answer of SGLang with a bare NaN', () => {
  it('is refused by server, request and what was found, and nothing of it is used', async () => {
    const triples = '[[-0.5, 80, null], [NaN, 81, null]]';
    const meta = `{"finish_reason": {"type": "length"}, "prompt_tokens": 3, "cached_tokens": 0`;
    const server = await startCannedServer({
      'POST /generate': {
        body: `{"output_ids": [80, 81], "meta_info": ${meta}, "output_token_logprobs": ${triples}}}`,
      },
    });
    const client = createHttpClient({ backend: 'far', url: server.url });
    const before = { ...facts, lastPrompt: null };
    const call = { promptIds, options: PLAIN, requestId: 'r', affinityKey: 'k' };
    const error = await errorOf(sglang.generate(client, before, call));
    expect(error).toBeInstanceOf(Invalid);
    expect(error.message).toContain(
      `The backend far (${server.url}) answered POST /generate with NaN in place of a number; nothing of it is used.`,
    );
    expect(before.lastPrompt).toBeNull();
    expect(server.asked.map(({ route }) => route)).toEqual(['POST /generate']);
    await client.close();
    await server.close();
  });
});

describe('scores on SGLang', () => {
  it('are those of the completion, with the likeliest beside', async () => {
    const completionIds = Int32Array.of(80, 81, 82);
    const scores = await sglang.score?.(http, facts, { promptIds, completionIds, alternatives: 2, entropy: false });
    const teacher = await fixture.teacher(fixture.tiny);
    const [taught] = await teacher.getLogprobs([{ promptIds, completionIds }], { alternatives: 2 });
    expect(scores?.logprobs).toHaveLength(3);
    for (const [k, value] of (scores?.logprobs ?? []).entries()) expect(value).toBeCloseTo(taught?.logprobs[k] ?? 0, 3);
    expect(scores?.alternatives?.ids).toEqual(taught?.alternatives?.ids);
    expect(lastGenerate()).toMatchObject({ logprob_start_len: 2, sampling_params: { max_new_tokens: 0 } });
  });
});

describe('a scoring that SGLang stopped', () => {
  it('has no numbers, and is told from one that is broken', async () => {
    const call = { promptIds, completionIds: Int32Array.of(80, 81), alternatives: 0, entropy: false };
    await http.postJson('/pause_generation', { mode: 'retract' });
    const scores = sglang.score?.(http, facts, call);
    while (twin.counters().waiting === 0) await new Promise((settle) => setTimeout(settle, 5));
    await http.postJson('/pause_generation', { mode: 'abort' });
    expect(await scores).toBeNull();
    await http.postJson('/continue_generation', {});
    expect((await sglang.score?.(http, facts, call))?.logprobs).toHaveLength(2);
  });
});

describe('text on SGLang', () => {
  it('is rendered by the server, as ids, up to where an answer begins', async () => {
    const messages = [{ role: 'user' as const, content: 'hi' }];
    const tools = [{ name: 'probe', description: '', parameters: { type: 'object' } }];
    const ids = await sglang.applyTemplate?.(http, facts, messages, { addGenerationPrompt: true, tools });
    expect(ids).toBeInstanceOf(Int32Array);
    expect(twin.log.at(-1)?.body).toMatchObject({ messages, tools: [{ type: 'function', function: tools[0] }] });
    await expect(sglang.applyTemplate?.(http, facts, messages, { addGenerationPrompt: false })).rejects.toThrow(
      'give the folder',
    );
  });

  it('is tokenised without what the server puts before every text', async () => {
    const prefixed = { ...facts, textPrefix: await sglang.tokenize?.(http, facts, 'a', true) } as ServerFacts;
    expect(await sglang.tokenize?.(http, prefixed, 'abc', true)).toEqual(
      await sglang.tokenize?.(http, facts, 'bc', true),
    );
  });
});

it('names figures that SGLang has', async () => {
  const { metrics } = sglang;
  const { body } = await http.text('GET', metrics?.route ?? '');
  const { running, waiting, timeToFirstToken, timePerOutputToken, generatedTokens, promptTokens, kvCacheUse } =
    metrics ?? {};
  for (const names of [
    running,
    waiting,
    timeToFirstToken,
    timePerOutputToken,
    generatedTokens,
    promptTokens,
    kvCacheUse,
  ])
    expect(names?.some((name) => body.includes(name))).toBe(true);
  expect(body).toContain('sglang:cache_hit_rate');
  expect(await sglang.health(http)).toEqual({ ok: true, message: `The backend twin (${twin.url}) answers.` });
});

describe('the prefix cache of SGLang', () => {
  it('is empty when the server says of a prompt that none of it came from there, and not by status 200', async () => {
    const server = await startCannedServer({
      'POST /continue_generation': { body: {} },
      'POST /pause_generation': { body: {} },
    });
    const client = createHttpClient({ backend: 'far', url: server.url });
    const flush = (cached: JsonObject, status = 200) => {
      server.handlers['POST /flush_cache'] = { status, body: 'Cache flushed.' };
      server.handlers['POST /generate'] = { body: { meta_info: cached } };
      return sglang.weights(facts)?.flush(client);
    };
    expect(facts).toMatchObject({ lastPrompt: promptIds });
    await flush({ cached_tokens: 0 });
    for (const [cached, status, says] of [
      [{}, 200, 'an unknown number of 3 tokens of a prompt came from it'],
      [{ cached_tokens: null }, 200, 'an unknown number'],
      [{ cached_tokens: 2 }, 200, '2 of 3 tokens of a prompt came from it'],
      [{ cached_tokens: 0 }, 400, 'POST /flush_cache was refused'],
    ] as const) {
      const error = await errorOf(flush(cached, status));
      expect(error).toBeInstanceOf(Unavailable);
      expect(error.message).toContain(says);
    }
    await client.close();
    await server.close();
  });
});

it('asks for a load once, also where the connection is closed before an answer', async () => {
  const server = await startCannedServer({ 'POST /update_weights_from_disk': 'closed' });
  const client = createHttpClient({ backend: 'far', url: server.url });
  const load = sglang.weights(facts)?.load(client, { kind: 'checkpoint', path: '/step-8' }, 'v8');
  expect(await errorOf(load)).toBeInstanceOf(Unavailable);
  expect(server.asked).toHaveLength(1);
  await client.close();
  await server.close();
});

describe('what SGLang says of a load that failed', () => {
  it('is shown without the key that it repeats, and without what moves a cursor', async () => {
    const key = 'sk-Secret/42';
    const server = await startCannedServer({
      'POST /update_weights_from_disk': { body: { success: false, message: `no ${key}: \u001b[31mnot here.` } },
    });
    const client = createHttpClient({ backend: 'far', url: server.url, key });
    const load = sglang.weights(facts)?.load(client, { kind: 'checkpoint', path: '/step-8' }, 'v8');
    expect((await errorOf(load)).message).toMatch(/could not load \/step-8: no \[key\]: \[31mnot here\.$/);
    await client.close();
    await server.close();
  });
});
