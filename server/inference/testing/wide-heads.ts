/**
 * A checkpoint with 16 numbers an attention head as the same model with 32: vLLM's kernels for the processor want at least
 * 32. The tutorial's policy is such a one.
 */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { encodeSafetensors, type NamedTensor } from '../gguf/safetensors';

/**
 * Position i of half a head goes to 2i, and the positions between are zero. So each pair keeps its angle (base^(-2i/16)
 * is base^(-4i/32)), and the attention weights stay the same when the queries are larger by the root of two. Also writes
 * the output layer as a tensor of its own, which a reload wants.
 */
export async function widenHeads(folder: string): Promise<void> {
  const configPath = join(folder, 'config.json');
  const config = JSON.parse(await readFile(configPath, 'utf8'));
  const narrow: number = config.head_dim;
  const target = (row: number) => {
    const inHead = row % narrow;
    return (row - inHead) * 2 + (inHead < narrow / 2 ? 2 * inHead : 2 * (inHead - narrow / 2) + narrow);
  };
  const weights = join(folder, 'model.safetensors');
  const tensors = decodeSafetensors(await readFile(weights)).map((tensor) => {
    const projection = /self_attn\.([qkvo])_proj\.weight$/.exec(tensor.name)?.[1];
    if (!projection) return tensor;
    return projection === 'o'
      ? wideColumns(tensor, target)
      : wideRows(tensor, target, projection === 'q' ? Math.SQRT2 : 1);
  });
  const embedding = tensors.find(({ name }) => name === 'model.embed_tokens.weight');
  if (embedding && !tensors.some(({ name }) => name === 'lm_head.weight'))
    tensors.push({ ...embedding, name: 'lm_head.weight' });
  await writeFile(weights, encodeSafetensors(tensors));
  await writeFile(configPath, JSON.stringify({ ...config, head_dim: 2 * narrow, tie_word_embeddings: false }, null, 1));
}

type Place = (at: number) => number;

function wideRows({ name, shape, data }: NamedTensor, target: Place, scale: number): NamedTensor {
  const [rows = 0, columns = 0] = shape;
  const wide = new Float32Array(2 * data.length);
  for (let row = 0; row < rows; row++)
    for (let column = 0; column < columns; column++)
      wide[target(row) * columns + column] = scale * (data[row * columns + column] as number);
  return { name, shape: [2 * rows, columns], data: wide };
}

function wideColumns({ name, shape, data }: NamedTensor, target: Place): NamedTensor {
  const [rows = 0, columns = 0] = shape;
  const wide = new Float32Array(2 * data.length);
  for (let row = 0; row < rows; row++)
    for (let column = 0; column < columns; column++)
      wide[row * 2 * columns + target(column)] = data[row * columns + column] as number;
  return { name, shape: [rows, 2 * columns], data: wide };
}

/** Of files that `encodeSafetensors` wrote: float32 only. */
function decodeSafetensors(file: Buffer): NamedTensor[] {
  const start = 8 + Number(file.readBigUInt64LE());
  const header: Record<string, { shape: number[]; data_offsets: [number, number] }> = JSON.parse(
    file.toString('utf8', 8, start),
  );
  return Object.entries(header)
    .filter(([name]) => name !== '__metadata__')
    .map(([name, { shape, data_offsets }]) => {
      const bytes = Uint8Array.from(file.subarray(start + data_offsets[0], start + data_offsets[1]));
      return { name, shape, data: new Float32Array(bytes.buffer) };
    });
}
