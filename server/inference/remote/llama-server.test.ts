/** The llama-server protocol on replies that build b11434 gave on 29 November 2026, shortened, and on ways in which they can be wrong. */
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Invalid, NotFound, Unavailable } from '../../core/errors';
import type { Json } from '../../core/vocabulary';
import type { SamplingOptions } from '../backend';
import { type Answer, type CannedServer, errorOf, type Handler, startCannedServer } from '../testing/canned-server';
import { PLAIN } from '../testing/conformance';
import { createHttpClient, type HttpClient } from './http-client';
import { llamaServer } from './llama-server';
import { align } from './llama-server-generate';

const card = (id: string) => ({
  id,
  aliases: [id, `${id}-alias`],
  object: 'model',
  owned_by: 'llamacpp',
  meta: { n_vocab: 268 },
});
const PROPS = {
  default_generation_settings: { n_ctx: 1024, params: { 'speculative.types': 'none' } },
  total_slots: 2,
  model_path: '/models/tiny.gguf',
  media_marker: '<__media_HV7LQ0y8__>',
  chat_template: '{{ bos_token }}{% for m in messages %}[{{ m.role }}]{{ m.content }}{{ eos_token }}{% endfor %}',
  bos_token: '<s>',
  eos_token: '</s>',
  build_info: 'b11434-abc',
};
const NO_EMBEDDINGS: Answer = {
  status: 501,
  body: { error: { code: 501, message: 'This server does not support embeddings.', type: 'not_supported_error' } },
};
const LOADING: Answer = {
  status: 503,
  body: { error: { code: 503, message: 'Loading model', type: 'unavailable_error' } },
};

const place = (id: number, logprob: number, likeliest = [{ id, token: '?', bytes: [id], logprob }]) => ({
  id,
  token: '?',
  bytes: [id],
  logprob,
  top_logprobs: likeliest,
});
const completed = (tokens: number[], places: Json[], other: Record<string, Json> = {}): Answer => ({
  body: {
    tokens,
    tokens_predicted: tokens.length,
    tokens_evaluated: 3,
    stop_type: 'limit',
    stopping_word: '',
    completion_probabilities: places,
    ...other,
  },
});

let server: CannedServer;
let http: HttpClient;
beforeEach(async () => {
  server = await startCannedServer({
    'GET /v1/models': { body: { object: 'list', data: [card('tiny')] } },
    'GET /props?model=tiny': { body: PROPS },
    'GET /lora-adapters?model=tiny': { body: [] },
    'POST /v1/embeddings': NO_EMBEDDINGS,
    'POST /tokenize': { body: { tokens: [97] } },
  });
  http = createHttpClient({ backend: 'llama', url: server.url });
});
afterEach(async () => {
  await http.close();
  await server.close();
});

const COMPLETION = 'POST /completion';
const sent = () =>
  server.asked.filter(({ route }) => route === COMPLETION).map(({ body }) => body as Record<string, Json>);
const describeIt = () => llamaServer.describe(http, { model: null });
async function generate(changes: Partial<SamplingOptions> = {}) {
  const call = {
    promptIds: Int32Array.of(5, 6, 7),
    options: { ...PLAIN, ...changes },
    requestId: 'r',
    affinityKey: 'k',
  };
  return llamaServer.generate(http, await describeIt(), call);
}
/** The generation, then what one-token requests are answered with. */
const inTurn = (first: Answer, scored: (body: Record<string, Json>) => Answer): Handler => {
  let asked = 0;
  return (body) => (asked++ === 0 ? first : scored(body as Record<string, Json>));
};

