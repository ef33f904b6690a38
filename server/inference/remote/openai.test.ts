import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemAmbient } from '../../core/ambient';
import { Invalid, NotFound, Unavailable } from '../../core/errors';
import type { ChatMessage } from '../../core/events';
import type { Json } from '../../core/vocabulary';
import { silentLogger } from '../../observability/logger';
import type { SamplingOptions } from '../backend';
import { type CannedServer, errorOf, startCannedServer } from '../testing/canned-server';
import { PLAIN } from '../testing/conformance';
import { createHttpClient, type HttpClient } from './http-client';
import { openai } from './openai';
import { decode, encode, parse, render } from './openai-messages';
import { RemoteBackend } from './remote-backend';

const MODELS = {
  body: { object: 'list', data: [{ id: 'm', object: 'model', owned_by: 'somebody', context_length: 2048 }] },
};
const COMPLETIONS = 'POST /v1/chat/completions';
const bytes = (text: string) => Array.from(new TextEncoder().encode(text));
const token = (text: string, logprob: number, own: number[] | null = bytes(text)) => ({
  token: text,
  logprob,
  bytes: own,
  top_logprobs: [],
});

function reply(content: string | null, finish = 'stop', tokens: Json[] | null = null) {
  const message = { role: 'assistant', content };
  return { body: { choices: [{ index: 0, finish_reason: finish, message, logprobs: tokens && { content: tokens } }] } };
}

let server: CannedServer;
let http: HttpClient;
beforeEach(async () => {
  server = await startCannedServer({ 'GET /v1/models': MODELS, [COMPLETIONS]: reply('Hello.') });
  http = createHttpClient({ backend: 'gate', url: server.url, key: 'secret-key' });
});
afterEach(async () => {
  await http.close();
  await server.close();
});

const conversation: ChatMessage[] = [
  { role: 'system', content: 'Be brief.' },
  { role: 'user', content: 'Say <|end|><|assistant|> 数.' },
  { role: 'assistant', content: 'No.' },
  { role: 'tool', content: '{"a": 1}' },
];

async function generate(
  changes: Partial<SamplingOptions> = {},
  promptIds = encode('<|user|>Hi<|end|><|assistant|>', true),
) {
  const facts = await openai.describe(http, { model: null });
  return openai.generate(http, facts, {
    promptIds,
    options: { ...PLAIN, ...changes },
    requestId: 'r',
    affinityKey: 'k',
  });
}
const sent = () =>
  server.asked.filter(({ route }) => route === COMPLETIONS).map(({ body }) => body as Record<string, unknown>);

describe('a conversation as ids', () => {
  it('can be read back, whatever its texts spell', () => {
    const text = fc.oneof(
      fc.string({ unit: 'grapheme', minLength: 1 }),
      fc.constantFrom('<|end|>', '<|user|>x', '<|', '\u0000', '🌊'),
    );
    const message = fc.record({ role: fc.constantFrom('system', 'user', 'assistant'), content: text });
    fc.assert(
      fc.property(fc.array(message, { minLength: 1 }), (messages) => {
        const ids = messages.flatMap(({ role, content }) => [
          ...encode(`<|${role}|>`, true),
          ...encode(content, false),
          ...encode('<|end|>', true),
        ]);
        const read = parse(Int32Array.from([...ids, ...encode('<|assistant|>', true)]));
        expect(read).toEqual(messages.map(({ role, content }) => ({ role, content })));
      }),
    );
  });

  it('is marks above all bytes, and bytes', () => {
    const rendered = render(conversation.slice(0, 1), true);
    const ids = encode(rendered, true);
    expect(Array.from(ids)).toEqual([256, ...bytes('Be brief.'), 260, 258]);
    expect(decode(ids)).toBe(rendered);
    expect(encode('<|end|>', false).every((id) => id < 256)).toBe(true);
  });

  it('keeps an open assistant turn as the last message, and gives a tool no role of its own', () => {
    const ids = encode(`${render(conversation, true)}Thought: `, true);
    expect(parse(ids).slice(-2)).toEqual([
      { role: 'user', content: '{"a": 1}' },
      { role: 'assistant', content: 'Thought: ' },
    ]);
    expect(parse(Int32Array.from(bytes('no marks')))).toEqual([{ role: 'user', content: 'no marks' }]);
  });
});

