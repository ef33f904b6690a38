/** The compiled kernels with a memory of their own. Arrays made by `floats` and `integers` live in that memory. */
const PAGE = 65_536;
/** The kernels' own constants lie below this address. */
const FIRST_FREE = 8 * 1024;

type Routine = (...numbers: number[]) => number;
const ROUTINES = [
  'matrixProduct',
  'transpose',
  'gatherRows',
  'scatterAddRows',
  'rmsNorm',
  'rmsNormBackward',
  'rotate',
  'attention',
  'attentionBackward',
  'gatedUnit',
  'gatedUnitBackward',
  'crossEntropy',
  'sumOfSquares',
  'adamUpdate',
] as const;

export type RawKernels = Record<(typeof ROUTINES)[number], Routine>;

export class Kernels {
  /** The routines as compiled: array arguments are given as byte offsets (`array.byteOffset`), see kernels.as. */
  readonly raw: RawKernels;
  readonly #memory: WebAssembly.Memory;
  #next = FIRST_FREE;

  /** `bytes` is all the memory there will be; it is not grown, because growing would detach the arrays. */
  constructor(module: WebAssembly.Module, bytes: number) {
    const pages = Math.ceil((bytes + FIRST_FREE) / PAGE);
    this.#memory = new WebAssembly.Memory({ initial: pages, maximum: pages });
    const { exports } = new WebAssembly.Instance(module, { env: { memory: this.#memory } });
    this.raw = Object.fromEntries(ROUTINES.map((name) => [name, exports[name] as Routine])) as RawKernels;
  }

  /** A zeroed array of 32-bit floats. Throws RangeError when the memory is used up. */
  floats(count: number): Float32Array {
    return new Float32Array(this.#memory.buffer, this.#take(count), count);
  }

  /** A zeroed array of 32-bit integers. Throws RangeError when the memory is used up. */
  integers(count: number): Int32Array {
    return new Int32Array(this.#memory.buffer, this.#take(count), count);
  }

  /** y[M,outputs] = x[M,inputs] · wᵀ, added to y when `add`; `transposed` is wᵀ, [inputs,outputs]. */
  linear(
    y: Float32Array,
    x: Float32Array,
    transposed: Float32Array,
    M: number,
    outputs: number,
    inputs: number,
    add = false,
  ): void {
    this.raw.matrixProduct(
      y.byteOffset,
      x.byteOffset,
      transposed.byteOffset,
      M,
      outputs,
      inputs,
      inputs * 4,
      4,
      add ? 1 : 0,
    );
  }

  /** dx[M,inputs] += dy[M,outputs] · w */
  linearBackwardInput(
    dx: Float32Array,
    dy: Float32Array,
    w: Float32Array,
    M: number,
    outputs: number,
    inputs: number,
  ): void {
    this.raw.matrixProduct(dx.byteOffset, dy.byteOffset, w.byteOffset, M, inputs, outputs, outputs * 4, 4, 1);
  }

  /** dw[outputs,inputs] += dyᵀ · x */
  linearBackwardWeight(
    dw: Float32Array,
    dy: Float32Array,
    x: Float32Array,
    M: number,
    outputs: number,
    inputs: number,
  ): void {
    this.raw.matrixProduct(dw.byteOffset, dy.byteOffset, x.byteOffset, outputs, inputs, M, 4, outputs * 4, 1);
  }

  #take(count: number): number {
    const at = this.#next;
    // Sixteen bytes are one vector.
    this.#next = Math.ceil((at + count * 4) / 16) * 16;
    if (this.#next > this.#memory.buffer.byteLength) {
      throw new RangeError(
        `The training memory of ${this.#memory.buffer.byteLength} bytes is used up; ${count * 4} more were asked for.`,
      );
    }
    return at;
  }
}