describe('what a llama-server says of itself', () => {
  it('is its model, context, slots and build; a new start has another fingerprint', async () => {
    const facts = await describeIt();
    expect(facts).toMatchObject({
      modelName: 'tiny',
      contextLength: 1024,
      slots: 2,
      version: 'b11434-abc',
      logprobs: 'raw',
    });
    expect([...facts.routes]).toEqual([]);
    expect((await llamaServer.describe(http, { model: 'tiny-alias' })).modelName).toBe('tiny');
    server.handlers['GET /props?model=tiny'] = { body: { ...PROPS, media_marker: '<__media_other__>' } };
    expect((await describeIt()).fingerprint).not.toBe(facts.fingerprint);
  });

  it('names what is wrong: another kind, another model, several, none ready, no context length', async () => {
    expect(await errorOf(llamaServer.describe(http, { model: 'large' }))).toBeInstanceOf(NotFound);
    server.handlers['GET /props?model=tiny'] = { body: { ...PROPS, default_generation_settings: {} } };
    expect((await errorOf(describeIt())).message).toContain('how long its context is');
    server.handlers['GET /v1/models'] = { body: { data: [card('a'), card('b')] } };
    expect((await errorOf(describeIt())).message).toContain('several models; say which one is meant: a, b');
    server.handlers['GET /v1/models'] = { body: { data: [{ ...card('a'), owned_by: 'vllm' }] } };
    expect(await errorOf(describeIt())).toBeInstanceOf(Invalid);
    server.handlers['GET /v1/models'] = LOADING;
    expect(await errorOf(describeIt())).toBeInstanceOf(Unavailable);
  });

  it('is not healthy while it loads', async () => {
    server.handlers['GET /health'] = LOADING;
    expect(await llamaServer.health(http)).toMatchObject({
      ok: false,
      message: expect.stringContaining('Loading model'),
    });
    server.handlers['GET /health'] = { body: { status: 'ok' } };
    expect((await llamaServer.health(http)).ok).toBe(true);
    await server.close();
    expect(await llamaServer.health(http)).toMatchObject({ ok: false, message: expect.stringContaining('connection') });
    server = await startCannedServer();
  });

  it('is asked for one of several models by name', async () => {
    server.handlers['GET /v1/models'] = { body: { data: [card('a b'), card('tiny')] } };
    server.handlers['GET /props?model=a%20b'] = { body: PROPS };
    const facts = await llamaServer.describe(http, { model: 'a b' });
    await llamaServer.tokenize?.(http, facts, 'x', true);
    expect(server.asked.at(-1)?.body).toEqual({ model: 'a b', content: 'x', add_special: false, parse_special: true });
  });
});

describe('the chat template of a llama-server', () => {
  it('is rendered here, with its tokens and its ends', async () => {
    const facts = await describeIt();
    const messages = [
      { role: 'user' as const, content: 'a' },
      { role: 'assistant' as const, content: 'b' },
    ];
    const text = await llamaServer.applyTemplate?.(http, facts, messages, { addGenerationPrompt: false });
    expect(text).toBe('<s>[user]a</s>[assistant]b</s>');
    expect(server.asked.some(({ route }) => route.includes('apply-template'))).toBe(false);
  });

  it('may be missing', async () => {
    server.handlers['GET /props?model=tiny'] = { body: { ...PROPS, chat_template: '' } };
    const call = llamaServer.applyTemplate?.(http, await describeIt(), [], { addGenerationPrompt: true });
    expect((await errorOf(call)).message).toContain('without a chat template');
  });
});