describe('a service of chat completions', () => {
  it('is described by its list of models', async () => {
    expect(await openai.describe(http, { model: null })).toMatchObject({
      modelName: 'm',
      contextLength: 2048,
      logprobs: 'unknown',
    });
    expect((await openai.describe(http, { model: 'm', contextLength: 500 })).contextLength).toBe(500);
    expect(await errorOf(openai.describe(http, { model: 'other' }))).toBeInstanceOf(NotFound);
    server.handlers['GET /v1/models'] = { body: { data: [{ id: 'a' }, { id: 'b' }] } };
    expect((await errorOf(openai.describe(http, { model: null }))).message).toContain('serves 2 models');
    server.handlers['GET /v1/models'] = { status: 404, body: 'no' };
    expect((await openai.describe(http, { model: 'given' })).contextLength).toBe(0);
    expect((await errorOf(openai.describe(http, { model: null }))).message).toContain('does not list its models');
  });

  it('is sent messages, and filters only where they are on', async () => {
    await generate({ seed: 2 ** 40 + 3, topP: 0.9 });
    await generate({ topK: 5, minP: 0.1 });
    const [plain, filtered] = sent();
    expect(plain).toEqual({
      model: 'm',
      messages: [{ role: 'user', content: 'Hi' }],
      n: 1,
      stream: false,
      temperature: 1,
      top_p: 0.9,
      logprobs: true,
      seed: (2 ** 40 + 3) % 2 ** 31,
      max_tokens: 24,
    });
    expect(filtered).toMatchObject({ top_k: 5, min_p: 0.1 });
  });

  it('gives bytes as ids, the number of each token at its first byte', async () => {
    server.handlers[COMPLETIONS] = reply('né🌊', 'stop', [
      token('n', -1),
      token('é', -2, null),
      token('\\xf0\\x9f', -3, [0xf0, 0x9f]),
      token('\\x8c\\x8a', -4, [0x8c, 0x8a]),
      token('<end>', -5),
    ]);
    const raw = await generate();
    expect(Array.from(raw.ids)).toEqual(bytes('né🌊'));
    expect(Array.from(raw.logprobs)).toEqual([-1, -2, 0, -3, 0, -4, 0]);
    expect(raw).toMatchObject({ finish: 'eos', endTokenSampled: false, stopString: null, logprobKind: 'unknown' });
    expect(raw.tokenBytes?.map((own) => own?.[0])).toEqual(Array.from(raw.ids));
  });

  it('has no numbers where it gives none, or gives those of other text', async () => {
    server.handlers[COMPLETIONS] = reply('abc', 'stop', [token('a', -1), token('x', -2)]);
    expect(Array.from((await generate()).logprobs)).toEqual([-1, Number.NaN, Number.NaN]);
    server.handlers[COMPLETIONS] = reply('abc');
    expect((await generate()).logprobs.every((value) => Number.isNaN(value))).toBe(true);
  });

  it('counts bytes: what is longer than asked for is cut and says so', async () => {
    server.handlers[COMPLETIONS] = reply('0123456789');
    const raw = await generate({ maxTokens: 4 });
    expect(raw.finish).toBe('length');
    expect(decode(raw.ids)).toBe('0123');
    server.handlers[COMPLETIONS] = reply('01', 'length');
    expect((await generate()).finish).toBe('length');
  });

  it('leaves fields out that the service refuses, once for all', async () => {
    server.handlers[COMPLETIONS] = (body) => {
      const fields = body as Record<string, unknown>;
      const wrong = ['max_tokens', 'logprobs', 'seed'].find((name) => name in fields);
      return wrong ? { status: 400, body: { error: { message: `Unsupported parameter: '${wrong}'.` } } } : reply('ok');
    };
    expect(decode((await generate()).ids)).toBe('ok');
    expect(sent()).toHaveLength(4);
    await generate();
    expect(sent()).toHaveLength(5);
    expect(sent()[4]).toMatchObject({ max_completion_tokens: 24 });
  });

  it('passes on what the service refuses for good, without the key', async () => {
    server.handlers[COMPLETIONS] = {
      status: 400,
      body: { error: { message: 'temperature must be 1 for secret-key' } },
    };
    const error = await errorOf(generate({ temperature: 0.3 }));
    expect(error).toBeInstanceOf(Invalid);
    expect(error.message).toContain('temperature must be 1');
    expect(JSON.stringify([error.message, (error as Invalid).details])).not.toContain('secret-key');
    server.handlers[COMPLETIONS] = reply(null, 'content_filter');
    expect(await errorOf(generate())).toBeInstanceOf(Unavailable);
    server.handlers[COMPLETIONS] = { body: { choices: [] } };
    expect((await errorOf(generate())).message).toContain('no message');
  });

  it('takes a JSON Schema and no other constraint', async () => {
    const schema = { type: 'object' };
    await generate({ constraint: { kind: 'json_schema', schema } });
    expect(sent()[0]?.response_format).toEqual({
      type: 'json_schema',
      json_schema: { name: 'answer', schema, strict: true },
    });
    expect((await errorOf(generate({ constraint: { kind: 'choice', choices: ['a'] } }))).message).toContain(
      'JSON Schema only',
    );
    expect((await errorOf(generate({}, Int32Array.of(65, 300)))).message).toContain('no byte of a text');
  });

  it('embeds in the order of the texts', async () => {
    server.handlers['POST /v1/embeddings'] = {
      body: {
        data: [
          { index: 1, embedding: [3, 4] },
          { index: 0, embedding: [1, 2] },
        ],
      },
    };
    const facts = await openai.describe(http, { model: null });
    const vectors = await openai.embed?.(http, facts, ['a', 'b']);
    expect(vectors?.map((vector) => Array.from(vector))).toEqual([
      [1, 2],
      [3, 4],
    ]);
    expect((await errorOf(openai.embed?.(http, facts, ['a', 'b', 'c']))).message).toContain('no vector for text 2');
  });

  it('serves as a backend: exact bytes both ways, cut at the first stop string', async () => {
    server.handlers[COMPLETIONS] = reply('Thought: 数.\nObservation: I make this up.\nObservation: more');
    const backend = await RemoteBackend.open({
      name: 'gate',
      url: server.url,
      protocol: openai,
      model: null,
      tokenizerFolder: null,
      maxInFlight: 4,
      logger: silentLogger,
      ambient: systemAmbient(),
    });
    for (const text of ['plain', '数 🌊\u0000', '<|user|>', '\ufffd', 'e\u0301']) {
      const encoded = await backend.tokenize(text, { special: false });
      expect(new TextDecoder().decode(encoded.bytes)).toBe(text);
      expect(Array.from(encoded.ids)).toEqual(bytes(text));
    }
    const prompt = await backend.applyTemplate(conversation.slice(0, 2), { addGenerationPrompt: true });
    const { ids: promptIds } = await backend.tokenize(prompt, { special: true });
    expect(Array.from(promptIds)).toContain(258);
    const options = { ...PLAIN, maxTokens: 200, stop: ['Observation:'] };
    const [settled] = await backend.generate([{ promptIds, options, affinityKey: 'k' }]);
    if (settled?.status !== 'fulfilled') throw settled?.reason;
    expect(settled.value).toMatchObject({ finishReason: 'stop', stopString: 'Observation:', endTokenSampled: false });
    expect(new TextDecoder().decode(settled.value.bytes)).toBe('Thought: 数.\nObservation:');
    expect('stop' in (sent()[0] ?? {})).toBe(false);
    expect((await backend.capabilities()).tokenIds).toBe(false);
    expect((await backend.health()).ok).toBe(true);
    await backend.close();
  });
});
