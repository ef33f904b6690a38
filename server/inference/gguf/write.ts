/**
 * Writes GGUF version 3, the file format in which llama.cpp reads a model.
 *
 * Little-endian throughout:
 *
 *   header     "GGUF" · u32 version (3) · u64 number of tensors · u64 number of metadata entries
 *   metadata   per entry: string key · u32 value type · value
 *   tensors    per tensor: string name · u32 number of dimensions · u64 each dimension · u32 tensor type · u64 offset
 *   data       padded with zeros to `general.alignment` (32); each tensor starts at its offset from here, padded likewise
 *
 * A string is u64 length in bytes + UTF-8. An array is u32 element type · u64 length · elements.
 * Dimensions run from the fastest-moving one: a matrix with `rows` outputs and `columns` inputs, stored row by row,
 * has the dimensions [columns, rows].
 *
 * Source of the format: the GGUF specification in the ggml repository (docs/gguf.md).
 */
import { Invalid } from '../../core/errors';

export type GgufValue =
  | { type: 'uint32' | 'int32' | 'float32'; value: number }
  | { type: 'bool'; value: boolean }
  | { type: 'string'; value: string }
  | { type: 'strings'; value: readonly string[] }
  | { type: 'int32s'; value: readonly number[] };

export interface GgufTensor {
  name: string;
  /** Fastest-moving dimension first; their product is the length of `data`. */
  dimensions: readonly number[];
  /** Written as 32-bit floats. */
  data: Float32Array;
}

export interface GgufFile {
  /** In this order; `general.architecture` has to be among the keys for llama.cpp to load the file. */
  metadata: ReadonlyMap<string, GgufValue>;
  tensors: readonly GgufTensor[];
}

export const VERSION = 3;
export const ALIGNMENT = 32;
export const TENSOR_TYPE_F32 = 0;
export const VALUE_TYPE = { uint32: 4, int32: 5, float32: 6, bool: 7, string: 8, array: 9 } as const;

/**
 * The bytes of the file. The same input gives the same bytes.
 * Throws Invalid when a tensor's dimensions do not multiply to its length or a tensor's name appears twice.
 */
export function encodeGguf(file: GgufFile): Uint8Array {
  checkTensors(file.tensors);
  const head = new ByteWriter();
  head.bytes(new TextEncoder().encode('GGUF'));
  head.uint32(VERSION);
  head.uint64(file.tensors.length);
  head.uint64(file.metadata.size);
  for (const [key, entry] of file.metadata) {
    head.string(key);
    writeValue(head, entry);
  }
  let offset = 0;
  for (const tensor of file.tensors) {
    head.string(tensor.name);
    head.uint32(tensor.dimensions.length);
    for (const dimension of tensor.dimensions) head.uint64(dimension);
    head.uint32(TENSOR_TYPE_F32);
    head.uint64(offset);
    offset += aligned(tensor.data.length * 4);
  }
  const dataStart = aligned(head.length);
  const out = new Uint8Array(dataStart + offset);
  head.copyTo(out);
  const view = new DataView(out.buffer);
  let at = dataStart;
  for (const tensor of file.tensors) {
    for (let i = 0; i < tensor.data.length; i++) view.setFloat32(at + i * 4, tensor.data[i] as number, true);
    at += aligned(tensor.data.length * 4);
  }
  return out;
}

const aligned = (length: number): number => Math.ceil(length / ALIGNMENT) * ALIGNMENT;

function checkTensors(tensors: readonly GgufTensor[]): void {
  const names = new Set<string>();
  for (const { name, dimensions, data } of tensors) {
    const size = dimensions.reduce((product, dimension) => product * dimension, 1);
    if (size !== data.length) {
      throw new Invalid(
        `The tensor ${name} cannot be written: its dimensions [${dimensions.join(', ')}] hold ${size} numbers, but ${data.length} were given.`,
      );
    }
    if (names.has(name)) throw new Invalid(`The tensor ${name} was given twice; every tensor needs a name of its own.`);
    names.add(name);
  }
}

function writeValue(out: ByteWriter, entry: GgufValue): void {
  switch (entry.type) {
    case 'strings':
      out.uint32(VALUE_TYPE.array);
      out.uint32(VALUE_TYPE.string);
      out.uint64(entry.value.length);
      for (const text of entry.value) out.string(text);
      return;
    case 'int32s':
      out.uint32(VALUE_TYPE.array);
      out.uint32(VALUE_TYPE.int32);
      out.uint64(entry.value.length);
      for (const value of entry.value) out.int32(value);
      return;
    case 'string':
      out.uint32(VALUE_TYPE.string);
      out.string(entry.value);
      return;
    case 'bool':
      out.uint32(VALUE_TYPE.bool);
      out.bytes(Uint8Array.of(entry.value ? 1 : 0));
      return;
    default:
      out.uint32(VALUE_TYPE[entry.type]);
      out[entry.type](entry.value);
  }
}

/** A growing byte string; numbers little-endian. */
class ByteWriter {
  #buffer = new Uint8Array(4096);
  #view = new DataView(this.#buffer.buffer);
  length = 0;

  bytes(bytes: Uint8Array): void {
    const at = this.#take(bytes.length);
    this.#buffer.set(bytes, at);
  }
  uint32(value: number): void {
    const at = this.#take(4);
    this.#view.setUint32(at, value, true);
  }
  int32(value: number): void {
    const at = this.#take(4);
    this.#view.setInt32(at, value, true);
  }
  float32(value: number): void {
    const at = this.#take(4);
    this.#view.setFloat32(at, value, true);
  }
  uint64(value: number): void {
    const at = this.#take(8);
    this.#view.setBigUint64(at, BigInt(value), true);
  }
  string(text: string): void {
    const bytes = new TextEncoder().encode(text);
    this.uint64(bytes.length);
    this.bytes(bytes);
  }
  copyTo(target: Uint8Array): void {
    target.set(this.#buffer.subarray(0, this.length));
  }

  /** Makes room for `count` bytes and says where they go. */
  #take(count: number): number {
    const at = this.length;
    this.length += count;
    if (this.length > this.#buffer.length) {
      const larger = new Uint8Array(Math.max(this.length, this.#buffer.length * 2));
      larger.set(this.#buffer.subarray(0, at));
      this.#buffer = larger;
      this.#view = new DataView(larger.buffer);
    }
    return at;
  }
}
