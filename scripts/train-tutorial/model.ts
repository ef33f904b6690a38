/**
 * A llama-shaped transformer with its backward pass: RMSNorm, rotary positions, causal attention, SwiGLU, the output layer
 * tied to the embedding. Written for the kernels; the tensors carry the names they have in a GGUF file.
 *
 * A batch is several sequences laid end to end without padding: M tokens in all. Attention sees one sequence at a time.
 */
import { seededRandom } from '../../server/core/ambient';
import { type LlamaShape, llamaTensorShapes, RMS_EPSILON, ROPE_BASE } from '../../server/inference/gguf/llama';
import type { Kernels } from './kernels/kernels';

export interface Batch {
  /** Token ids, sequences end to end, shape [M]. */
  ids: Int32Array;
  /** Length of each sequence; they add up to M. */
  lengths: readonly number[];
  /** Positions in `ids` whose next token counts, ascending, shape [K]. */
  predicted: Int32Array;
  /** What each of them costs in the loss, shape [K]. */
  weights: Float32Array;
}

/** What a layer keeps from the forward pass for the backward pass; shapes [M, …]. */
interface LayerMemory {
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

interface LayerWeights {
  norm1: Float32Array;
  q: Float32Array;
  k: Float32Array;
  v: Float32Array;
  o: Float32Array;
  norm2: Float32Array;
  gate: Float32Array;
  up: Float32Array;
  down: Float32Array;
}

/** Bytes of kernel memory that a model for batches of this size takes, its optimiser included. */
export function modelMemory(shape: LlamaShape, limits: { tokens: number; sequenceLength: number }): number {
  const { width, layers, hidden, heads, vocabulary } = shape;
  const parameters = llamaTensorShapes(shape).reduce((sum, { rows, columns }) => sum + rows * columns, 0);
  const perToken =
    layers * (8 * width + 3 * hidden + heads * (limits.sequenceLength + 3) + 2) +
    10 * width +
    3 * hidden +
    vocabulary +
    8;
  return (
    4 * (5 * parameters + limits.tokens * perToken + shape.context * (width / heads) + limits.sequenceLength) +
    64 * 1024
  );
}

export class Model {
  readonly shape: LlamaShape;
  /** All parameters and their gradients, end to end. */
  readonly parameters: Float32Array;
  readonly gradients: Float32Array;
  /** Views into `parameters` and `gradients` by tensor name. */
  readonly weights = new Map<string, Float32Array>();
  readonly weightGradients = new Map<string, Float32Array>();

  readonly #kernels: Kernels;
  readonly #limits: { tokens: number; sequenceLength: number };
  /** Weights turned round, so that the forward pass is a plain product; refreshed before each. */
  readonly #transposed = new Map<string, Float32Array>();
  readonly #layers: LayerMemory[];
  readonly #cosines: Float32Array;
  readonly #sines: Float32Array;
  readonly #ids: Int32Array;
  readonly #positions: Int32Array;
  readonly #predicted: Int32Array;
  readonly #targets: Int32Array;
  readonly #lossWeights: Float32Array;
  readonly #logprobs: Float32Array;
  readonly #output: {
    input: Float32Array;
    scales: Float32Array;
    normed: Float32Array;
    picked: Float32Array;
    logits: Float32Array;
  };
  readonly #back: Record<
    'dx' | 'dh' | 'dq' | 'dk' | 'dv' | 'dAttended' | 'dGated' | 'dGate' | 'dUp' | 'scratch',
    Float32Array
  >;

