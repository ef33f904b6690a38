/** A model of ours as a Hugging Face checkpoint, the folder that vLLM, SGLang and TensorRT-LLM serve. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Invalid } from '../../core/errors';
import { idOf, tokenizerFiles } from './hf-tokenizer';
import { encodeSafetensors, type NamedTensor } from './safetensors';
import type { GgufFile, GgufTensor } from './write';

/** Names of the two families for one weight of a layer. */
const LAYER_NAMES: Record<string, string> = {
  attn_norm: 'input_layernorm',
  attn_q: 'self_attn.q_proj',
  attn_k: 'self_attn.k_proj',
  attn_v: 'self_attn.v_proj',
  attn_output: 'self_attn.o_proj',
  ffn_norm: 'post_attention_layernorm',
  ffn_gate: 'mlp.gate_proj',
  ffn_up: 'mlp.up_proj',
  ffn_down: 'mlp.down_proj',
};
const OUTER_NAMES: Record<string, string> = {
  'token_embd.weight': 'model.embed_tokens.weight',
  'output_norm.weight': 'model.norm.weight',
  'output.weight': 'lm_head.weight',
};

/** Writes config.json, generation_config.json, model.safetensors, tokenizer.json and tokenizer_config.json, all float32.
 * Throws Invalid when the file is no llama-shaped model with a byte-level BPE tokenizer. */
export async function writeCheckpoint(folder: string, gguf: GgufFile): Promise<void> {
  const architecture = gguf.metadata.get('general.architecture')?.value;
  if (architecture !== 'llama')
    throw new Invalid(`A ${String(architecture)} model cannot be written as a checkpoint; only llama-shaped ones can.`);
  const { tokenizer, config } = tokenizerFiles(gguf);
  const ids = {
    bos_token_id: null,
    eos_token_id: idOf(gguf.metadata, 'eos'),
    pad_token_id: idOf(gguf.metadata, 'padding'),
  };
  await mkdir(folder, { recursive: true });
  const write = (name: string, content: unknown) =>
    writeFile(join(folder, name), `${JSON.stringify(content, null, 1)}\n`);
  await write('config.json', { ...modelConfig(gguf), ...ids });
  await write('generation_config.json', ids);
  await write('tokenizer.json', tokenizer);
  await write('tokenizer_config.json', config);
  await writeFile(
    join(folder, 'model.safetensors'),
    encodeSafetensors(gguf.tensors.map((tensor) => named(tensor, gguf))),
  );
}

function modelConfig(gguf: GgufFile): Record<string, unknown> {
  const heads = number(gguf, 'attention.head_count');
  return {
    architectures: ['LlamaForCausalLM'],
    model_type: 'llama',
    // The newer and the older spelling: servers read one of them.
    dtype: 'float32',
    torch_dtype: 'float32',
    vocab_size: number(gguf, 'vocab_size'),
    hidden_size: number(gguf, 'embedding_length'),
    intermediate_size: number(gguf, 'feed_forward_length'),
    num_hidden_layers: number(gguf, 'block_count'),
    num_attention_heads: heads,
    num_key_value_heads: number(gguf, 'attention.head_count_kv'),
    head_dim: number(gguf, 'embedding_length') / heads,
    max_position_embeddings: number(gguf, 'context_length'),
    rms_norm_eps: number(gguf, 'attention.layer_norm_rms_epsilon'),
    rope_theta: number(gguf, 'rope.freq_base'),
    rope_parameters: { rope_type: 'default', rope_theta: number(gguf, 'rope.freq_base') },
    hidden_act: 'silu',
    attention_bias: false,
    mlp_bias: false,
    attention_dropout: 0,
    tie_word_embeddings: !gguf.tensors.some(({ name }) => name === 'output.weight'),
    use_cache: true,
  };
}

function number({ metadata }: GgufFile, key: string): number {
  const value = metadata.get(`llama.${key}`)?.value;
  if (typeof value !== 'number')
    throw new Invalid(`The GGUF file does not say llama.${key}, which a checkpoint needs.`);
  return value;
}

function named(tensor: GgufTensor, gguf: GgufFile): NamedTensor {
  const shape = [...tensor.dimensions].reverse();
  const layer = /^blk\.(\d+)\.(\w+)\.weight$/.exec(tensor.name);
  const inner = LAYER_NAMES[layer?.[2] ?? ''];
  const name = layer && inner ? `model.layers.${layer[1]}.${inner}.weight` : OUTER_NAMES[tensor.name];
  if (!name) throw new Invalid(`The tensor ${tensor.name} has no place in a llama checkpoint.`);
  const heads =
    layer?.[2] === 'attn_q' ? 'attention.head_count' : layer?.[2] === 'attn_k' ? 'attention.head_count_kv' : null;
  return { name, shape, data: heads ? halfSplit(tensor.data, number(gguf, heads), shape) : tensor.data };
}

/**
 * llama.cpp turns neighbouring rows of a head against each other (0 with 1, 2 with 3 …), Hugging Face a row of the first
 * half with one of the second; the rows are put in its order.
 */
function halfSplit(data: Float32Array, heads: number, [rows = 0, columns = 0]: readonly number[]): Float32Array {
  const size = rows / heads;
  const out = new Float32Array(data.length);
  for (let row = 0; row < rows; row++) {
    const inHead = row % size;
    const target = row - inHead + (inHead % 2) * (size / 2) + Math.floor(inHead / 2);
    out.set(data.subarray(row * columns, (row + 1) * columns), target * columns);
  }
  return out;
}
