import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { silentLogger } from '../../observability/logger';
import { EmbeddedBackend } from '../embedded/embedded-backend';
import { writeTinyCheckpoint } from '../testing/checkpoint';
import { writeTinyModel } from '../testing/tiny-model';
import { writeQwenTokenizer, writeSentencePieceTokenizer } from '../testing/tokenizer-folder';
import { LocalTokenizer } from './local-tokenizer';

const TEXTS = [
  'hello the inner',
  '  two  blanks ',
  'x\n\ny\r\n',
  '你好 é',
  'e\u0301 \u212b',
  '\u{1F642}',
  "it's IT'S",
  '<|im_start|>a<tool_call>b</s>',
  '<s>',
  '12 345',
  '\ufeff a\u0085 b\u2001c',
  '\ufffd </p>',
];
/** What the tokenizers library of Hugging Face (Rust, 0.23) makes of TEXTS with the same files. */
const TINY_IDS = [
  [262, 113, 113, 116, 263, 37, 264, 115, 265],
  [37, 261, 124, 116, 37, 37, 103, 113, 102, 115, 112, 120, 37],
  [125, 15, 15, 126, 18, 15],
  [233, 194, 165, 234, 170, 194, 37, 200, 174],
  [106, 209, 134, 37, 231, 137, 176],
  [245, 164, 158, 135],
  [110, 121, 44, 120, 37, 78, 89, 44, 88],
  [1, 102, 4, 103, 65, 52, 120, 67],
  [65, 120, 67],
  [54, 55, 37, 56, 57, 58],
  [244, 192, 196, 37, 102, 199, 138, 37, 103, 231, 133, 134, 104],
  [244, 196, 194, 37, 65, 52, 117, 67],
];
const QWEN_IDS = [
  [257, 108, 108, 111, 258, 32, 259, 110, 101, 114],
  [32, 256, 119, 111, 32, 32, 98, 108, 97, 110, 107, 115, 32],
  [120, 10, 10, 121, 13, 10],
  [267, 160, 229, 165, 189, 32, 260],
  [260, 32, 195, 133],
  [240, 159, 153, 130],
  [105, 116, 261, 32, 73, 84, 39, 83],
  [271, 97, 273, 98, 264, 115, 62],
  [60, 115, 62],
  [49, 50, 32, 51, 52, 53],
  [239, 187, 191, 32, 97, 194, 133, 32, 98, 226, 128, 131, 99],
  [269, 32, 264, 112, 62],
];
const SENTENCEPIECE_IDS = [
  [344, 340, 259, 346, 273, 347],
  [345, 338, 282, 274, 345, 261, 271, 260, 273, 270, 278, 259],
  [259, 283, 13, 13, 284, 16, 13],
  [259, 337, 232, 168, 192, 259, 336],
  [259, 264, 207, 132, 259, 229, 135, 174],
  [259, 243, 162, 156, 133],
  [259, 268, 279, 42, 278, 259, 294, 305, 42, 304],
  [
    259, 328, 333, 268, 272, 334, 278, 279, 260, 277, 279, 333, 329, 260, 328, 279, 274, 274, 271, 334, 262, 260, 341,
    329, 261, 2,
  ],
  [1],
  [259, 313, 314, 259, 315, 316, 317],
  [259, 242, 190, 194, 259, 260, 197, 136, 259, 261, 229, 131, 132, 262],
  [259, 242, 194, 192, 259, 328, 332, 275, 329],
];

