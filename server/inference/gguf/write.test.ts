import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { getLlama, type Llama, LlamaLogLevel, type LlamaModel, readGgufFileInfo } from 'node-llama-cpp';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { seededRandom } from '../../core/ambient';
import { type ByteLevelVocabulary, CHATML_TEMPLATE, type LlamaShape, llamaGguf, llamaTensorShapes } from './llama';
import { encodeGguf } from './write';

const SPECIAL = ['<|endoftext|>', '<|im_start|>', '<|im_end|>', '<|pad|>'];

/** GPT-2's byte alphabet and the one merge "h i". */
function smallVocabulary(): ByteLevelVocabulary {
  let next = 256;
  const bytes = Array.from({ length: 256 }, (_, byte) => {
    const printable = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
    return String.fromCharCode(printable ? byte : next++);
  });
  return {
    tokens: [...SPECIAL, ...bytes, 'hi'],
    specialCount: SPECIAL.length,
    merges: ['h i'],
    endOfText: '<|endoftext|>',
    endOfTurn: '<|im_end|>',
    padding: '<|pad|>',
  };
}

const SHAPE: LlamaShape = { vocabulary: 261, width: 16, layers: 1, heads: 2, hidden: 16, context: 64 };

function randomWeights(shape: LlamaShape): Map<string, Float32Array> {
  const random = seededRandom(7);
  return new Map(
    llamaTensorShapes(shape).map(({ name, rows, columns }) => [
      name,
      Float32Array.from({ length: rows * columns }, () => random() - 0.5),
    ]),
  );
}

describe('a GGUF file', () => {
  let folder: string;
  let path: string;
  let llama: Llama;
  let model: LlamaModel;
  const file = llamaGguf({ name: 'small', shape: SHAPE, vocabulary: smallVocabulary(), weights: randomWeights(SHAPE) });

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'gguf-test-'));
    path = join(folder, 'small.gguf');
    await writeFile(path, encodeGguf(file));
    llama = await getLlama({ gpu: false, build: 'never', logLevel: LlamaLogLevel.error, maxThreads: 1 });
    model = await llama.loadModel({ modelPath: path });
  });
  afterAll(async () => {
    await llama.dispose();
    await rm(folder, { recursive: true, force: true });
  });

  it('is read back with the metadata and the tensors that were written', async () => {
    const info = await readGgufFileInfo(path, { logWarnings: false });
    expect(info.version).toBe(3);
    expect(info.metadata.general.architecture).toBe('llama');
    expect(info.metadata.general.name).toBe('small');
    expect(info.metadata.tokenizer.chat_template).toBe(CHATML_TEMPLATE);
    expect(info.metadata.tokenizer.ggml.merges).toEqual(['h i']);
    expect(info.metadata.tokenizer.ggml.token_type.slice(0, 5)).toEqual([3, 3, 3, 3, 1]);
    const tensors = info.fullTensorInfo ?? [];
    expect(tensors.map(({ name, dimensions }) => [name, dimensions.map(Number)])).toEqual(
      file.tensors.map(({ name, dimensions }) => [name, dimensions]),
    );
  });

  it('is loaded by llama.cpp, which encodes any text with it and gives it back', () => {
    expect(model.tokenize('hi', false)).toEqual([260]);
    expect(model.tokenize('<|im_end|>', true)).toEqual([2]);
    expect(model.tokenize('<|im_end|>', false).length).toBeGreaterThan(5);
    for (const text of ['hi there\n', '数字 7 → 8', 'é🙂\t{"n": 5}']) {
      expect(model.detokenize(model.tokenize(text, false))).toBe(text);
    }
    expect(model.isEogToken(model.tokenize('<|im_end|>', true)[0])).toBe(true);
  });

  it('carries the weights bit by bit', () => {
    const bytes = encodeGguf(file);
    const last = file.tensors.at(-1);
    const length = (last?.data.length ?? 0) * 4;
    const padded = Math.ceil(length / 32) * 32;
    const start = bytes.length - padded;
    expect(new Float32Array(bytes.buffer.slice(start, start + length))).toEqual(last?.data);
  });

  it('has the same bytes for the same content', () => {
    expect(Buffer.compare(encodeGguf(file), encodeGguf(file))).toBe(0);
  });

  it('is refused with a sentence when a tensor does not fit its dimensions or appears twice', () => {
    const tensor = { name: 'a', dimensions: [2, 3], data: new Float32Array(5) };
    expect(() => encodeGguf({ metadata: new Map(), tensors: [tensor] })).toThrow(
      'The tensor a cannot be written: its dimensions [2, 3] hold 6 numbers, but 5 were given.',
    );
    const twice = { name: 'a', dimensions: [5], data: new Float32Array(5) };
    expect(() => encodeGguf({ metadata: new Map(), tensors: [twice, twice] })).toThrow('The tensor a was given twice');
  });

  it('is refused when a weight is missing or the vocabulary has another size', () => {
    const weights = randomWeights(SHAPE);
    weights.delete('output_norm.weight');
    const vocabulary = smallVocabulary();
    expect(() => llamaGguf({ name: 'x', shape: SHAPE, vocabulary, weights })).toThrow('output_norm.weight');
    expect(() => llamaGguf({ name: 'x', shape: { ...SHAPE, vocabulary: 300 }, vocabulary, weights })).toThrow(
      'The vocabulary holds 261 tokens, but the model was shaped for 300.',
    );
  });
});
