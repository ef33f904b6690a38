import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { writeTinyCheckpoint, writeTinyLora } from '../testing/checkpoint';
import { writeTinyModel } from '../testing/tiny-model';
import { decodeGguf } from './read';
import { writeCheckpoint } from './to-checkpoint';
import { encodeGguf, type GgufFile } from './write';

let folder: string;
let gguf: GgufFile;
let bytes: Buffer;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'checkpoint-'));
  await writeTinyModel(join(folder, 'tiny.gguf'), { seed: 3, extraTokens: 2 });
  bytes = await readFile(join(folder, 'tiny.gguf'));
  gguf = decodeGguf(bytes, 'tiny.gguf');
  await writeTinyCheckpoint(join(folder, 'tiny'), { seed: 3, extraTokens: 2 });
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const json = async (path: string) => JSON.parse(await readFile(join(folder, path), 'utf8'));

/** Read by the format's own rules, not by our writer's. */
async function readTensors(path: string): Promise<Map<string, { shape: number[]; data: Float32Array }>> {
  const file = await readFile(join(folder, path));
  const start = 8 + Number(file.readBigUInt64LE(0));
  expect(start % 8).toBe(0);
  const header = JSON.parse(file.toString('utf8', 8, start));
  let end = 0;
  const tensors = new Map<string, { shape: number[]; data: Float32Array }>();
  for (const [name, { dtype, shape, data_offsets }] of Object.entries<{
    dtype: string;
    shape: number[];
    data_offsets: [number, number];
  }>(header)) {
    if (name === '__metadata__') continue;
    expect(dtype).toBe('F32');
    expect(data_offsets[0]).toBe(end);
    end = data_offsets[1];
    tensors.set(name, {
      shape,
      data: new Float32Array(Uint8Array.from(file.subarray(start + data_offsets[0], start + end)).buffer),
    });
  }
  expect(start + end).toBe(file.length);
  return tensors;
}

describe('a GGUF file read back', () => {
  it('is the same file, byte by byte', () => {
    expect(Buffer.compare(encodeGguf(gguf), bytes)).toBe(0);
  });

  it('is refused with its name when it is no GGUF, cut short, or of types that are not ours', () => {
    const read = (content: Uint8Array) => () => decodeGguf(content, 'x.gguf');
    expect(read(Buffer.from('hello there, no model'))).toThrow('The file x.gguf is no GGUF file of version 3.');
    for (const length of [3, 20, 400, bytes.length - 40])
      expect(read(bytes.subarray(0, length))).toThrow('The GGUF file x.gguf is cut short or damaged');
    const quantised = Buffer.from(bytes);
    const place = quantised.indexOf('token_embd.weight') + 'token_embd.weight'.length + 4 + 16;
    quantised.writeUInt32LE(8, place);
    expect(read(quantised)).toThrow('The tensor token_embd.weight in x.gguf is of type 8');
    const strange = Buffer.from(bytes);
    strange.writeUInt32LE(10, strange.indexOf('general.file_type') + 'general.file_type'.length);
    expect(read(strange)).toThrow('The entry general.file_type in x.gguf is of a type that is not read here');
  });
});

