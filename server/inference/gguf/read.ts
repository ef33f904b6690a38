/**
 * Reads back the GGUF files that `write.ts` writes: version 3, weights of 32-bit floats, metadata of the types that a
 * model of ours has. Files of others (quantised, other types) are llama.cpp's to read; here they are refused.
 */
import { Invalid } from '../../core/errors';
import {
  ALIGNMENT,
  type GgufFile,
  type GgufTensor,
  type GgufValue,
  TENSOR_TYPE_F32,
  VALUE_TYPE,
  VERSION,
} from './write';

/** Throws Invalid, naming `name`, when the bytes are no such file, are cut short, or hold what our writer never writes. */
export function decodeGguf(bytes: Uint8Array, name: string): GgufFile {
  const head = new ByteReader(bytes, name);
  if (new TextDecoder('latin1').decode(head.bytes(4)) !== 'GGUF' || head.uint32() !== VERSION)
    throw new Invalid(`The file ${name} is no GGUF file of version ${VERSION}.`);
  const tensorCount = head.count();
  const entryCount = head.count();
  const metadata = new Map<string, GgufValue>();
  for (let k = 0; k < entryCount; k++) {
    const key = head.string();
    metadata.set(key, readValue(head, key));
  }
  const places: { name: string; dimensions: number[]; offset: number }[] = [];
  for (let k = 0; k < tensorCount; k++) {
    const tensor = head.string();
    const dimensions = Array.from({ length: head.uint32() }, () => head.count());
    const type = head.uint32();
    if (type !== TENSOR_TYPE_F32)
      throw new Invalid(
        `The tensor ${tensor} in ${name} is of type ${type}; only 32-bit floats (type 0) are read here.`,
      );
    places.push({ name: tensor, dimensions, offset: head.count() });
  }
  const start = Math.ceil(head.at / ALIGNMENT) * ALIGNMENT;
  const tensors = places.map(({ name: tensor, dimensions, offset }): GgufTensor => {
    const length = dimensions.reduce((product, dimension) => product * dimension, 1);
    const data = new ByteReader(bytes, name, start + offset).bytes(length * 4);
    const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
    return { name: tensor, dimensions, data: Float32Array.from({ length }, (_, k) => view.getFloat32(k * 4, true)) };
  });
  return { metadata, tensors };
}

function readValue(head: ByteReader, key: string): GgufValue {
  const type = head.uint32();
  switch (type) {
    case VALUE_TYPE.uint32:
      return { type: 'uint32', value: head.uint32() };
    case VALUE_TYPE.int32:
      return { type: 'int32', value: head.int32() };
    case VALUE_TYPE.float32:
      return { type: 'float32', value: head.float32() };
    case VALUE_TYPE.bool:
      return { type: 'bool', value: head.bytes(1)[0] === 1 };
    case VALUE_TYPE.string:
      return { type: 'string', value: head.string() };
    case VALUE_TYPE.array: {
      const element = head.uint32();
      const length = head.count();
      if (element === VALUE_TYPE.string) return { type: 'strings', value: Array.from({ length }, () => head.string()) };
      if (element === VALUE_TYPE.int32) return { type: 'int32s', value: Array.from({ length }, () => head.int32()) };
    }
  }
  throw new Invalid(
    `The entry ${key} in ${head.name} is of a type that is not read here; use a model written by the studio.`,
  );
}

/** Little-endian numbers one after another; past the end of the file it throws. */
class ByteReader {
  readonly name: string;
  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  at: number;

  constructor(bytes: Uint8Array, name: string, at = 0) {
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.name = name;
    this.at = at;
  }
  bytes(length: number): Uint8Array {
    const at = this.#take(length);
    return this.#bytes.subarray(at, at + length);
  }
  uint32(): number {
    return this.#view.getUint32(this.#take(4), true);
  }
  int32(): number {
    return this.#view.getInt32(this.#take(4), true);
  }
  float32(): number {
    return this.#view.getFloat32(this.#take(4), true);
  }
  /** A 64-bit number of things in the file; each takes a byte at least, so more than the file has bytes is damage. */
  count(): number {
    const value = this.#view.getBigUint64(this.#take(8), true);
    if (value > BigInt(this.#bytes.length)) throw this.#cut();
    return Number(value);
  }
  string(): string {
    return new TextDecoder().decode(this.bytes(this.count()));
  }

  #take(length: number): number {
    const at = this.at;
    this.at += length;
    if (this.at > this.#bytes.length) throw this.#cut();
    return at;
  }
  #cut(): Invalid {
    return new Invalid(`The GGUF file ${this.name} is cut short or damaged; write or fetch it again.`);
  }
}
