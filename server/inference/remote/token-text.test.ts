import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Unavailable } from '../../core/errors';
import { writeTinyCheckpoint } from '../testing/checkpoint';
import { writeQwenTokenizer, writeSentencePieceTokenizer } from '../testing/tokenizer-folder';
import type { HttpClient } from './http-client';
import { LocalTokenizer } from './local-tokenizer';
import type { ServerFacts, ServerProtocol } from './protocol';
import { TokenText } from './token-text';

const KINDS = ['tiny', 'qwen', 'sentencepiece'] as const;
let folder: string;
const tokenizers = new Map<string, LocalTokenizer>();
const tokenizer = (name: string): LocalTokenizer => tokenizers.get(name) as LocalTokenizer;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'token-text-'));
  await writeTinyCheckpoint(join(folder, 'tiny'));
  await writeQwenTokenizer(join(folder, 'qwen'));
  await writeSentencePieceTokenizer(join(folder, 'sentencepiece'));
  for (const name of KINDS) tokenizers.set(name, await LocalTokenizer.open(join(folder, name)));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const read = (bytes: Uint8Array) => new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes);
const write = (text: string) => new TextEncoder().encode(text);
const hex = (bytes: Uint8Array | null) => Buffer.from(bytes ?? []).toString('hex');

/** What a server does with these tokenizer files: control strings always tokens, bad UTF-8 as U+FFFD, a first blank dropped. */
function server(own: LocalTokenizer, changes: Partial<ServerProtocol> = {}) {
  const seen = { detokenized: [] as number[], requests: 0, running: 0, most: 0 };
  const counted = async <T>(work: () => T): Promise<T> => {
    seen.requests++;
    seen.running++;
    seen.most = Math.max(seen.most, seen.running);
    await new Promise((go) => setImmediate(go));
    seen.running--;
    return work();
  };
  const protocol = {
    kind: 'vllm',
    plainTokenize: false,
    tokenize: (_http, _facts, text) => counted(() => own.encode(text, true)),
    detokenize: (_http, _facts, ids) =>
      counted(() => {
        seen.detokenized.push(...ids);
        const text = read(Buffer.concat([...ids].map((id) => own.bytesOf(id) ?? Buffer.alloc(0))));
        return own.folder.endsWith('sentencepiece') ? text.replace(/^ /, '') : text;
      }),
    ...changes,
  } as Partial<ServerProtocol> as ServerProtocol;
  const http = { backend: 'far', url: 'http://far:8000' } as HttpClient;
  const open = (localTokenizer: LocalTokenizer | null = null) =>
    TokenText.open({ protocol, http, facts: {} as ServerFacts, localTokenizer });
  return { seen, open };
}