describe('a checkpoint', () => {
  it('describes the model and its special tokens', async () => {
    expect(await json('tiny/config.json')).toMatchObject({
      architectures: ['LlamaForCausalLM'],
      dtype: 'float32',
      hidden_size: 64,
      num_hidden_layers: 3,
      num_attention_heads: 4,
      intermediate_size: 160,
      vocab_size: 270,
      max_position_embeddings: 1024,
      tie_word_embeddings: true,
      rope_theta: 10_000,
      bos_token_id: null,
      eos_token_id: 2,
      pad_token_id: 3,
    });
    expect(await json('tiny/tokenizer_config.json')).toMatchObject({
      bos_token: null,
      eos_token: '<|im_end|>',
      pad_token: '<|pad|>',
      add_bos_token: false,
      chat_template: expect.stringContaining('<|im_start|>'),
    });
    const { added_tokens, model } = await json('tiny/tokenizer.json');
    expect(
      added_tokens.map(({ content, special }: { content: string; special: boolean }) => [content, special]),
    ).toEqual([
      ['<|endoftext|>', true],
      ['<|im_start|>', true],
      ['<|im_end|>', true],
      ['<|pad|>', true],
      ['<tool_call>', false],
    ]);
    expect(Object.keys(model.vocab)).toHaveLength(270);
  });

  it('holds every weight by the name and shape that Hugging Face uses', async () => {
    const tensors = await readTensors('tiny/model.safetensors');
    expect(tensors.size).toBe(gguf.tensors.length);
    expect(tensors.get('model.embed_tokens.weight')?.shape).toEqual([270, 64]);
    expect(tensors.get('model.layers.2.mlp.gate_proj.weight')?.shape).toEqual([160, 64]);
    expect(tensors.get('model.layers.2.mlp.down_proj.weight')?.shape).toEqual([64, 160]);
    const norm = gguf.tensors.find(({ name }) => name === 'blk.1.attn_v.weight');
    expect(tensors.get('model.layers.1.self_attn.v_proj.weight')?.data).toEqual(norm?.data);
  });

  it('gives the same attention scores as llama.cpp, each with its own way to turn a head', async () => {
    const tensors = await readTensors('tiny/model.safetensors');
    const weight = (name: string) => gguf.tensors.find((tensor) => tensor.name === name)?.data ?? new Float32Array();
    const x = Float64Array.from({ length: 64 }, (_, k) => Math.sin(k + 1));
    const y = Float64Array.from({ length: 64 }, (_, k) => Math.cos(2 * k));
    const hf = (name: string) => tensors.get(`model.layers.1.self_attn.${name}.weight`)?.data ?? new Float32Array();
    for (let head = 0; head < 4; head++) {
      const pairs: [number[], number[]][] = [
        [
          turn(project(weight('blk.1.attn_q.weight'), x, head), 5, 'neighbours'),
          turn(project(weight('blk.1.attn_k.weight'), y, head), 2, 'neighbours'),
        ],
        [turn(project(hf('q_proj'), x, head), 5, 'halves'), turn(project(hf('k_proj'), y, head), 2, 'halves')],
      ];
      const [llama = 0, huggingFace = 1] = pairs.map(([q, k]) =>
        q.reduce((sum, each, i) => sum + each * (k[i] ?? 0), 0),
      );
      expect(huggingFace).toBeCloseTo(llama, 6);
      expect(Math.abs(llama)).toBeGreaterThan(1e-3);
    }
  });

  it('is refused for a model of another kind', async () => {
    const other = (changes: [string, string][]) =>
      writeCheckpoint(join(folder, 'other'), {
        ...gguf,
        metadata: new Map([
          ...gguf.metadata,
          ...changes.map(([key, value]) => [key, { type: 'string' as const, value }] as const),
        ]),
      });
    await expect(other([['general.architecture', 'qwen3']])).rejects.toThrow('A qwen3 model cannot be written');
    await expect(other([['tokenizer.ggml.pre', 'llama-bpe']])).rejects.toThrow('the pre-tokenizer llama-bpe');
    const strange = {
      ...gguf,
      tensors: [...gguf.tensors, { name: 'blk.0.extra.weight', dimensions: [1], data: new Float32Array(1) }],
    };
    await expect(writeCheckpoint(join(folder, 'strange'), strange)).rejects.toThrow(
      'The tensor blk.0.extra.weight has no place',
    );
  });
});

describe('an adapter', () => {
  it('is a PEFT adapter of the query and value projections', async () => {
    await writeTinyLora(join(folder, 'lora'), { rank: 8, seed: 2 });
    expect(await json('lora/adapter_config.json')).toMatchObject({
      peft_type: 'LORA',
      r: 8,
      target_modules: ['q_proj', 'v_proj'],
    });
    const tensors = await readTensors('lora/adapter_model.safetensors');
    expect(tensors.size).toBe(12);
    expect(tensors.get('base_model.model.model.layers.2.self_attn.v_proj.lora_A.weight')?.shape).toEqual([8, 64]);
    expect(tensors.get('base_model.model.model.layers.2.self_attn.v_proj.lora_B.weight')?.shape).toEqual([64, 8]);
  });
});

/** The 16 rows of one head times a vector. */
function project(weight: Float32Array, vector: Float64Array, head: number): number[] {
  return Array.from({ length: 16 }, (_, row) =>
    vector.reduce((sum, each, k) => sum + each * (weight[(head * 16 + row) * 64 + k] ?? 0), 0),
  );
}

/** Rotary position embedding of one head: pairs of neighbouring numbers, or of one in each half. */
function turn(head: number[], position: number, way: 'neighbours' | 'halves'): number[] {
  const out = [...head];
  for (let pair = 0; pair < 8; pair++) {
    const [a, b] = way === 'neighbours' ? [2 * pair, 2 * pair + 1] : [pair, pair + 8];
    const angle = position * 10_000 ** (-pair / 8);
    const [left, right] = [head[a] ?? 0, head[b] ?? 0];
    out[a] = left * Math.cos(angle) - right * Math.sin(angle);
    out[b] = left * Math.sin(angle) + right * Math.cos(angle);
  }
  return out;
}
