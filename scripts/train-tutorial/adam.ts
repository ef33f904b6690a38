/** Adam (Kingma & Ba 2015) with the gradient's length clipped, over one flat array of parameters. */
import type { Kernels } from './kernels/kernels';

const BETA_1 = 0.9;
const BETA_2 = 0.98;
const EPSILON = 1e-8;
const LONGEST_GRADIENT = 1;

export class Adam {
  readonly #kernels: Kernels;
  readonly #parameters: Float32Array;
  readonly #gradients: Float32Array;
  readonly #first: Float32Array;
  readonly #second: Float32Array;
  #steps = 0;

  constructor(kernels: Kernels, parameters: Float32Array, gradients: Float32Array) {
    this.#kernels = kernels;
    this.#parameters = parameters;
    this.#gradients = gradients;
    this.#first = kernels.floats(parameters.length);
    this.#second = kernels.floats(parameters.length);
  }

  /** Moves the parameters against the gradient, sets the gradient to 0 and returns its length before clipping. */
  step(learningRate: number): number {
    const { raw } = this.#kernels;
    const count = this.#parameters.length;
    const length = Math.sqrt(raw.sumOfSquares(this.#gradients.byteOffset, count));
    this.#steps++;
    const correction1 = 1 - BETA_1 ** this.#steps;
    const correction2 = Math.sqrt(1 - BETA_2 ** this.#steps);
    raw.adamUpdate(
      this.#parameters.byteOffset,
      this.#gradients.byteOffset,
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
