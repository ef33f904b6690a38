/** Checkpoints and adapters in Hugging Face's form of the tiny model, for servers that read no GGUF. */
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { seededRandom } from '../../core/ambient';
import { decodeGguf } from '../gguf/read';
import { encodeSafetensors, type NamedTensor } from '../gguf/safetensors';
import { writeCheckpoint } from '../gguf/to-checkpoint';
import { type TinyModelOptions, writeTinyModel } from './tiny-model';

/** The same model as `writeTinyModel` with the same options: the same ids and, to rounding, the same log-probabilities. */
export async function writeTinyCheckpoint(folder: string, options: TinyModelOptions = {}): Promise<void> {
  const scratch = await mkdtemp(join(tmpdir(), 'tiny-checkpoint-'));
  try {
    const path = join(scratch, 'tiny.gguf');
    await writeTinyModel(path, options);
    await writeCheckpoint(folder, decodeGguf(await readFile(path), path));
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

/** Width and layers of the tiny model; its attention matrices are square. */
const WIDTH = 64;
const LAYERS = 3;

/** A PEFT adapter of the tiny model on the query and value projections, strong enough to change what is sampled. */
export async function writeTinyLora(
  folder: string,
  { rank = 4, seed = 1 }: { rank?: number; seed?: number } = {},
): Promise<void> {
  const random = seededRandom(seed);
  const tensors: NamedTensor[] = [];
  for (let layer = 0; layer < LAYERS; layer++) {
    for (const projection of ['q_proj', 'v_proj']) {
      const place = `base_model.model.model.layers.${layer}.self_attn.${projection}`;
      const add = (name: string, rows: number, columns: number) =>
        tensors.push({
          name: `${place}.${name}.weight`,
          shape: [rows, columns],
          data: Float32Array.from({ length: rows * columns }, () => (random() - 0.5) * 0.5),
        });
      add('lora_A', rank, WIDTH);
      add('lora_B', WIDTH, rank);
    }
  }
  await mkdir(folder, { recursive: true });
  const config = {
    peft_type: 'LORA',
    task_type: 'CAUSAL_LM',
    base_model_name_or_path: 'tiny',
    r: rank,
    lora_alpha: rank * 2,
    lora_dropout: 0,
    target_modules: ['q_proj', 'v_proj'],
    bias: 'none',
    fan_in_fan_out: false,
    inference_mode: true,
  };
  await writeFile(join(folder, 'adapter_config.json'), `${JSON.stringify(config, null, 1)}\n`);
  await writeFile(join(folder, 'adapter_model.safetensors'), encodeSafetensors(tensors));
}
