/**
 * Writes safetensors, the file format in which Hugging Face models and adapters keep their weights:
 * u64 length of the header · header (JSON, padded with spaces to 8 bytes) · the numbers of each tensor, end to end.
 */
export interface NamedTensor {
  name: string;
  /** Slowest-moving dimension first, as PyTorch says it. */
  shape: readonly number[];
  /** Written as 32-bit floats, row by row. */
  data: Float32Array;
}

/** The bytes of the file. The same input gives the same bytes. */
export function encodeSafetensors(tensors: readonly NamedTensor[]): Uint8Array {
  const header: Record<string, unknown> = { __metadata__: { format: 'pt' } };
  let length = 0;
  for (const { name, shape, data } of tensors) {
    header[name] = { dtype: 'F32', shape, data_offsets: [length, length + data.length * 4] };
    length += data.length * 4;
  }
  const json = new TextEncoder().encode(JSON.stringify(header));
  const start = 8 + Math.ceil(json.length / 8) * 8;
  const out = new Uint8Array(start + length).fill(0x20, 8 + json.length, start);
  const view = new DataView(out.buffer);
  view.setBigUint64(0, BigInt(start - 8), true);
  out.set(json, 8);
  let at = start;
  for (const { data } of tensors) {
    for (const value of data) {
      view.setFloat32(at, value, true);
      at += 4;
    }
  }
  return out;
}