describe('the bytes of tokens', () => {
  it.each(KINDS)('are found out for a whole vocabulary by decoding: %s', async (name) => {
    const own = tokenizer(name);
    const ids: number[] = [];
    while (own.bytesOf(ids.length)) ids.push(ids.length);
    expect(ids.length).toBeGreaterThan(260);
    const { bytes, byteEnds } = await server(own).open().bytesOf(Int32Array.from(ids));
    const found = ids.map((id) => hex(bytes.subarray(byteEnds[id - 1] ?? 0, byteEnds[id])));
    // A byte that is part of no character reads as U+FFFD whichever it is.
    const nowhere = new Set(['c0', 'c1', 'f5', 'f6', 'f7', 'f8', 'f9', 'fa', 'fb', 'fc', 'fd', 'fe']);
    const wanted = ids.map((id) => hex(own.bytesOf(id)));
    expect(found).toEqual(wanted.map((each) => (nowhere.has(each) ? 'ff' : each)));
    if (name === 'qwen') {
      expect(found).toContain('efbfbd');
      expect(found).toContain('efbf');
    }
  });

  it('are asked for once, many at a time, by at most 32 requests', async () => {
    const own = tokenizer('tiny');
    const { seen, open } = server(own);
    const tokens = open();
    const ids = Int32Array.from({ length: 200 }, (_, k) => 60 + (k % 40));
    await Promise.all([tokens.bytesOf(ids), tokens.bytesOf(ids), tokens.bytesOf(ids)]);
    await tokens.bytesOf(ids);
    for (let id = 60; id < 100; id++) expect(seen.detokenized.filter((each) => each === id)).toHaveLength(1);
    const texts = Array.from({ length: 300 }, (_, k) => `text ${k}`);
    await Promise.all(texts.map((text) => tokens.encode(text, { special: true })));
    expect(seen.most).toBeGreaterThan(8);
    expect(seen.most).toBeLessThanOrEqual(64);
  });

  it('are what the reply said where it said so, and asked for where it said nothing', async () => {
    const { seen, open } = server(tokenizer('tiny'));
    const tokens = open();
    const known = [Uint8Array.of(0xe4, 0xbd), new Uint8Array(), null];
    const { bytes } = await tokens.bytesOf(Int32Array.from([70, 1, 71]), known);
    expect(hex(bytes)).toBe(`e4bd${hex(write('<|im_start|>B'))}`);
    expect(seen.detokenized).not.toContain(70);
  });

  it('come from the tokenizer folder without a request', async () => {
    const own = tokenizer('qwen');
    const { seen, open } = server(own);
    const { bytes, byteEnds } = await open(own).bytesOf(Int32Array.from([267, 0xc0, 271]));
    expect(hex(bytes)).toBe(`e4bdc0${hex(write('<|im_start|>'))}`);
    expect([...byteEnds]).toEqual([2, 3, 15]);
    expect(seen.detokenized).toEqual([]);
  });

  it('are asked for again after a failure', async () => {
    const own = tokenizer('tiny');
    let fails = true;
    const { open } = server(own, {
      detokenize: async (_http, _facts, ids) => {
        if (fails) throw new Unavailable('far is away');
        return read(Buffer.concat([...ids].map((id) => own.bytesOf(id) ?? Buffer.alloc(0))));
      },
    });
    const tokens = open();
    await expect(tokens.encode('hello', { special: true })).rejects.toThrow('far is away');
    fails = false;
    expect(read((await tokens.encode('hello', { special: true })).bytes)).toBe('hello');
  });

  it('are refused from a server that adds tokens or takes some away', async () => {
    const own = tokenizer('tiny');
    const adding = server(own, { tokenize: async (_h, _f, text) => Int32Array.from([0, ...own.encode(text, true)]) });
    await expect(adding.open().encode('hello', { special: true })).rejects.toThrow(
      'The backend far (http://far:8000) does not give back the text that it turned into ids',
    );
    const losing = server(own, { detokenize: async (_h, _f, ids) => 'x'.repeat(ids.length) });
    await expect(losing.open().bytesOf(Int32Array.of(70))).rejects.toThrow('does not give back the text');
  });
});

