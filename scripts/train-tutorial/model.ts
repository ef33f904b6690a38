/**
 * A llama-shaped transformer with its backward pass: RMSNorm, rotary positions, causal attention, SwiGLU, the output layer
 * tied to the embedding. Written for the kernels; the tensors carry the names they have in a GGUF file.
 *
 * A batch is several sequences laid end to end without padding: M tokens in all. Attention sees one sequence at a time.
 */
import { type LlamaShape, RMS_EPSILON } from '../../server/inference/gguf/llama';
import {
  type Activations,
  allocateActivations,
  attentionSize,
  type BatchLimits,
  type LayerActivations,
} from './activations';
import type { Kernels } from './kernels/kernels';
import { Parameters } from './parameters';

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

export class Model {
  readonly shape: LlamaShape;
  readonly parameters: Parameters;
  readonly #kernels: Kernels;
  readonly #limits: BatchLimits;
  readonly #memory: Activations;

  constructor(kernels: Kernels, shape: LlamaShape, limits: BatchLimits) {
    if (shape.width % 8 || shape.hidden % 8 || shape.vocabulary % 8 || (shape.width / shape.heads) % 4) {
      throw new Error('Width, hidden width and vocabulary have to be multiples of 8, the width of a head of 4.');
    }
    this.shape = shape;
    this.#kernels = kernels;
    this.#limits = limits;
    this.parameters = new Parameters(kernels, shape);
    this.#memory = allocateActivations(kernels, shape, limits);
  }

  /**
   * Forward pass, and the loss Σ weights · −log p(next token) over the predicted positions; adds its gradient to
   * `gradients` when `backward`. `logprobs` of the predicted tokens is a view, good until the next call.
   */
  run(batch: Batch, backward: boolean): { loss: number; logprobs: Float32Array } {
    const M = this.#load(batch);
    const K = batch.predicted.length;
    this.parameters.refreshTransposed();
    this.#forward(M, batch.lengths);
    const { raw } = this.#kernels;
    const { width, vocabulary } = this.shape;
    const { picked, normed, logits } = this.#memory.output;
    raw.gatherRows(picked.byteOffset, normed.byteOffset, this.#memory.batch.predicted.byteOffset, K, width);
    this.#kernels.linear(logits, picked, this.parameters.turned('token_embd.weight'), K, vocabulary, width);
    const loss = raw.crossEntropy(
      logits.byteOffset,
      this.#memory.batch.targets.byteOffset,
      this.#memory.batch.weights.byteOffset,
      this.#memory.batch.logprobs.byteOffset,
      K,
      vocabulary,
    );
    if (backward) this.#backward(M, K, batch.lengths);
    return { loss, logprobs: this.#memory.batch.logprobs.subarray(0, K) };
  }

  #load(batch: Batch): number {
    const M = batch.ids.length;
    if (M > this.#limits.tokens)
      throw new RangeError(`The batch has ${M} tokens; the model was made for ${this.#limits.tokens}.`);
    this.#memory.batch.ids.set(batch.ids);
    let at = 0;
    for (const length of batch.lengths) {
      if (length > this.#limits.sequenceLength) {
        throw new RangeError(
          `A sequence of ${length} tokens is longer than the ${this.#limits.sequenceLength} allowed.`,
        );
      }
      for (let position = 0; position < length; position++) this.#memory.batch.positions[at++] = position;
    }
    this.#memory.batch.predicted.set(batch.predicted);
    this.#memory.batch.weights.set(batch.weights);
    batch.predicted.forEach((position, i) => {
      this.#memory.batch.targets[i] = batch.ids[position + 1] as number;
    });
    return M;
  }

  #forward(M: number, lengths: readonly number[]): void {
    const { raw } = this.#kernels;
    const kernels = this.#kernels;
    const { width, hidden } = this.shape;
    const first = this.#memory.layers[0]?.input ?? this.#memory.output.input;
    raw.gatherRows(
      first.byteOffset,
      this.parameters.weight('token_embd.weight').byteOffset,
      this.#memory.batch.ids.byteOffset,
      M,
      width,
    );
    this.#memory.layers.forEach((layer, index) => {
      const w = this.parameters.layer(index, 'turned');
      const output = this.#memory.layers[index + 1]?.input ?? this.#memory.output.input;
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
    const { input, normed, scales } = this.#memory.output;
    this.#norm(normed, input, this.parameters.weight('output_norm.weight'), scales, M);
  }

  /** Expects the gradient of the logits where the logits were. */
  #backward(M: number, K: number, lengths: readonly number[]): void {
    const kernels = this.#kernels;
    const { raw } = kernels;
    const { width, hidden, vocabulary } = this.shape;
    const { dx, dh, dq, dk, dv, dAttended, dGated, dGate, dUp, scratch } = this.#memory.back;
    const embedding = this.parameters.weight('token_embd.weight');
    const dEmbedding = this.parameters.gradient('token_embd.weight');
    const { input, scales, picked, logits } = this.#memory.output;

    kernels.linearBackwardWeight(dEmbedding, logits, picked, K, vocabulary, width);
    picked.fill(0, 0, K * width);
    kernels.linearBackwardInput(picked, logits, embedding, K, vocabulary, width);
    dh.fill(0, 0, M * width);
    raw.scatterAddRows(dh.byteOffset, picked.byteOffset, this.#memory.batch.predicted.byteOffset, K, width);
    dx.fill(0, 0, M * width);
    this.#normBackward(
      dx,
      this.parameters.gradient('output_norm.weight'),
      dh,
      input,
      this.parameters.weight('output_norm.weight'),
      scales,
      M,
    );

    for (let index = this.#memory.layers.length - 1; index >= 0; index--) {
      const layer = this.#memory.layers[index] as LayerActivations;
      const w = this.parameters.layer(index, 'weight');
      const g = this.parameters.layer(index, 'gradient');

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
    raw.scatterAddRows(dEmbedding.byteOffset, dx.byteOffset, this.#memory.batch.ids.byteOffset, M, width);
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
      this.#memory.batch.positions.byteOffset,
      this.#memory.cosines.byteOffset,
      this.#memory.sines.byteOffset,
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
      weightsAt += attentionSize(this.shape, length);
    }
  }
}