describe('a generation on a llama-server', () => {
  it('sets every field that its defaults would set, and only the filters that are on', async () => {
    server.handlers[COMPLETION] = completed([10], [place(10, -1)]);
    await generate({ seed: 2 ** 32 + 9, stop: ['x'] });
    await generate({ temperature: 0.5, topK: 5, topP: 0.9, minP: 0.1, seed: 2 ** 32 - 1 });
    await generate({ temperature: 0, topK: 5 });
    const [plain, filtered, greedy] = sent();
    expect(plain).toMatchObject({
      prompt: [5, 6, 7],
      n_predict: 24,
      samplers: ['temperature'],
      temperature: 1,
      top_k: 0,
      top_p: 1,
      min_p: 0,
      seed: 9,
      stop: ['x'],
      n_probs: 1,
      post_sampling_probs: false,
      return_tokens: true,
      stream: false,
    });
    expect(filtered).toMatchObject({
      samplers: ['temperature', 'min_p', 'top_k', 'top_p'],
      min_p: 0.1,
      top_k: 5,
      seed: 0,
    });
    expect(greedy?.samplers).toEqual(['temperature']);
  });

  it('sends each constraint in the field that the server has', async () => {
    server.handlers[COMPLETION] = completed([10], [place(10, -1)]);
    await generate({ constraint: { kind: 'json_schema', schema: { type: 'object' } } });
    await generate({ constraint: { kind: 'grammar', grammar: 'root ::= "a"' } });
    await generate({ constraint: { kind: 'choice', choices: ['a'] } });
    expect(sent().map(({ json_schema, grammar }) => json_schema ?? grammar)).toEqual([
      { type: 'object' },
      'root ::= "a"',
      'root ::= ([a])',
    ]);
    expect((await errorOf(generate({ constraint: { kind: 'grammar', grammar: '\n' } }))).message).toContain('empty');
  });

  it('scores the tokens of a stop string, whose numbers the server keeps back', async () => {
    const first = completed([10, 11, 12], [place(10, -1)], { stop_type: 'word', stopping_word: 'x' });
    server.handlers[COMPLETION] = inTurn(first, ({ logit_bias }) => {
      const [[id]] = logit_bias as [[number, number]];
      return completed([id], [place(id, -id)]);
    });
    const raw = await generate({ stop: ['x'] });
    expect(Array.from(raw.logprobs)).toEqual([-1, -11, -12]);
    expect(raw).toMatchObject({
      finish: 'stop',
      stopString: 'x',
      endTokenSampled: false,
      promptTokens: 3,
      logprobKind: 'raw',
    });
    expect(
      sent()
        .slice(1)
        .map(({ prompt, n_predict }) => [prompt, n_predict]),
    ).toEqual([
      [[5, 6, 7, 10], 1],
      [[5, 6, 7, 10, 11], 1],
    ]);
  });

  it('finds the number of a part of a character among the others, in the end among all', async () => {
    const listed = [
      { id: 97, token: 'a', bytes: [97], logprob: -0.1 },
      { id: 200, token: '', bytes: [0xf0], logprob: -3 },
    ];
    server.handlers[COMPLETION] = inTurn(completed([200], []), ({ logit_bias, n_probs }) => {
      const [[id]] = logit_bias as [[number, number]];
      // Nothing is said of a token that ends inside a character.
      if (id === 200) return completed([200], []);
      return completed([id], [place(id, -0.1, Number(n_probs) > 1000 ? listed : listed.slice(0, 1))]);
    });
    const raw = await generate();
    expect(Array.from(raw.logprobs)).toEqual([-3]);
    expect(raw.tokenBytes?.map((bytes) => Array.from(bytes ?? []))).toEqual([[0xf0]]);
  });

  it('does not believe a number of a token that was drafted', async () => {
    const first = completed([10, 11], [place(10, -1), { ...place(11, 0), top_logprobs: [] }]);
    server.handlers[COMPLETION] = inTurn(first, () => completed([11], [place(11, -2)]));
    expect(Array.from((await generate()).logprobs)).toEqual([-1, -2]);
  });

  it('has the end-of-turn token among the ids, and no byte of it', async () => {
    const end = place(2, -0.5, [{ id: 2, token: '', bytes: [], logprob: -0.5 }]);
    server.handlers[COMPLETION] = completed([10, 2], [place(10, -1), end], { stop_type: 'eos' });
    const raw = await generate();
    expect(raw).toMatchObject({ finish: 'eos', endTokenSampled: true });
    expect(raw.tokenBytes?.at(-1)).toBeNull();
  });

  it('cuts what is longer than was asked for', async () => {
    server.handlers[COMPLETION] = completed([10, 11], [place(10, -1), place(11, -1)], { stop_type: 'eos' });
    expect(await generate({ maxTokens: 1 })).toMatchObject({
      ids: Int32Array.of(10),
      finish: 'length',
      endTokenSampled: false,
    });
  });

  it('refuses a reply without ids, with too few, or that ended for no reason it knows', async () => {
    server.handlers[COMPLETION] = completed([10], [], { tokens: null });
    expect((await errorOf(generate())).message).toContain('no token ids');
    server.handlers[COMPLETION] = completed([10], [place(10, -1)], { tokens_predicted: 3 });
    expect((await errorOf(generate())).message).toContain('sampled 3 tokens and sent the ids of 1');
    server.handlers[COMPLETION] = completed([10], [place(10, -1)], { stop_type: 'none' });
    expect((await errorOf(generate())).message).toContain('"none"');
  });

  it('says how long the context is when the prompt does not fit', async () => {
    const message = 'request (1024 tokens) exceeds the available context size (1000 tokens), try increasing it';
    const error = { code: 400, message, type: 'exceed_context_size_error', n_prompt_tokens: 1024, n_ctx: 1000 };
    server.handlers[COMPLETION] = { status: 400, body: { error } };
    const failure = await errorOf(generate());
    expect(failure).toBeInstanceOf(Invalid);
    expect(failure.message).toContain('1000 tokens');
  });
});