  constructor(kernels: Kernels, shape: LlamaShape, limits: { tokens: number; sequenceLength: number }) {
    if (shape.width % 8 || shape.hidden % 8 || shape.vocabulary % 8 || (shape.width / shape.heads) % 4) {
      throw new Error('Width, hidden width and vocabulary have to be multiples of 8, the width of a head of 4.');
    }
    this.shape = shape;
    this.#kernels = kernels;
    this.#limits = limits;
    const tensors = llamaTensorShapes(shape);
    const total = tensors.reduce((sum, { rows, columns }) => sum + rows * columns, 0);
    this.parameters = kernels.floats(total);
    this.gradients = kernels.floats(total);
    let at = 0;
    for (const { name, rows, columns } of tensors) {
      const end = at + rows * columns;
      this.weights.set(name, this.parameters.subarray(at, end));
      this.weightGradients.set(name, this.gradients.subarray(at, end));
      if (rows > 1) this.#transposed.set(name, kernels.floats(rows * columns));
      at = end;
    }
    const { width, hidden, heads, vocabulary } = shape;
    const rowsOf = (columns: number) => kernels.floats(limits.tokens * columns);
    const paddedLength = Math.ceil(limits.sequenceLength / 4) * 4;
    this.#layers = Array.from({ length: shape.layers }, () => ({
      input: rowsOf(width),
      scales1: rowsOf(1),
      normed1: rowsOf(width),
      q: rowsOf(width),
      k: rowsOf(width),
      v: rowsOf(width),
      attentionWeights: rowsOf(heads * paddedLength),
      attended: rowsOf(width),
      middle: rowsOf(width),
      scales2: rowsOf(1),
      normed2: rowsOf(width),
      gate: rowsOf(hidden),
      up: rowsOf(hidden),
      gated: rowsOf(hidden),
    }));
    this.#output = {
      input: rowsOf(width),
      scales: rowsOf(1),
      normed: rowsOf(width),
      picked: rowsOf(width),
      logits: rowsOf(vocabulary),
    };
    this.#back = {
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
    };
    const half = width / heads / 2;
    this.#cosines = kernels.floats(shape.context * half);
    this.#sines = kernels.floats(shape.context * half);
    for (let position = 0; position < shape.context; position++) {
      for (let i = 0; i < half; i++) {
        const angle = position * ROPE_BASE ** (-i / half);
        this.#cosines[position * half + i] = Math.cos(angle);
        this.#sines[position * half + i] = Math.sin(angle);
      }
    }
    this.#ids = kernels.integers(limits.tokens);
    this.#positions = kernels.integers(limits.tokens);
    this.#predicted = kernels.integers(limits.tokens);
    this.#targets = kernels.integers(limits.tokens);
    this.#lossWeights = rowsOf(1);
    this.#logprobs = rowsOf(1);
  }

  /** Normal numbers of standard deviation 0.08 (embedding) and 0.7/√inputs, smaller where a layer writes back; norms 1. */
  initialise(seed: number): void {
    const random = seededRandom(seed);
    const normal = () => Math.sqrt(-2 * Math.log(random() + 1e-12)) * Math.cos(2 * Math.PI * random());
    for (const { name, rows, columns } of llamaTensorShapes(this.shape)) {
      const weight = this.weights.get(name) as Float32Array;
      if (rows === 1) {
        weight.fill(1);
        continue;
      }
      const writesBack = name.includes('attn_output') || name.includes('ffn_down');
      const deviation = name.startsWith('token_embd')
        ? 0.08
        : (0.7 / Math.sqrt(columns)) * (writesBack ? 1 / Math.sqrt(2 * this.shape.layers) : 1);
      for (let i = 0; i < weight.length; i++) weight[i] = normal() * deviation;
    }
  }

  /**
   * Forward pass, and the loss Σ weights · −log p(next token) over the predicted positions; adds its gradient to
   * `gradients` when `backward`. `logprobs` of the predicted tokens is a view, good until the next call.
   */
  run(batch: Batch, backward: boolean): { loss: number; logprobs: Float32Array } {
    const M = this.#load(batch);
    const K = batch.predicted.length;
    this.#refreshTransposed();
    this.#forward(M, batch.lengths);
    const { raw } = this.#kernels;
    const { width, vocabulary } = this.shape;
    const { picked, normed, logits } = this.#output;
    raw.gatherRows(picked.byteOffset, normed.byteOffset, this.#predicted.byteOffset, K, width);
    this.#kernels.linear(logits, picked, this.#turned('token_embd.weight'), K, vocabulary, width);
    const loss = raw.crossEntropy(
      logits.byteOffset,
      this.#targets.byteOffset,
      this.#lossWeights.byteOffset,
      this.#logprobs.byteOffset,
      K,
      vocabulary,
    );
    if (backward) this.#backward(M, K, batch.lengths);
    return { loss, logprobs: this.#logprobs.subarray(0, K) };
  }

  #load(batch: Batch): number {
    const M = batch.ids.length;
    if (M > this.#limits.tokens)
      throw new RangeError(`The batch has ${M} tokens; the model was made for ${this.#limits.tokens}.`);
    this.#ids.set(batch.ids);
    let at = 0;
    for (const length of batch.lengths) {
      if (length > this.#limits.sequenceLength) {
        throw new RangeError(
          `A sequence of ${length} tokens is longer than the ${this.#limits.sequenceLength} allowed.`,
        );
      }
      for (let position = 0; position < length; position++) this.#positions[at++] = position;
    }
    this.#predicted.set(batch.predicted);
    this.#lossWeights.set(batch.weights);
    batch.predicted.forEach((position, i) => {
      this.#targets[i] = batch.ids[position + 1] as number;
    });
    return M;
  }

  #refreshTransposed(): void {
    for (const { name, rows, columns } of llamaTensorShapes(this.shape)) {
      const target = this.#transposed.get(name);
      if (target) this.#kernels.raw.transpose(target.byteOffset, this.#weight(name).byteOffset, rows, columns);
    }
  }

  #forward(M: number, lengths: readonly number[]): void {
    const { raw } = this.#kernels;
    const kernels = this.#kernels;
    const { width, hidden } = this.shape;
    const first = this.#layers[0]?.input ?? this.#output.input;
    raw.gatherRows(first.byteOffset, this.#weight('token_embd.weight').byteOffset, this.#ids.byteOffset, M, width);
    this.#layers.forEach((layer, index) => {
      const w = this.#layerWeights(index, (name) => this.#turned(name));
      const output = this.#layers[index + 1]?.input ?? this.#output.input;
      this.#norm(layer.normed1, layer.input, w.norm1, layer.scales1, M);
      kernels.linear(layer.q, layer.normed1, w.q, M, width, width);
      kernels.linear(layer.k, layer.normed1, w.k, M, width, width);
      kernels.linear(layer.v, layer.normed1, w.v, M, width, width);
      this.#rotate(layer.q, M, 1);
      this.#rotate(layer.k, M, 1);
      this.#eachSequence(lengths, (start, weightsAt, length) => {
        const rows = start * width * 4;
        raw.attention(
          layer.attended.byteOffset + rows,
          layer.q.byteOffset + rows,
          layer.k.byteOffset + rows,
          layer.v.byteOffset + rows,
          layer.attentionWeights.byteOffset + weightsAt * 4,
          length,
          this.shape.heads,
          width / this.shape.heads,
        );
      });
      layer.middle.set(layer.input.subarray(0, M * width));
      kernels.linear(layer.middle, layer.attended, w.o, M, width, width, true);
      this.#norm(layer.normed2, layer.middle, w.norm2, layer.scales2, M);
      kernels.linear(layer.gate, layer.normed2, w.gate, M, hidden, width);
      kernels.linear(layer.up, layer.normed2, w.up, M, hidden, width);
      raw.gatedUnit(layer.gated.byteOffset, layer.gate.byteOffset, layer.up.byteOffset, M * hidden);
      output.set(layer.middle.subarray(0, M * width));
      kernels.linear(output, layer.gated, w.down, M, width, hidden, true);
    });
    const { input, normed, scales } = this.#output;
    this.#norm(normed, input, this.#weight('output_norm.weight'), scales, M);
  }

  /** Expects the gradient of the logits where the logits were. */
  #backward(M: number, K: number, lengths: readonly number[]): void {
    const kernels = this.#kernels;
    const { raw } = kernels;
    const { width, hidden, vocabulary } = this.shape;
    const { dx, dh, dq, dk, dv, dAttended, dGated, dGate, dUp, scratch } = this.#back;
    const embedding = this.#weight('token_embd.weight');
    const dEmbedding = this.#gradient('token_embd.weight');
    const { input, normed, scales, picked, logits } = this.#output;

    kernels.linearBackwardWeight(dEmbedding, logits, picked, K, vocabulary, width);
    picked.fill(0, 0, K * width);
    kernels.linearBackwardInput(picked, logits, embedding, K, vocabulary, width);
    dh.fill(0, 0, M * width);
    raw.scatterAddRows(dh.byteOffset, picked.byteOffset, this.#predicted.byteOffset, K, width);
    dx.fill(0, 0, M * width);
    this.#normBackward(
      dx,
      this.#gradient('output_norm.weight'),
      dh,
      input,
      this.#weight('output_norm.weight'),
      scales,
      M,
    );
    void normed;

    for (let index = this.#layers.length - 1; index >= 0; index--) {
      const layer = this.#layers[index] as LayerMemory;
      const w = this.#layerWeights(index, (name) => this.#weight(name));
      const g = this.#layerWeights(index, (name) => this.#gradient(name));

      dGated.fill(0, 0, M * hidden);
      kernels.linearBackwardInput(dGated, dx, w.down, M, width, hidden);
      kernels.linearBackwardWeight(g.down, dx, layer.gated, M, width, hidden);
      raw.gatedUnitBackward(
        dGate.byteOffset,
        dUp.byteOffset,
        dGated.byteOffset,
        layer.gate.byteOffset,
        layer.up.byteOffset,
        M * hidden,
      );
      dh.fill(0, 0, M * width);
      kernels.linearBackwardInput(dh, dGate, w.gate, M, hidden, width);
      kernels.linearBackwardInput(dh, dUp, w.up, M, hidden, width);
      kernels.linearBackwardWeight(g.gate, dGate, layer.normed2, M, hidden, width);
      kernels.linearBackwardWeight(g.up, dUp, layer.normed2, M, hidden, width);
      this.#normBackward(dx, g.norm2, dh, layer.middle, w.norm2, layer.scales2, M);

      dAttended.fill(0, 0, M * width);
      kernels.linearBackwardInput(dAttended, dx, w.o, M, width, width);
      kernels.linearBackwardWeight(g.o, dx, layer.attended, M, width, width);
      for (const buffer of [dq, dk, dv]) buffer.fill(0, 0, M * width);
      this.#eachSequence(lengths, (start, weightsAt, length) => {
        const rows = start * width * 4;
        raw.attentionBackward(
          dq.byteOffset + rows,
          dk.byteOffset + rows,
          dv.byteOffset + rows,
          dAttended.byteOffset + rows,
          layer.q.byteOffset + rows,
          layer.k.byteOffset + rows,
          layer.v.byteOffset + rows,
          layer.attentionWeights.byteOffset + weightsAt * 4,
          scratch.byteOffset,
          length,
          this.shape.heads,
          width / this.shape.heads,
        );
      });
      this.#rotate(dq, M, -1);
      this.#rotate(dk, M, -1);
      dh.fill(0, 0, M * width);
      for (const [gradient, weight, weightGradient] of [
        [dq, w.q, g.q],
        [dk, w.k, g.k],
        [dv, w.v, g.v],
      ] as const) {
        kernels.linearBackwardInput(dh, gradient, weight, M, width, width);
        kernels.linearBackwardWeight(weightGradient, gradient, layer.normed1, M, width, width);
      }
      this.#normBackward(dx, g.norm1, dh, layer.input, w.norm1, layer.scales1, M);
    }
    raw.scatterAddRows(dEmbedding.byteOffset, dx.byteOffset, this.#ids.byteOffset, M, width);
  }

  #norm(y: Float32Array, x: Float32Array, w: Float32Array, scales: Float32Array, M: number): void {
    this.#kernels.raw.rmsNorm(
      y.byteOffset,
      x.byteOffset,
      w.byteOffset,
      scales.byteOffset,
      M,
      this.shape.width,
      RMS_EPSILON,
    );
  }

  #normBackward(
    dx: Float32Array,
    dw: Float32Array,
    dy: Float32Array,
    x: Float32Array,
    w: Float32Array,
    scales: Float32Array,
    M: number,
  ): void {
    this.#kernels.raw.rmsNormBackward(
      dx.byteOffset,
      dw.byteOffset,
      dy.byteOffset,
      x.byteOffset,
      w.byteOffset,
      scales.byteOffset,
      M,
      this.shape.width,
    );
  }

  #rotate(x: Float32Array, M: number, sign: 1 | -1): void {
    const { width, heads } = this.shape;
    this.#kernels.raw.rotate(
      x.byteOffset,
      this.#positions.byteOffset,
      this.#cosines.byteOffset,
      this.#sines.byteOffset,
      M,
      heads,
      width / heads,
      sign,
    );
  }

  /** Calls back with each sequence's first token, the place of its attention weights, and its length. */
  #eachSequence(lengths: readonly number[], visit: (start: number, weightsAt: number, length: number) => void): void {
    let start = 0;
    let weightsAt = 0;
    for (const length of lengths) {
      visit(start, weightsAt, length);
      start += length;
      weightsAt += this.shape.heads * length * Math.ceil(length / 4) * 4;
    }
  }

  #layerWeights(layer: number, find: (name: string) => Float32Array): LayerWeights {
    const named = (name: string) => find(`blk.${layer}.${name}.weight`);
    return {
      norm1: named('attn_norm'),
      q: named('attn_q'),
      k: named('attn_k'),
      v: named('attn_v'),
      o: named('attn_output'),
      norm2: named('ffn_norm'),
      gate: named('ffn_gate'),
      up: named('ffn_up'),
      down: named('ffn_down'),
    };
  }

  #weight(name: string): Float32Array {
    return this.weights.get(name) as Float32Array;
  }
  #gradient(name: string): Float32Array {
    return this.weightGradients.get(name) as Float32Array;
  }
  /** The transposed matrix, or the vector itself. */
  #turned(name: string): Float32Array {
    return this.#transposed.get(name) ?? this.#weight(name);
  }
}
