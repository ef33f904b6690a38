/** How llama.cpp computes attention on a processor: which of its two ways gives numbers that can be trusted. */
import { GgmlType, type LlamaContextOptions, type LlamaModel } from 'node-llama-cpp';

const FLOAT_WEIGHTS: readonly GgmlType[] = [GgmlType.F32, GgmlType.F16, GgmlType.BF16, GgmlType.F64];

export type Arithmetic = Required<
  Pick<LlamaContextOptions, 'flashAttention' | 'experimentalKvCacheKeyType' | 'experimentalKvCacheValueType'>
>;

/** Keys and values in 32 bits, no flash attention, which rounds them to 16: within 1e-5 of float32 done elsewhere. */
export const EXACT = {
  flashAttention: false,
  experimentalKvCacheKeyType: 'F32',
  experimentalKvCacheValueType: 'F32',
} as const satisfies Arithmetic;

/**
 * Flash attention reads the tokens of a sequence in their order, wherever they lie in the cache; without it the last
 * digits depend on the other sequences, and weights that are quantised make 0.2 of that in a log-probability.
 */
const REPEATABLE = {
  flashAttention: true,
  experimentalKvCacheKeyType: 'F16',
  experimentalKvCacheValueType: 'F16',
} as const satisfies Arithmetic;

/** Float weights are worth exact numbers; quantised ones are far from float32 anyway, and must repeat themselves. */
export function arithmeticFor(model: LlamaModel): Arithmetic {
  const type = model.fileInsights.dominantTensorType;
  return type !== undefined && FLOAT_WEIGHTS.includes(type) ? EXACT : REPEATABLE;
}

/** Bytes that a number in the cache of keys and values takes. */
export function bytesOfNumber(arithmetic: Arithmetic): number {
  return arithmetic.experimentalKvCacheKeyType === 'F32' ? 4 : 2;
}
