/** Adam (Kingma & Ba 2015) with the gradient's length clipped, over all parameters at once. */
import type { Kernels } from './kernels/kernels';
import type { Parameters } from './parameters';

const BETA_1 = 0.9;
const BETA_2 = 0.98;
const EPSILON = 1e-8;
const LONGEST_GRADIENT = 1;

export class Adam {
  readonly #kernels: Kernels;
  readonly #parameters: Parameters;
  readonly #first: Float32Array;
  readonly #second: Float32Array;
  #steps = 0;

  constructor(kernels: Kernels, parameters: Parameters) {
    this.#kernels = kernels;
    this.#parameters = parameters;
    this.#first = kernels.floats(parameters.values.length);
    this.#second = kernels.floats(parameters.values.length);
  }

  /** Moves the parameters against the gradient, sets the gradient to 0 and returns its length before clipping. */
  step(learningRate: number): number {
    const { raw } = this.#kernels;
    const { values, gradients } = this.#parameters;
    const count = values.length;
    const length = Math.sqrt(raw.sumOfSquares(gradients.byteOffset, count));
    this.#steps++;
    const correction1 = 1 - BETA_1 ** this.#steps;
    const correction2 = Math.sqrt(1 - BETA_2 ** this.#steps);
    raw.adamUpdate(
      values.byteOffset,
      gradients.byteOffset,
      this.#first.byteOffset,
      this.#second.byteOffset,
      count,
      length > LONGEST_GRADIENT ? LONGEST_GRADIENT / length : 1,
      (learningRate * correction2) / correction1,
      BETA_1,
      BETA_2,
      EPSILON * correction2,
    );
    return length;
  }
}
