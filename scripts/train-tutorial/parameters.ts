/** The weights of a model and their gradients: one flat array each, and views by the names of a GGUF file. */
import { seededRandom } from '../../server/core/ambient';
import { type LlamaShape, llamaTensorShapes } from '../../server/inference/gguf/llama';
import type { Kernels } from './kernels/kernels';

export interface LayerWeights {
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

export class Parameters {
  readonly shape: LlamaShape;
  /** All weights end to end, and their gradients. */
  readonly values: Float32Array;
  readonly gradients: Float32Array;
  readonly weights: ReadonlyMap<string, Float32Array>;
  readonly weightGradients: ReadonlyMap<string, Float32Array>;

  readonly #kernels: Kernels;
  /** Matrices turned round, so that the forward pass is a plain product. */
  readonly #transposed = new Map<string, Float32Array>();

  constructor(kernels: Kernels, shape: LlamaShape) {
    const tensors = llamaTensorShapes(shape);
    const total = tensors.reduce((sum, { rows, columns }) => sum + rows * columns, 0);
    this.shape = shape;
    this.#kernels = kernels;
    this.values = kernels.floats(total);
    this.gradients = kernels.floats(total);
    const weights = new Map<string, Float32Array>();
    const weightGradients = new Map<string, Float32Array>();
    let at = 0;
    for (const { name, rows, columns } of tensors) {
      const end = at + rows * columns;
      weights.set(name, this.values.subarray(at, end));
      weightGradients.set(name, this.gradients.subarray(at, end));
      if (rows > 1) this.#transposed.set(name, kernels.floats(rows * columns));
      at = end;
    }
    this.weights = weights;
    this.weightGradients = weightGradients;
  }

  /** Normal numbers of standard deviation 0.08 (embedding) and 0.7/√inputs, smaller where a layer writes back; norms 1. */
  initialise(seed: number): void {
    const random = seededRandom(seed);
    const normal = () => Math.sqrt(-2 * Math.log(random() + 1e-12)) * Math.cos(2 * Math.PI * random());
    for (const { name, rows, columns } of llamaTensorShapes(this.shape)) {
      const weight = this.weight(name);
      if (rows === 1) {
        weight.fill(1);
        continue;
      }
      const writesBack = name.includes('attn_output') || name.includes('ffn_down');
      const narrowing = writesBack ? 1 / Math.sqrt(2 * this.shape.layers) : 1;
      const deviation = name.startsWith('token_embd') ? 0.08 : (0.7 / Math.sqrt(columns)) * narrowing;
      for (let i = 0; i < weight.length; i++) weight[i] = normal() * deviation;
    }
  }

  weight(name: string): Float32Array {
    return this.weights.get(name) as Float32Array;
  }

  gradient(name: string): Float32Array {
    return this.weightGradients.get(name) as Float32Array;
  }

  /** The transposed matrix as of the last `refreshTransposed`, or the vector itself. */
  turned(name: string): Float32Array {
    return this.#transposed.get(name) ?? this.weight(name);
  }

  refreshTransposed(): void {
    for (const { name, rows, columns } of llamaTensorShapes(this.shape)) {
      const target = this.#transposed.get(name);
      if (target) this.#kernels.raw.transpose(target.byteOffset, this.weight(name).byteOffset, rows, columns);
    }
  }

  /** What a layer has of `kind`. */
  layer(layer: number, kind: 'weight' | 'gradient' | 'turned'): LayerWeights {
    const named = (name: string) => this[kind](`blk.${layer}.${name}.weight`);
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
}