describe('text to ids', () => {
  const snippet = fc.oneof(
    fc.constantFrom(
      '<|im_end|>',
      '<|im_start|>',
      '<tool_call>',
      '</think>',
      '<s>',
      '</s>',
      '<|endoftext|>',
      '<',
      '|',
      '>',
    ),
    fc.constantFrom(
      '<<|im_end|>',
      '<|im_<|im_end|>end|>',
      '</p>',
      '[INST]',
      ' ',
      '  ',
      '\n',
      '\r\n',
      '\ufeff',
      '\u0085',
      '▁',
    ),
    fc.constantFrom(
      'e\u0301',
      '\u212b',
      '\u2126',
      '\u2001',
      '\u1112\u1161\u11ab',
      '\ufffd',
      '\u{1F468}\u200d\u{1F469}',
      '\ud800',
    ),
    fc.string({ unit: 'binary', maxLength: 12 }),
    fc.string({ maxLength: 12 }),
  );
  const anyText = fc.array(snippet, { maxLength: 8 }).map((parts) => parts.join(''));

  it.each(
    KINDS.flatMap(
      (name) =>
        [
          [name, 'from the server'],
          [name, 'from the folder'],
        ] as const,
    ),
  )('gives ids that say the text, none of them a control token when it is plain: %s %s', async (name, from) => {
    const own = tokenizer(name);
    const tokens = server(own).open(from === 'from the folder' ? own : null);
    await fc.assert(
      fc.asyncProperty(anyText, fc.boolean(), async (text, special) => {
        const { ids, bytes, byteEnds } = await tokens.encode(text, { special });
        expect(hex(bytes)).toBe(hex(write(text)));
        expect(byteEnds.at(-1) ?? 0).toBe(bytes.length);
        if (!special) expect([...ids].filter((id) => own.isControl(id))).toEqual([]);
      }),
      { numRuns: 300 },
    );
  });

  it('gives the ids of the server itself where they say the text', async () => {
    const own = tokenizer('qwen');
    const tokens = server(own).open();
    for (const text of ['hello the inner', '<|im_start|>user\n你好 🙂<|im_end|>', '  x </p>\n\n', ''])
      expect([...(await tokens.encode(text, { special: true })).ids]).toEqual([...own.encode(text, true)]);
    const plain = await tokens.encode('hello the <br> inner', { special: false });
    expect([...plain.ids]).toEqual([...own.encode('hello the <br> inner', false)]);
  });

  it('takes off the blank that SentencePiece puts in front', async () => {
    const own = tokenizer('sentencepiece');
    const tokens = server(own).open();
    expect(read(own.bytesOf(own.encode('the', true)[0] ?? 0) ?? new Uint8Array())).toBe(' the');
    const { ids } = await tokens.encode('the', { special: true });
    expect([...ids].map((id) => read(own.bytesOf(id) ?? new Uint8Array()))).toEqual(['t', 'he']);
    expect(read((await tokens.encode(' the', { special: true })).bytes)).toBe(' the');
  });

  it('keeps control tokens whole when the text around them has to be cut', async () => {
    const own = tokenizer('qwen');
    const { ids } = await server(own).open().encode('<|im_start|>e\u0301\u2126<|im_end|>', { special: true });
    expect([...ids].filter((id) => own.isControl(id)).map((id) => read(own.bytesOf(id) ?? new Uint8Array()))).toEqual([
      '<|im_start|>',
      '<|im_end|>',
    ]);
  });

  it('cuts ten thousand control strings with a handful of requests', async () => {
    const own = tokenizer('qwen');
    const { seen, open } = server(own);
    const tokens = open();
    const text = '<|im_end|>'.repeat(10_000);
    const { ids, bytes } = await tokens.encode(text, { special: false });
    expect(read(bytes)).toBe(text);
    expect(ids.some((id) => own.isControl(id))).toBe(false);
    expect(seen.requests).toBeLessThan(40);
  });

  it('is refused, and what differs is shown, when the tokenizer has no token for a character', async () => {
    const own = tokenizer('tiny');
    const { open } = server(own, {
      tokenize: async (_http, _facts, text) => own.encode(text.replaceAll('Z', '?'), true),
    });
    await expect(open().encode('a Z b', { special: false })).rejects.toThrow(
      'The backend far (http://far:8000) turns the text "Z" into ids that say "?", so the model would read something else.',
    );
  });

  it('needs a route or a folder', () => {
    const { open } = server(tokenizer('tiny'), { tokenize: undefined, detokenize: undefined });
    expect(() => open()).toThrow('give the folder with the model');
  });
});

describe('the chat template', () => {
  const messages = [{ role: 'user' as const, content: 'hé' }];
  const options = { addGenerationPrompt: false };

  it('is that of the folder, else the text or the ids of the server', async () => {
    const own = tokenizer('qwen');
    const applyTemplate = async () => 'from the server';
    expect(await server(own, { applyTemplate }).open(own).applyTemplate(messages, options)).toBe('user: hé<|im_end|>');
    expect(await server(own, { applyTemplate }).open().applyTemplate(messages, options)).toBe('from the server');
    const ids = server(own, { applyTemplate: async () => own.encode('<|im_start|>hé', true) });
    expect(await ids.open().applyTemplate(messages, options)).toBe('<|im_start|>hé');
    const bare = tokenizer('sentencepiece');
    expect(await server(bare, { applyTemplate }).open(bare).applyTemplate(messages, options)).toBe('from the server');
    await expect(server(own).open().applyTemplate(messages, options)).rejects.toThrow(
      'has no route that renders a chat template',
    );
  });
});
