/** A model with random weights, small enough to write in a test: real tokens, real logits, no sense. */
import { writeFile } from 'node:fs/promises';
import { seededRandom } from '../../core/ambient';
import { type ByteLevelVocabulary, type LlamaShape, llamaGguf, llamaTensorShapes } from '../gguf/llama';
import { encodeGguf, type GgufValue } from '../gguf/write';

const SPECIAL = ['<|endoftext|>', '<|im_start|>', '<|im_end|>', '<|pad|>', '<tool_call>'];
/** llama.cpp calls such a string "user defined" and reads it as one token even in plain text. */
const USER_DEFINED = SPECIAL.indexOf('<tool_call>');
/** Pieces longer than a byte; `n:Ġ` ends a stop string `n:` inside a token. */
const MERGES = ['Ġ t', 'h e', 'Ġt he', 'i n', 'e r', 'n :', 'n: Ġ'];

export interface TinyModelOptions {
  seed?: number;
  context?: number;
  /** Attention heads, default 4. vLLM's kernels for the processor want 32 numbers a head, so 2. */
  heads?: number;
  /** The output layer as a tensor of its own, with the numbers of the embedding: the same model. */
  ownOutput?: boolean;
  /** More padding tokens at the end of the vocabulary: a vocabulary that differs. */
  extraTokens?: number;
}

/** Writes a GGUF file of about 250,000 parameters. The same options give the same bytes. */
export async function writeTinyModel(path: string, options: TinyModelOptions = {}): Promise<void> {
  const { seed = 1, context = 1024, heads = 4, ownOutput = false, extraTokens = 0 } = options;
  const extra = Array.from({ length: extraTokens }, (_, k) => `unused${k}`);
  const tokens = [...SPECIAL, ...byteCharacters(), ...MERGES.map((merge) => merge.replace(' ', '')), ...extra];
  const vocabulary: ByteLevelVocabulary = {
    tokens,
    specialCount: SPECIAL.length,
    merges: MERGES,
    endOfTurn: '<|im_end|>',
    padding: '<|pad|>',
    endOfText: '<|endoftext|>',
  };
  const shape: LlamaShape = { vocabulary: tokens.length, width: 64, layers: 3, heads, hidden: 160, context };
  const random = seededRandom(seed);
  const weights = new Map<string, Float32Array>();
  for (const { name, rows, columns } of llamaTensorShapes(shape)) {
    // Norms start at one; the rest is scaled so that the logits spread over a few units.
    const scale = rows === 1 ? 0 : name.startsWith('token_embd') ? 0.25 : 2 / Math.sqrt(columns);
    const offset = rows === 1 ? 1 : 0;
    const data = Float32Array.from(
      { length: rows * columns },
      () => offset + scale * (random() + random() + random() - 1.5),
    );
    weights.set(name, data);
  }
  const file = llamaGguf({ name: 'tiny', shape, vocabulary, weights });
  const types: GgufValue = {
    type: 'int32s',
    value: tokens.map((_, k) => (k === USER_DEFINED ? 4 : k < SPECIAL.length ? 3 : 1)),
  };
  const metadata = new Map([...file.metadata, ['tokenizer.ggml.token_type', types] as const]);
  const embedding = file.tensors.find(({ name }) => name === 'token_embd.weight');
  const tensors = ownOutput && embedding ? [...file.tensors, { ...embedding, name: 'output.weight' }] : file.tensors;
  await writeFile(path, encodeGguf({ ...file, tensors, metadata }));
}

/** The 256 characters that stand for bytes in a byte-level vocabulary, in the order of the bytes. */
function byteCharacters(): string[] {
  let next = 256;
  return Array.from({ length: 256 }, (_, byte) => {
    const printable = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
    return String.fromCodePoint(printable ? byte : next++);
  });
}
