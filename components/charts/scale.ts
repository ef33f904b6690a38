/**
 * How numbers become colours: pure arithmetic, no canvas and no theme. A scale says where its ends are and how
 * many values lie beyond them, so that a legend can say so; the exact number is always read from the data.
 */

/** Positions in a colour ramp: 0 … RAMP_STEPS. For a diverging scale the middle is neutral. */
export const RAMP_STEPS = 256;

/** Beyond this many times the percentile a value counts as an outlier and the scale is clipped. */
const OUTLIER_FACTOR = 3;

export interface Scale {
  kind: 'diverging' | 'sequential';
  /** Sequential only: which side of zero the values lie on. */
  sign: 1 | -1;
  /** Magnitude at which the colour is full; above 0 even where there are no values. */
  limit: number;
  /** Largest magnitude there is; equals `limit` where nothing is clipped. 0 without values. */
  largest: number;
  /** Values beyond `limit`, drawn in the colour of the end. */
  clipped: number;
  /** The percentile `limit` was taken from when clipped, as 0.99. */
  percentile: number;
  /** Finite values that were looked at. */
  count: number;
}

export interface ScaleOptions {
  /** Default 0.99. */
  percentile?: number;
  sign?: 1 | -1;
}

/** A scale around zero: blue below, neutral at it, orange above. Values that are not finite are left out. */
export function divergingScale(values: ArrayLike<number>, options: ScaleOptions = {}): Scale {
  return { kind: 'diverging', sign: 1, ...limits(values, options.percentile ?? 0.99) };
}

/** A scale from zero outwards, for values of one sign (log-probabilities: −1; KL: 1). */
export function sequentialScale(values: ArrayLike<number>, options: ScaleOptions = {}): Scale {
  return { kind: 'sequential', sign: options.sign ?? 1, ...limits(values, options.percentile ?? 0.99) };
}

/** Where `value` lies in the ramp, 0 … RAMP_STEPS; −1 where there is no number to show. */
export function rampIndex(scale: Scale, value: number): number {
  if (Number.isNaN(value)) return -1;
  const unit = Math.max(-1, Math.min(1, value / scale.limit));
  if (scale.kind === 'sequential') return Math.round(Math.abs(unit) * RAMP_STEPS);
  return Math.round(((unit + 1) / 2) * RAMP_STEPS);
}

function limits(values: ArrayLike<number>, percentile: number): Omit<Scale, 'kind' | 'sign'> {
  const magnitudes = new Float64Array(values.length);
  let n = 0;
  let count = 0;
  let largest = 0;
  for (let i = 0; i < values.length; i++) {
    const value = Math.abs(values[i] ?? Number.NaN);
    if (!Number.isFinite(value)) continue;
    count++;
    // Zeros would pull the percentile down until the few values that say something were all clipped.
    if (value === 0) continue;
    magnitudes[n++] = value;
    if (value > largest) largest = value;
  }
  if (n === 0) return { limit: 1, largest: 0, clipped: 0, percentile, count };
  const atPercentile = select(magnitudes.subarray(0, n), Math.floor((n - 1) * percentile));
  if (largest <= atPercentile * OUTLIER_FACTOR) return { limit: largest, largest, clipped: 0, percentile, count };
  let clipped = 0;
  for (let i = 0; i < n; i++) if ((magnitudes[i] ?? 0) > atPercentile) clipped++;
  return { limit: atPercentile, largest, clipped, percentile, count };
}

/** The k-th smallest (from 0) of `values`, which are reordered. Hoare's selection: linear time, no full sort. */
export function select(values: Float64Array, k: number): number {
  let low = 0;
  let high = values.length - 1;
  while (low < high) {
    const pivot = values[(low + high) >>> 1] as number;
    let i = low;
    let j = high;
    while (i <= j) {
      while ((values[i] as number) < pivot) i++;
      while ((values[j] as number) > pivot) j--;
      if (i <= j) {
        const swapped = values[i] as number;
        values[i] = values[j] as number;
        values[j] = swapped;
        i++;
        j--;
      }
    }
    if (k <= j) high = j;
    else if (k >= i) low = i;
    else break;
  }
  return values[k] as number;
}
