/** The metadata and tensor names of a llama-shaped model with a byte-level BPE tokenizer, as llama.cpp expects them. */
import { Invalid } from '../../core/errors';
import type { GgufFile, GgufTensor, GgufValue } from './write';

export interface LlamaShape {
  /** Number of tokens in the vocabulary. */
  vocabulary: number;
  /** Length of a token's vector. */
  width: number;
  layers: number;
  /** Attention heads; each takes width / heads numbers. */
  heads: number;
  /** Length of the vector inside the feed-forward part. */
  hidden: number;
  /** Longest sequence, in tokens. */
  context: number;
}

export const RMS_EPSILON = 1e-5;
export const ROPE_BASE = 10_000;

/** A byte-level BPE vocabulary: special tokens, the 256 bytes, merged pieces. Ids are positions in `tokens`. */
export interface ByteLevelVocabulary {
  /** Text of each token; ordinary ones in the byte alphabet of GPT-2. */
  tokens: readonly string[];
  /** How many at the front of `tokens` are special (never produced from ordinary text). */
  specialCount: number;
  /** In order of application: left piece, space, right piece. */
  merges: readonly string[];
  endOfTurn: string;
  padding: string;
  endOfText: string;
}

/** The chat format of ChatML, in the template language that GGUF files carry. */
export const CHATML_TEMPLATE =
  "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}{% endfor %}" +
  "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";

/** Every weight of a model of this shape, in file order; `rows` outputs by `columns` inputs (a vector has one row). The output layer is the embedding. */
export function llamaTensorShapes(shape: LlamaShape): { name: string; rows: number; columns: number }[] {
  const { vocabulary, width, layers, hidden } = shape;
  const list = [{ name: 'token_embd.weight', rows: vocabulary, columns: width }];
  for (let layer = 0; layer < layers; layer++) {
    const add = (name: string, rows: number, columns: number) =>
      list.push({ name: `blk.${layer}.${name}.weight`, rows, columns });
    add('attn_norm', 1, width);
    add('attn_q', width, width);
    add('attn_k', width, width);
    add('attn_v', width, width);
    add('attn_output', width, width);
    add('ffn_norm', 1, width);
    add('ffn_gate', hidden, width);
    add('ffn_up', hidden, width);
    add('ffn_down', width, hidden);
  }
  list.push({ name: 'output_norm.weight', rows: 1, columns: width });
  return list;
}

/**
 * A whole model file. `weights` by tensor name, row by row.
 * Throws Invalid when a weight is missing or the vocabulary has another size than the shape says.
 */
export function llamaGguf(input: {
  name: string;
  shape: LlamaShape;
  vocabulary: ByteLevelVocabulary;
  weights: ReadonlyMap<string, Float32Array>;
}): GgufFile {
  const { shape, vocabulary } = input;
  if (vocabulary.tokens.length !== shape.vocabulary) {
    throw new Invalid(
      `The vocabulary holds ${vocabulary.tokens.length} tokens, but the model was shaped for ${shape.vocabulary}.`,
    );
  }
  const tensors = llamaTensorShapes(shape).map(({ name, rows, columns }): GgufTensor => {
    const data = input.weights.get(name);
    if (!data) throw new Invalid(`The model file needs the weight ${name}, which was not given.`);
    return { name, dimensions: rows === 1 ? [columns] : [columns, rows], data };
  });
  return { metadata: llamaMetadata(input.name, shape, vocabulary), tensors };
}

function llamaMetadata(name: string, shape: LlamaShape, vocabulary: ByteLevelVocabulary): Map<string, GgufValue> {
  const id = (token: string): GgufValue => {
    const found = vocabulary.tokens.indexOf(token);
    if (found < 0) throw new Invalid(`The special token ${token} is not in the vocabulary.`);
    return { type: 'uint32', value: found };
  };
  const uint32 = (value: number): GgufValue => ({ type: 'uint32', value });
  const text = (value: string): GgufValue => ({ type: 'string', value });
  // llama.cpp's token types: 1 normal, 3 control (special).
  const types = vocabulary.tokens.map((_, index) => (index < vocabulary.specialCount ? 3 : 1));
  return new Map<string, GgufValue>([
    ['general.architecture', text('llama')],
    ['general.name', text(name)],
    ['general.file_type', uint32(0)],
    ['llama.context_length', uint32(shape.context)],
    ['llama.embedding_length', uint32(shape.width)],
    ['llama.block_count', uint32(shape.layers)],
    ['llama.feed_forward_length', uint32(shape.hidden)],
    ['llama.attention.head_count', uint32(shape.heads)],
    ['llama.attention.head_count_kv', uint32(shape.heads)],
    ['llama.attention.layer_norm_rms_epsilon', { type: 'float32', value: RMS_EPSILON }],
    ['llama.rope.dimension_count', uint32(shape.width / shape.heads)],
    ['llama.rope.freq_base', { type: 'float32', value: ROPE_BASE }],
    ['llama.vocab_size', uint32(shape.vocabulary)],
    ['tokenizer.ggml.model', text('gpt2')],
    ['tokenizer.ggml.pre', text('gpt-2')],
    ['tokenizer.ggml.tokens', { type: 'strings', value: vocabulary.tokens }],
    ['tokenizer.ggml.token_type', { type: 'int32s', value: types }],
    ['tokenizer.ggml.merges', { type: 'strings', value: vocabulary.merges }],
    ['tokenizer.ggml.bos_token_id', id(vocabulary.endOfText)],
    ['tokenizer.ggml.eos_token_id', id(vocabulary.endOfTurn)],
    ['tokenizer.ggml.unknown_token_id', id(vocabulary.endOfText)],
    ['tokenizer.ggml.padding_token_id', id(vocabulary.padding)],
    ['tokenizer.ggml.add_bos_token', { type: 'bool', value: false }],
    ['tokenizer.chat_template', text(CHATML_TEMPLATE)],
  ]);
}
