/** What servers call their models and weights, at its worst. */
import { afterEach, describe, expect, it } from 'vitest';
import { Invalid } from '../../core/errors';
import { type CannedServer, errorOf, startCannedServer } from '../testing/canned-server';
import { describeServer } from './describe-server';
import { spansOf } from './generation-piece';
import { createHttpClient } from './http-client';
import { openai } from './openai';
import type { ServerFacts } from './protocol';
import { fitName, quoted } from './server-words';

const servers: CannedServer[] = [];
afterEach(async () => {
  for (const server of servers.splice(0)) await server.close();
});

async function describing(card: Record<string, unknown>): Promise<ServerFacts> {
  const server = await startCannedServer({ 'GET /v1/models': { body: { data: [card as { id: string }] } } });
  servers.push(server);
  const http = createHttpClient({ backend: 'gpu', url: server.url });
  try {
    return await describeServer(openai, http, { model: null, contextLength: null });
  } finally {
    await http.close();
  }
}

describe('names that a server gives', () => {
  it.each(['org/model-7b', 'Qwen2.5 7B (ü, 模型) <script>', '../../etc', 'x'.repeat(300)])(
    'are kept as they are: %s',
    async (id) => {
      expect(await describing({ id, context_length: 512 })).toMatchObject({ modelName: id, contextLength: 512 });
    },
  );

  it.each([
    ['a NUL', 'a\0b'],
    ['an escape sequence', '\u001b[31mred'],
    ['half a character', 'a\ud800b'],
    ['marks that turn text around', 'a\u202eb'],
  ])('are refused with %s, in a sentence that has none of it', async (_, id) => {
    const error = await errorOf(describing({ id, context_length: 512 }));
    expect(error).toBeInstanceOf(Invalid);
    expect(error.message).toMatch(/^The backend gpu \(http:\S+\) calls its model "/);
    expect(error.message).not.toMatch(/[\p{Cc}\p{Cs}\p{Cf}]/u);
    for (const said of [id, [{ version: id, start: 0, end: 2 }]])
      expect(() => spansOf(said, 2, { before: null, after: null }, 'The server')).toThrow('calls its weights');
  });

  it('are refused when they are longer than any name', () => {
    expect(fitName('S', 'weights', 'v'.repeat(512))).toHaveLength(512);
    expect(() => fitName('S', 'weights', 'v'.repeat(513))).toThrow(/^S calls its weights "v{60}…"/);
  });

  it('are quoted without half a character at the cut', () => {
    expect(quoted(`${'x'.repeat(59)}\u{1f642}`)).toBe(`"${'x'.repeat(59)}…"`);
  });
});

describe('what else a server says of itself', () => {
  it('is no context length when it is no whole number', async () => {
    const facts = (contextLength: number) => ({ modelName: 'm', contextLength, version: null, fingerprint: '' });
    for (const length of [1.5, 1e300, Number.NaN]) {
      const protocol = { ...openai, describe: async () => facts(length) as ServerFacts };
      const http = createHttpClient({ backend: 'gpu', url: 'http://127.0.0.1:1' });
      const error = await errorOf(describeServer(protocol, http, { model: null, contextLength: null }));
      expect(error.message).toContain(`says that its context holds ${length} tokens`);
      await http.close();
    }
  });

  it('is cut and cleaned where it is only shown', async () => {
    const said = {
      modelName: 'm',
      contextLength: 8,
      version: `1\u001b[0m${'9'.repeat(1000)}`,
      fingerprint: 'f'.repeat(1e6),
    };
    const protocol = { ...openai, describe: async () => said as ServerFacts };
    const http = createHttpClient({ backend: 'gpu', url: 'http://127.0.0.1:1' });
    const facts = await describeServer(protocol, http, { model: null, contextLength: null });
    expect(facts.version).toMatch(/^1 \[0m9{90,}$/);
    expect(facts.version?.length).toBeLessThanOrEqual(100);
    expect(facts.fingerprint).toHaveLength(64);
    await http.close();
  });
});
