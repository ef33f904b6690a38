import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { divergingScale, RAMP_STEPS, rampIndex, select, sequentialScale } from './scale';

describe('a diverging scale', () => {
  it('is not flattened by one outlier of 40 among a thousand values below 1', () => {
    const values = Array.from({ length: 1000 }, (_, i) => Math.sin(i * 12.9898) * 0.99);
    values[500] = 40;
    const scale = divergingScale(values);
    expect(scale.limit).toBeLessThan(1);
    expect(scale.limit).toBeGreaterThan(0.9);
    expect(scale.largest).toBe(40);
    expect(scale.clipped).toBeGreaterThan(0);
    expect(rampIndex(scale, 40)).toBe(RAMP_STEPS);
    expect(rampIndex(scale, 0.5) - RAMP_STEPS / 2).toBeGreaterThan(RAMP_STEPS / 5);
  });
  it('clips nothing where the values are of one size', () => {
    const scale = divergingScale([0.2, -0.3, 0.5, -1.8, 1.3]);
    expect(scale).toMatchObject({ limit: 1.8, clipped: 0, largest: 1.8, count: 5 });
  });
  it('takes its end from the values that say something, not from the zeros around them', () => {
    const values = new Float32Array(10_000);
    values[3] = 1;
    values[4] = -1.5;
    expect(divergingScale(values)).toMatchObject({ limit: 1.5, clipped: 0 });
  });
  it('puts zero in the neutral middle and no number nowhere', () => {
    const scale = divergingScale([1, 2]);
    expect(rampIndex(scale, 0)).toBe(RAMP_STEPS / 2);
    expect(rampIndex(scale, Number.NaN)).toBe(-1);
    expect(rampIndex(scale, Number.NEGATIVE_INFINITY)).toBe(0);
  });
  it('has an end above zero without any values', () => {
    expect(divergingScale([])).toMatchObject({ limit: 1, largest: 0, clipped: 0, count: 0 });
    expect(divergingScale([Number.NaN, Number.POSITIVE_INFINITY]).limit).toBe(1);
  });
  it('never leaves the ramp and keeps the order of the numbers', () => {
    fc.assert(
      fc.property(fc.array(fc.double({ noNaN: true, min: -1e6, max: 1e6 }), { minLength: 1 }), (values) => {
        const scale = divergingScale(values);
        const sorted = [...values].sort((a, b) => a - b).map((value) => rampIndex(scale, value));
        for (let i = 0; i < sorted.length; i++) {
          const at = sorted[i] ?? Number.NaN;
          expect(at).toBeGreaterThanOrEqual(0);
          expect(at).toBeLessThanOrEqual(RAMP_STEPS);
          if (i > 0) expect(at).toBeGreaterThanOrEqual(sorted[i - 1] ?? 0);
        }
      }),
    );
  });
});

describe('a sequential scale', () => {
  it('runs from zero to the low end for log-probabilities', () => {
    const scale = sequentialScale([-0.1, -2, -4], { sign: -1 });
    expect(rampIndex(scale, 0)).toBe(0);
    expect(rampIndex(scale, -4)).toBe(RAMP_STEPS);
    expect(scale.sign).toBe(-1);
  });
});

describe('selection', () => {
  it('finds the same value a sort would', () => {
    fc.assert(
      fc.property(
        fc.array(
          fc.double({ noNaN: true }).map((v) => v + 0),
          { minLength: 1 },
        ),
        fc.nat(),
        (values, seed) => {
          const k = seed % values.length;
          const sorted = Float64Array.from(values).sort();
          expect(select(Float64Array.from(values), k)).toBe(sorted[k]);
        },
      ),
    );
  });
});