let folder: string;
const at = (name: string) => join(folder, name);

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'local-tokenizer-'));
  await writeTinyCheckpoint(at('tiny'));
  await writeTinyModel(at('tiny.gguf'));
  await writeQwenTokenizer(at('qwen'));
  await writeSentencePieceTokenizer(at('sentencepiece'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const textOf = (tokenizer: LocalTokenizer, ids: Iterable<number>) =>
  Buffer.concat([...ids].map((id) => tokenizer.bytesOf(id) ?? Buffer.alloc(0))).toString('utf8');

describe('a tokenizer folder', () => {
  it.each([
    ['tiny', TINY_IDS],
    ['qwen', QWEN_IDS],
    ['sentencepiece', SENTENCEPIECE_IDS],
  ])('encodes as the library of Hugging Face does: %s', async (name, ids) => {
    const tokenizer = await LocalTokenizer.open(at(name));
    expect(TEXTS.map((text) => [...tokenizer.encode(text, true)])).toEqual(ids);
  });

  it('encodes as llama.cpp does with the same model, control strings on and off', async () => {
    const tokenizer = await LocalTokenizer.open(at('tiny'));
    const backend = await EmbeddedBackend.open({
      name: 'tiny',
      modelPath: at('tiny.gguf'),
      threads: 1,
      logger: silentLogger,
    });
    try {
      for (const text of TEXTS) {
        const wanted = await backend.tokenize(text, { special: true });
        expect([...tokenizer.encode(text, true)], JSON.stringify(text)).toEqual([...wanted.ids]);
        expect(textOf(tokenizer, wanted.ids)).toBe(text);
      }
      const { ids } = await backend.tokenize('<|im_start|>', { special: false });
      expect([...tokenizer.encode('<|im_start|>', false)]).toEqual([...ids]);
      const messages = [{ role: 'user' as const, content: 'hi\n' }];
      expect(tokenizer.applyTemplate(messages, { addGenerationPrompt: true })).toBe(
        await backend.applyTemplate(messages, { addGenerationPrompt: true }),
      );
    } finally {
      await backend.close();
    }
  });

  it("splits white space as Unicode has it, not as JavaScript's patterns do", async () => {
    await writeTinyCheckpoint(at('blanks'));
    const file = join(at('blanks'), 'tokenizer.json');
    const json = JSON.parse(await readFile(file, 'utf8'));
    const id = Object.keys(json.model.vocab).length;
    json.model.vocab.ĠĠ = id;
    json.model.merges.push('Ġ Ġ');
    await writeFile(file, JSON.stringify(json));
    const tokenizer = await LocalTokenizer.open(at('blanks'));
    expect([...tokenizer.encode('  ', true)]).toEqual([id]);
    // A byte order mark is no white space: the second blank belongs to it.
    expect([...tokenizer.encode('  \ufeff', true)]).toEqual([37, 37, 244, 192, 196]);
  });

  it('makes no added token of plain text, but keeps its text', async () => {
    const tokenizer = await LocalTokenizer.open(at('qwen'));
    const text = 'a<|im_end|><tool_call></think><|im_end|>';
    expect([...tokenizer.encode(text, true)].filter((id) => tokenizer.isControl(id))).toHaveLength(4);
    const plain = tokenizer.encode(text, false);
    expect([...plain].filter((id) => tokenizer.isControl(id))).toEqual([]);
    expect(textOf(tokenizer, plain)).toBe(text);
  });

  it('knows the bytes of fragments, of bytes to fall back on and of special tokens', async () => {
    const qwen = await LocalTokenizer.open(at('qwen'));
    expect([...(qwen.bytesOf(0xff) ?? [])]).toEqual([0xff]);
    expect([...(qwen.bytesOf(267) ?? [])]).toEqual([0xe4, 0xbd]);
    expect(textOf(qwen, [271, 273])).toBe('<|im_start|><tool_call>');
    expect(qwen.bytesOf(99_999)).toBeNull();
    const sentencePiece = await LocalTokenizer.open(at('sentencepiece'));
    expect([...(sentencePiece.bytesOf(3 + 0xc3) ?? [])]).toEqual([0xc3]);
    expect(textOf(sentencePiece, sentencePiece.encode('the', true))).toBe(' the');
  });

  it('takes the template for tools when there are tools, and the file before the config', async () => {
    const messages = [{ role: 'user' as const, content: 'hi' }];
    const tools = [{ name: 'add', description: 'adds', parameters: {} }];
    const qwen = await LocalTokenizer.open(at('qwen'));
    expect(qwen.applyTemplate(messages, { addGenerationPrompt: false })).toBe('user: hi<|im_end|>');
    expect(qwen.applyTemplate(messages, { addGenerationPrompt: false, tools })).toBe('[function add]');
    await writeQwenTokenizer(at('with-file'));
    await writeFile(join(at('with-file'), 'chat_template.jinja'), '{{ messages[0].content | upper }}');
    const withFile = await LocalTokenizer.open(at('with-file'));
    expect(withFile.applyTemplate(messages, { addGenerationPrompt: false, tools })).toBe('HI');
    const without = await LocalTokenizer.open(at('sentencepiece'));
    expect(without.hasTemplate).toBe(false);
    expect(() => without.applyTemplate(messages, { addGenerationPrompt: false })).toThrow('without a chat template');
  });

  it('is refused with a sentence that names the file when it is missing, broken or of another kind', async () => {
    await expect(LocalTokenizer.open(at('nowhere'))).rejects.toThrow(`There is no tokenizer.json in ${at('nowhere')}`);
    const write = async (name: string, text: string, config = '{}') => {
      await mkdir(at(name), { recursive: true });
      await writeFile(join(at(name), 'tokenizer.json'), text);
      await writeFile(join(at(name), 'tokenizer_config.json'), config);
      return LocalTokenizer.open(at(name));
    };
    const file = (name: string) => join(at(name), 'tokenizer.json');
    await expect(write('cut', '{"model": {')).rejects.toThrow(`The file ${file('cut')} is no JSON`);
    await expect(write('list', '[]')).rejects.toThrow(`The file ${file('list')} is no JSON object.`);
    await expect(write('empty', '{}')).rejects.toThrow(`The file ${file('empty')} has no model with a vocabulary.`);
    await expect(write('words', '{"model":{"type":"WordPiece","vocab":{"a":0}}}')).rejects.toThrow(
      `The tokenizer in ${at('words')} is of a kind (WordPiece)`,
    );
    await writeQwenTokenizer(at('template'));
    await writeFile(join(at('template'), 'tokenizer_config.json'), '{"chat_template": "{% if %}"}');
    await expect(LocalTokenizer.open(at('template'))).rejects.toThrow(
      `The chat template in ${join(at('template'), 'tokenizer_config.json')} cannot be read`,
    );
  });
});
