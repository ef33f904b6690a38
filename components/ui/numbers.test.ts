import { describe, expect, it } from 'vitest';
import { count, decimal, duration, percent, signed } from './numbers';

describe('how numbers are written', () => {
  it('decimals have a true minus sign and no negative nought', () => {
    expect([
      decimal(0.538),
      decimal(-1.204),
      decimal(-0.001),
      decimal(null),
      decimal(Number.NaN),
      decimal(Number.NEGATIVE_INFINITY),
    ]).toEqual(['0.54', '−1.20', '0.00', '–', '–', '−∞']);
    expect([signed(1.31), signed(-1.31), signed(0.001), signed(null)]).toEqual(['+1.31', '−1.31', '0.00', '–']);
  });
  it('shares say 0% and 100% only where that is exact', () => {
    expect([percent(0), percent(1), percent(0.999), percent(0.001), percent(0.614), percent(null)]).toEqual([
      '0%',
      '100%',
      '>99%',
      '<1%',
      '61%',
      '–',
    ]);
  });
  it('counts are grouped and spans are short', () => {
    expect(count(48123)).toBe('48,123');
    expect([
      duration(840),
      duration(4_230),
      duration(59_970),
      duration(187_000),
      duration(3_729_000),
      duration(-5),
      duration(null),
    ]).toEqual(['840 ms', '4.2 s', '1:00', '3:07', '1:02:09', '0 ms', '–']);
  });
});