describe('numbers beside ids', () => {
  it('are those of the token itself or left open, whichever are missing', () => {
    fc.assert(
      fc.property(fc.array(fc.record({ id: fc.nat(3), given: fc.boolean() }), { maxLength: 12 }), (tokens) => {
        const numbers = tokens.flatMap(({ id, given }, k) => (given ? [{ id, logprob: -1 - k, likeliest: [] }] : []));
        const { logprobs } = align(
          Int32Array.from(tokens, ({ id }) => id),
          numbers,
        );
        for (const [k, value] of logprobs.entries())
          if (!Number.isNaN(value)) expect([tokens[k]?.given, value]).toEqual([true, -1 - k]);
        if (numbers.length === tokens.length) expect(logprobs.every((value) => !Number.isNaN(value))).toBe(true);
      }),
      { numRuns: 1000 },
    );
  });
});

describe('adapters of a llama-server', () => {
  const adapters = [
    { id: 0, path: '/adapters/a.gguf', scale: 0 },
    { id: 1, path: '/adapters/b.gguf', scale: 1 },
  ];
  /** Slots in turn; what it finds in memory of a text that it has seen is what `remembers` says. */
  function slots(remembers: boolean): Handler {
    const seen = new Set<string>();
    let turn = 0;
    return (body) => {
      const { prompt } = body as { prompt: string };
      const cached = remembers && seen.has(prompt) ? 100 : 0;
      seen.add(prompt);
      return { body: { id_slot: turn++ % 2, timings: { cache_n: cached } } };
    };
  }
  async function routes() {
    server.handlers['GET /lora-adapters?model=tiny'] = { body: adapters };
    const weights = llamaServer.weights(await describeIt());
    if (!weights) throw new Error('It has no weight routes.');
    return weights;
  }
  const load = async (path: string) => (await routes()).load(http, { kind: 'lora', path }, 'v2');

  it('can be turned on one at a time, when the prompts of the old ones are gone', async () => {
    server.handlers[COMPLETION] = slots(false);
    server.handlers['POST /lora-adapters?model=tiny'] = { body: { success: true } };
    expect(await routes()).toMatchObject({ sources: ['lora'], canPause: false, keepsLabel: false });
    await load('/elsewhere/a.gguf');
    expect(server.asked.at(-1)).toEqual({
      route: 'POST /lora-adapters?model=tiny',
      body: [
        { id: 0, scale: 1 },
        { id: 1, scale: 0 },
      ],
    });
  });

  it('stay as they are when old prompts would be used, or the adapter is none of them', async () => {
    server.handlers[COMPLETION] = slots(true);
    expect((await errorOf(load('/adapters/a.gguf'))).message).toContain('--cache-ram 0');
    expect((await errorOf(load('/adapters/c.gguf'))).message).toContain('/adapters/a.gguf, /adapters/b.gguf');
    server.handlers[COMPLETION] = { body: { id_slot: 0, timings: { cache_n: 0 } } };
    expect((await errorOf(load('/adapters/a.gguf'))).message).toContain('1 of its 2 slots were free');
    server.handlers[COMPLETION] = { body: {} };
    expect((await errorOf(load('/adapters/a.gguf'))).message).toContain('prefix cache');
    expect(server.asked.some(({ route }) => route.startsWith('POST /lora-adapters'))).toBe(false);
  });

  it('are no weight routes where there are none', async () => {
    expect(llamaServer.weights(await describeIt())).toBeNull();
  });
});
