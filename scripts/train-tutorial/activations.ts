/** Where a model keeps what it computes: everything for the largest batch, taken once. */
import { type LlamaShape, llamaTensorShapes, ROPE_BASE } from '../../server/inference/gguf/llama';
import type { Kernels } from './kernels/kernels';

/** The largest batch: tokens in all, and in one sequence. */
export interface BatchLimits {
  tokens: number;
  sequenceLength: number;
}

/** What a layer keeps from the forward pass for the backward pass; shapes [M, …]. */
export interface LayerActivations {
  input: Float32Array;
  scales1: Float32Array;
  normed1: Float32Array;
  q: Float32Array;
  k: Float32Array;
  v: Float32Array;
  attentionWeights: Float32Array;
  attended: Float32Array;
  middle: Float32Array;
  scales2: Float32Array;
  normed2: Float32Array;
  gate: Float32Array;
  up: Float32Array;
  gated: Float32Array;
}

/** The batch itself, as the kernels read it: [M] or [K], see Batch. */
export interface BatchMemory {
  ids: Int32Array;
  /** Place in its sequence. */
  positions: Int32Array;
  predicted: Int32Array;
  targets: Int32Array;
  weights: Float32Array;
  logprobs: Float32Array;
}

export interface Activations {
  batch: BatchMemory;
  layers: LayerActivations[];
  /** Behind the last layer; `picked` and `logits` for predicted positions only. */
  output: Record<'input' | 'scales' | 'normed' | 'picked' | 'logits', Float32Array>;
  /** Gradients on the way back; `scratch` is one row of attention. */
  back: Record<'dx' | 'dh' | 'dq' | 'dk' | 'dv' | 'dAttended' | 'dGated' | 'dGate' | 'dUp' | 'scratch', Float32Array>;
  /** Rotary tables, [context, half a head]. */
  cosines: Float32Array;
  sines: Float32Array;
}

const upToFour = (length: number): number => Math.ceil(length / 4) * 4;

/** Floats that the attention weights of one sequence take. */
export function attentionSize(shape: LlamaShape, length: number): number {
  return shape.heads * length * upToFour(length);
}

/** Bytes of kernel memory that a model for batches of this size takes, its optimiser included. */
export function modelMemory(shape: LlamaShape, limits: BatchLimits): number {
  const { width, layers, hidden, heads, vocabulary, context } = shape;
  const parameters = llamaTensorShapes(shape).reduce((sum, { rows, columns }) => sum + rows * columns, 0);
  const inLayer = 8 * width + 3 * hidden + heads * upToFour(limits.sequenceLength) + 2;
  const perToken = layers * inLayer + 9 * width + 3 * hidden + vocabulary + 8;
  // Values, gradients, transposed matrices, and the optimiser's two.
  const floats = 5 * parameters + limits.tokens * perToken + context * (width / heads) + limits.sequenceLength;
  return 4 * floats + 64 * 1024;
}

/** Throws RangeError when the kernels' memory does not hold it. */
export function allocateActivations(kernels: Kernels, shape: LlamaShape, limits: BatchLimits): Activations {
  const { width, hidden, heads, vocabulary } = shape;
  const rowsOf = (columns: number) => kernels.floats(limits.tokens * columns);
  const layer = (): LayerActivations => ({
    input: rowsOf(width),
    scales1: rowsOf(1),
    normed1: rowsOf(width),
    q: rowsOf(width),
    k: rowsOf(width),
    v: rowsOf(width),
    attentionWeights: rowsOf(heads * upToFour(limits.sequenceLength)),
    attended: rowsOf(width),
    middle: rowsOf(width),
    scales2: rowsOf(1),
    normed2: rowsOf(width),
    gate: rowsOf(hidden),
    up: rowsOf(hidden),
    gated: rowsOf(hidden),
  });
  return {
    batch: {
      ids: kernels.integers(limits.tokens),
      positions: kernels.integers(limits.tokens),
      predicted: kernels.integers(limits.tokens),
      targets: kernels.integers(limits.tokens),
      weights: rowsOf(1),
      logprobs: rowsOf(1),
    },
    layers: Array.from({ length: shape.layers }, layer),
    output: {
      input: rowsOf(width),
      scales: rowsOf(1),
      normed: rowsOf(width),
      picked: rowsOf(width),
      logits: rowsOf(vocabulary),
    },
    back: {
      dx: rowsOf(width),
      dh: rowsOf(width),
      dq: rowsOf(width),
      dk: rowsOf(width),
      dv: rowsOf(width),
      dAttended: rowsOf(width),
      dGated: rowsOf(hidden),
      dGate: rowsOf(hidden),
      dUp: rowsOf(hidden),
      scratch: kernels.floats(limits.sequenceLength),
    },
    ...rotaryTables(kernels, shape),
  };
}

/** Cosine and sine of position · base^(−i / half), for the i-th pair of a head. */
function rotaryTables(kernels: Kernels, shape: LlamaShape): Pick<Activations, 'cosines' | 'sines'> {
  const half = shape.width / shape.heads / 2;
  const cosines = kernels.floats(shape.context * half);
  const sines = kernels.floats(shape.context * half);
  for (let position = 0; position < shape.context; position++) {
    for (let i = 0; i < half; i++) {
      const angle = position * ROPE_BASE ** (-i / half);
      cosines[position * half + i] = Math.cos(angle);
      sines[position * half + i] = Math.sin(angle);
    }
  }
  return { cosines, sines };
}
