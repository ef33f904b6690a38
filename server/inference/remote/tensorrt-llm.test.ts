/** What is asked of a trtllm-serve server and what is read from its answers, on a twin. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Unavailable } from '../../core/errors';
import type { Json, JsonObject } from '../../core/vocabulary';
import type { Constraint, SamplingOptions } from '../backend';
import { errorOf, startCannedServer } from '../testing/canned-server';
import { PLAIN } from '../testing/conformance';
import { startTensorrtTwin, type TensorrtTwinOptions } from '../testing/twin/tensorrt';
import type { Twin } from '../testing/twin/twin';
import { TwinFixture } from '../testing/twin/twin-fixture';
import { createHttpClient, type HttpClient } from './http-client';
import type { ServerFacts } from './protocol';
import { tensorrtLlm, tensorrtLlmWithControl } from './tensorrt-llm';

const fixture = new TwinFixture();
let twin: Twin;
let http: HttpClient;
let facts: ServerFacts;

beforeAll(async () => {
  await fixture.open();
  twin = await startTensorrtTwin({ modelPath: fixture.tiny });
  http = createHttpClient({ backend: 'twin', url: twin.url });
  facts = await tensorrtLlm.describe(http, { model: null });
});
afterAll(async () => {
  await http.close();
  await twin.close();
  await fixture.close();
});

const generate = (changes: Partial<SamplingOptions> = {}, on = facts, client = http) => {
  const options = { ...PLAIN, maxTokens: 6, ...changes };
  return tensorrtLlm.generate(client, on, {
    promptIds: Int32Array.of(70, 71, 72),
    options,
    requestId: 'r',
    affinityKey: 'k',
  });
};
const lastBody = () => twin.log.at(-1)?.body as Record<string, never>;

async function withTwin(
  options: Partial<TensorrtTwinOptions>,
  work: (client: HttpClient, other: Twin) => Promise<void>,
): Promise<void> {
  const other = await startTensorrtTwin({ modelPath: fixture.tiny, ...options });
  const client = createHttpClient({ backend: 'other', url: other.url });
  try {
    await work(client, other);
  } finally {
    await client.close();
    await other.close();
  }
}

describe('what trtllm-serve is', () => {
  it('is told by its own routes', () => {
    expect(facts).toMatchObject({
      modelName: 'tiny',
      contextLength: 1024,
      version: '1.2.1',
      logprobs: 'raw',
      tempered: false,
    });
    expect(facts.routes.size).toBe(0);
  });

  it('has the context length that a person gave where the server does not tell, else 0', () =>
    withTwin({ serverInfo: false }, async (client) => {
      expect((await tensorrtLlm.describe(client, { model: null })).contextLength).toBe(0);
      expect((await tensorrtLlm.describe(client, { model: null, contextLength: 512 })).contextLength).toBe(512);
    }));

  it('is another after a restart', () =>
    withTwin({}, async (client, other) => {
      const first = await tensorrtLlm.describe(client, { model: 'tiny' });
      expect((await tensorrtLlm.describe(client, { model: 'tiny' })).fingerprint).toBe(first.fingerprint);
      await other.kill();
      await other.restart();
      expect((await tensorrtLlm.describe(client, { model: 'tiny' })).fingerprint).not.toBe(first.fingerprint);
    }));

  it('divides its numbers by the temperature, or does not: tried, not believed', () =>
    withTwin({ tempered: true }, async (client) => {
      const tempered = await tensorrtLlm.describe(client, { model: null });
      expect(tempered).toMatchObject({ tempered: true });
      expect((await generate({ temperature: 0.6 }, tempered, client)).logprobKind).toBe('sampled');
      expect((await generate({}, tempered, client)).logprobKind).toBe('raw');
      expect((await generate({ temperature: 0.6 })).logprobKind).toBe('raw');
    }));
});

describe('a generation on trtllm-serve', () => {
  it('sends only fields that the server knows', async () => {
    await generate({ topK: 5, seed: 2 ** 31 + 5, stop: ['zq'] });
    expect(lastBody()).toMatchObject({
      model: 'tiny',
      prompt: [70, 71, 72],
      detokenize: false,
      logprobs: 1,
      top_k: 5,
      seed: 5,
      include_stop_str_in_output: true,
      stop: ['zq'],
    });
    // The twin refuses a field that it does not know, as the server does.
    expect(twin.log.at(-1)?.status).toBe(200);
  });

  it('has one format for each kind of constraint', async () => {
    const kinds: [Constraint, Record<string, unknown>][] = [
      [
        { kind: 'json_schema', schema: { type: 'boolean' } },
        { type: 'json', schema: { type: 'boolean' } },
      ],
      [
        { kind: 'regex', pattern: '[ab]' },
        { type: 'regex', regex: '[ab]' },
      ],
      [
        { kind: 'grammar', grammar: 'root ::= "a"' },
        { type: 'ebnf', ebnf: 'root ::= "a"' },
      ],
      [
        { kind: 'choice', choices: ['a', 'b'] },
        { type: 'ebnf', ebnf: expect.stringContaining('root ::=') },
      ],
    ];
    for (const [constraint, format] of kinds) {
      expect((await generate({ constraint })).logprobKind).toBe('constrained');
      expect(lastBody().response_format).toEqual(format);
    }
  });

  it('reads how it ended', async () => {
    expect(await generate({ maxTokens: 2 })).toMatchObject({ finish: 'length', endTokenSampled: false });
    const ended = await generate({ constraint: { kind: 'grammar', grammar: 'root ::= "a"' } });
    expect(ended).toMatchObject({ finish: 'eos', endTokenSampled: true, promptTokens: 3, weightVersions: null });
    const text = twin.engine.detokenize([...(await generate({ temperature: 0 })).ids], false);
    expect(await generate({ temperature: 0, stop: [text.at(2) ?? ''] })).toMatchObject({
      finish: 'stop',
      stopString: text.at(2),
    });
  });

  /** What is read of a reply with one completion of these fields. */
  async function readReply(choice: JsonObject) {
    const server = await startCannedServer({ 'POST /v1/completions': { body: { choices: [choice] } } });
    const client = createHttpClient({ backend: 'far', url: server.url });
    try {
      return await generate({}, { ...facts }, client);
    } finally {
      await client.close();
      await server.close();
    }
  }
  const ended = (tokens: string[] | null, token_ids = [80, 2]) => ({
    token_ids,
    logprobs: { tokens, token_logprobs: token_ids.map(() => -1) },
    finish_reason: 'stop',
    stop_reason: null,
  });

  it('tells an end token among the ids by its text: some engines keep it to themselves', async () => {
    for (const [tokens, endTokenSampled] of [
      [['a', ''], true],
      [['a', '<|im_end|>'], true],
      [['<|im_end|>', 'a'], false],
      [['a', 'b'], false],
      // Where it does not say.
      [null, false],
    ] as const)
      expect(await readReply(ended(tokens && [...tokens]))).toMatchObject({ finish: 'eos', endTokenSampled });
    expect(await readReply(ended([], []))).toMatchObject({ finish: 'eos', endTokenSampled: false });
  });

  it('takes nothing of a reply that ended for no known reason, or with more or fewer numbers than ids', async () => {
    const whole = ended(['a', '']);
    for (const finish_reason of [null, '', 'tired', 7])
      await expect(readReply({ ...whole, finish_reason })).rejects.toThrow('a reason that is not known here');
    for (const token_logprobs of [[-1], [-1, -1, -1], null])
      await expect(readReply({ ...whole, logprobs: { token_logprobs } })).rejects.toThrow(
        /2 token ids but (?:1|3|no) log-probabilities/,
      );
    for (const token_ids of [null, [80, '2'], [80, -1]])
      await expect(readReply({ ...whole, token_ids })).rejects.toThrow('it has no token ids');
  });

  it('says what a server without guided decoding says', () =>
    withTwin({ guided: false }, async (client) => {
      const plain = await tensorrtLlm.describe(client, { model: null });
      const constrained = generate({ constraint: { kind: 'choice', choices: ['a'] } }, plain, client);
      await expect(constrained).rejects.toThrow('Guided decoding is not enabled');
    }));
});

