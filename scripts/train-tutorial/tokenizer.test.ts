import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import type { Llama } from 'node-llama-cpp';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { llamaGguf, llamaTensorShapes } from '../../server/inference/gguf/llama';
import { encodeGguf } from '../../server/inference/gguf/write';
import type { Encode } from './conversation';
import { openLlama, openTokenizer } from './llama';
import { byteAlphabet, learnVocabulary, SPECIAL_TOKENS } from './tokenizer';

const TEXTS = new Map([
  ['Thought: between 1 and 15, try 8.\n', 30],
  ['Action: {"tool":"probe","args":{"n":8}}\n', 20],
  [' higher\n', 10],
]);

describe('the vocabulary', () => {
  it('holds the special tokens, every byte once, and the merges in the order they were learnt', () => {
    const { tokens, merges, specialCount } = learnVocabulary(TEXTS, 280);
    expect(tokens).toHaveLength(280);
    expect(tokens.slice(0, specialCount)).toEqual([...SPECIAL_TOKENS]);
    expect(tokens.slice(4, 260)).toEqual(byteAlphabet());
    expect(new Set(tokens).size).toBe(280);
    expect(tokens.slice(260)).toEqual(merges.map((merge) => merge.replace(' ', '')));
  });

  it('merges the most frequent pair first and does not depend on the order of the texts', () => {
    expect(learnVocabulary(new Map([['abab ab', 1]]), 261).merges).toEqual(['a b']);
    expect(learnVocabulary(new Map([...TEXTS].reverse()), 300)).toEqual(learnVocabulary(TEXTS, 300));
  });

  it('never merges across the places where llama.cpp splits text', () => {
    const { tokens } = learnVocabulary(TEXTS, 304);
    expect(tokens).toContain('Thought');
    expect(tokens).toContain('Ġ15');
    expect(tokens.some((token, i) => i >= 260 && /[a-z]:|\d,/.test(token))).toBe(false);
  });

  it('says when the text is too poor for the size that was asked for', () => {
    expect(() => learnVocabulary(new Map([['ab', 1]]), 300)).toThrow('pairs for 261 tokens only; 300 were asked for');
  });
});

describe('the vocabulary in llama.cpp', () => {
  const vocabulary = learnVocabulary(TEXTS, 304);
  let llama: Llama;
  let tokenizer: { encode: Encode; close(): Promise<void> };
  let folder: string;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'tokenizer-test-'));
    const shape = { vocabulary: 304, width: 8, layers: 1, heads: 2, hidden: 8, context: 64 };
    const weights = new Map(
      llamaTensorShapes(shape).map(({ name, rows, columns }) => [name, new Float32Array(rows * columns)]),
    );
    await writeFile(join(folder, 'v.gguf'), encodeGguf(llamaGguf({ name: 'v', shape, vocabulary, weights })));
    llama = await openLlama();
    tokenizer = await openTokenizer(llama, join(folder, 'v.gguf'));
  });
  afterAll(async () => {
    await tokenizer.close();
    await llama.dispose();
    await rm(folder, { recursive: true, force: true });
  });

  it('gives whole words for the text it was learnt on', () => {
    const pieces = tokenizer.encode('Thought: between 1 and 15, try 8.\n', false).map((id) => vocabulary.tokens[id]);
    expect(pieces).toEqual(['Thought', ':', 'Ġbetween', 'Ġ1', 'Ġand', 'Ġ15', ',', 'Ġtry', 'Ġ8', '.', 'Ċ']);
  });

  it('encodes any text into bytes that are the text', () => {
    const alphabet = byteAlphabet();
    const byteOf = new Map(alphabet.map((character, byte) => [character, byte]));
    const decode = (ids: readonly number[]) =>
      new TextDecoder('utf-8', { ignoreBOM: true }).decode(
        Uint8Array.from(
          ids.flatMap((id) => [...(vocabulary.tokens[id] as string)].map((c) => byteOf.get(c) as number)),
        ),
      );
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', minLength: 1, maxLength: 60 }), (text) => {
        expect(decode(tokenizer.encode(text, false))).toBe(text);
      }),
    );
  });

  it('makes control tokens of control strings only where that is asked for', () => {
    expect(tokenizer.encode('<|im_end|>', true)).toEqual([2]);
    expect(tokenizer.encode('<|im_end|>', false)).not.toContain(2);
  });
});
