/** Statistics of the rewards of one group. All sums are float64. */

/** Added to every standard deviation that divides. */
export const STD_EPSILON = 1e-8;
const FLAT_TOLERANCE = 1e-12;

export interface GroupStatistics {
  count: number;
  mean: number;
  /** Divisor n, or n - 1 when unbiased; 0 for a single value. */
  std: number;
  /** All values equal up to rounding: max - min <= 1e-12 * max(1, max|r|). A single value is flat. */
  flat: boolean;
}

export function groupStatistics(values: readonly number[], unbiased = false): GroupStatistics {
  const count = values.length;
  let sum = 0;
  let low = Infinity;
  let high = -Infinity;
  for (const value of values) {
    sum += value;
    if (value < low) low = value;
    if (value > high) high = value;
  }
  if (count === 0) return { count, mean: 0, std: 0, flat: true };
  const mean = sum / count;
  const flat = count === 1 || high - low <= FLAT_TOLERANCE * Math.max(1, Math.abs(low), Math.abs(high));
  if (count === 1) return { count, mean, std: 0, flat };
  let squares = 0;
  for (const value of values) squares += (value - mean) * (value - mean);
  return { count, mean, std: Math.sqrt(squares / (unbiased ? count - 1 : count)), flat };
}

/** (r - mean) / (std + 1e-8); zeros for a single value or equal values, never NaN. */
export function normalise(values: readonly number[], unbiased = false): number[] {
  const { mean, std, flat } = groupStatistics(values, unbiased);
  return values.map((value) => (flat ? 0 : (value - mean) / (std + STD_EPSILON)));
}

/** r - mean; zeros for a single value or equal values. */
export function centre(values: readonly number[]): number[] {
  const { mean, flat } = groupStatistics(values);
  return values.map((value) => (flat ? 0 : value - mean));
}

/** r - mean of the others; zeros for a single value or equal values. */
export function leaveOneOut(values: readonly number[]): number[] {
  const { mean, count, flat } = groupStatistics(values);
  return values.map((value) => (flat ? 0 : value - (mean * count - value) / (count - 1)));
}