it('has routes for new weights only with a control key on both sides', () =>
  withTwin({ controlKey: 'c' }, async (client) => {
    const controlled = await tensorrtLlm.describe(client, { model: null });
    expect([...controlled.routes]).toEqual(['control']);
    expect(tensorrtLlm.weights(controlled)).toBeNull();
    expect(tensorrtLlmWithControl('c').weights(controlled)).toMatchObject({ sources: ['external'], keepsLabel: false });
    expect(tensorrtLlmWithControl('c').weights(facts)).toBeNull();
  }));

describe('the prefix cache of trtllm-serve', () => {
  it('is empty when the server says of a prompt that none of it came from there', async () => {
    const server = await startCannedServer({
      'POST /release_memory': { body: {} },
      'POST /resume_memory': { body: {} },
    });
    const client = createHttpClient({ backend: 'far', url: server.url });
    const flush = (usage: JsonObject, lastPrompt: Int32Array | null) => {
      server.handlers['POST /v1/completions'] = { body: { choices: [], usage } };
      const own = { ...facts, lastPrompt, routes: new Set(['control']) };
      return tensorrtLlmWithControl('c').weights(own)?.flush(client);
    };
    const cached = (cached_tokens: Json) => ({ prompt_tokens_details: { cached_tokens } });
    const last = Int32Array.of(70, 71, 72);
    await flush(cached(0), last);
    // What was read last may have left the cache since, and would say nothing: it is read once more.
    const routes = ['POST /v1/completions', 'POST /release_memory', 'POST /resume_memory', 'POST /v1/completions'];
    expect(server.asked.map(({ route }) => route)).toEqual(routes);
    for (const usage of [{}, { prompt_tokens_details: null }, cached(null)] as JsonObject[])
      expect((await errorOf(flush(usage, last))).message).toContain('does not say whether its prefix cache is empty');
    expect((await errorOf(flush(cached(2), last))).message).toContain('took 2 of 3 tokens of a prompt from it');
    // Of a studio that was started again nothing is known to have been read.
    server.asked.length = 0;
    await flush(cached(0), null);
    expect(server.asked.map(({ route }) => route)).toEqual(routes);
    expect(server.asked[0]?.body).toMatchObject({ prompt: { length: 256 } });
    expect(server.asked[3]?.body).toEqual(server.asked[0]?.body);
    // Memory that is given up twice is another thing than once.
    server.asked.length = 0;
    server.handlers['POST /release_memory'] = 'closed';
    expect(await errorOf(flush(cached(0), last))).toBeInstanceOf(Unavailable);
    expect(server.asked.map(({ route }) => route)).toEqual(routes.slice(0, 2));
    await client.close();
    await server.close();
  });
});

it('names figures that trtllm-serve has', async () => {
  const { metrics } = tensorrtLlm;
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
  expect((await tensorrtLlm.health(http)).ok).toBe(true);
});
