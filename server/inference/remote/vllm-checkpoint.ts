/**
 * A look at a checkpoint folder before vLLM loads it. The server loads in place, layer by layer: a file that breaks off or
 * a matrix of another shape leaves it without usable weights, and a missing tensor leaves a mixture without a word. Where
 * the folder can be seen from here, such a one is refused before anything happens.
 */
import { open, readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { Invalid } from '../../core/errors';
import { isObject } from './json-body';

const HEADER_BYTES = 100 * 2 ** 20;
/** Left out where the output layer is the embedding. */
const OUTPUT = 'lm_head.weight';

/**
 * Throws Invalid when the folder cannot replace the weights in `serving`. Says nothing of folders that are not visible
 * from here (the server may be on another machine) or hold other files than safetensors.
 */
export async function checkCheckpoint(folder: string, serving: string | null, device: string | null): Promise<void> {
  const wanted = await tensorShapes(folder);
  if (!wanted) return;
  if (wanted.size === 0) throw new Invalid(`The checkpoint ${folder} holds no weights (no *.safetensors file).`);
  // Its output layer was packed for the processor once, and would go on with the numbers of the old embedding.
  if (device === 'cpu' && !wanted.has(OUTPUT))
    throw new Invalid(
      `The checkpoint ${folder} has no output layer of its own (${OUTPUT}), and a vLLM on a processor keeps the old one when it reloads such a model. Write the layer into the checkpoint, or start the server again with it.`,
    );
  const present = serving === null ? null : await tensorShapes(serving).catch(() => null);
  if (!present || present.size === 0) return;
  const differing = [
    ...[...present].flatMap(([name, shape]) => {
      const other = wanted.get(name);
      if (other === undefined) return name === OUTPUT ? [] : [`lacks ${name}`];
      return other === shape ? [] : [`has ${name} of shape ${other} where ${shape} serves`];
    }),
    ...[...wanted.keys()].flatMap((name) =>
      present.has(name) || name === OUTPUT ? [] : [`has ${name}, which the model does not`],
    ),
  ];
  if (differing.length > 0)
    throw new Invalid(
      `The checkpoint ${folder} is of another model than the one that serves: it ${differing.slice(0, 3).join(', ')}${differing.length > 3 ? `, and ${differing.length - 3} more` : ''}.`,
    );
}

/** Shape of every tensor, e.g. `64×160`; null when the folder is not there or holds no safetensors but other weights. */
async function tensorShapes(folder: string): Promise<Map<string, string> | null> {
  const names = await readdir(folder).catch(() => null);
  if (!names) return null;
  const files = names.filter((name) => name.endsWith('.safetensors')).sort();
  if (files.length === 0 && names.some((name) => /\.(bin|pt|pth|gguf)$/.test(name))) return null;
  const shapes = new Map<string, string>();
  for (const file of files) for (const [name, shape] of await readHeader(join(folder, file))) shapes.set(name, shape);
  return shapes;
}

/** u64 length of the header · header (JSON) · the numbers; each tensor's entry says where its numbers end. */
async function readHeader(path: string): Promise<[name: string, shape: string][]> {
  const { size } = await stat(path);
  const refuse = (why: string) => new Invalid(`The weights file ${path} is damaged: ${why}.`);
  const file = await open(path);
  try {
    const start = Buffer.alloc(8);
    if ((await file.read(start, 0, 8, 0)).bytesRead < 8) throw refuse('it is shorter than its header');
    const length = Number(start.readBigUInt64LE());
    if (length > HEADER_BYTES || 8 + length > size) throw refuse('its header breaks off');
    const text = Buffer.alloc(length);
    await file.read(text, 0, length, 8);
    const header = parseHeader(text.toString('utf8'));
    if (!header) throw refuse('its header cannot be read');
    const tensors = Object.entries(header).filter(([name]) => name !== '__metadata__');
    let last = 0;
    const shapes = tensors.map(([name, entry]): [string, string] => {
      if (!isObject(entry) || !Array.isArray(entry.shape) || !Array.isArray(entry.data_offsets))
        throw refuse(`its entry ${name} cannot be read`);
      last = Math.max(last, Number(entry.data_offsets[1]));
      return [name, entry.shape.join('×')];
    });
    if (8 + length + last !== size) throw refuse(`it has ${size} bytes where its header says ${8 + length + last}`);
    return shapes;
  } finally {
    await file.close();
  }
}

function parseHeader(text: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : null;
  } catch {
    return null;
  }
}
