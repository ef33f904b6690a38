import { describe, expect, it } from 'vitest';
import { divergingScale } from '../charts/scale';
import { representative } from './minimap';

const values = [Number.NaN, 0.1, -2, 0.3, Number.NaN];
const mask = Uint8Array.from([0, 1, 1, 1, 0]);
const view = {
  channel: 'advantage',
  scale: divergingScale(values),
  valueAt: (token: number) => values[token] as number,
} as const;

describe('the minimap', () => {
  it('shows the value furthest from zero of what the policy sampled', () => {
    expect(representative(view, mask, 0, 5)).toBe(2);
    expect(representative(view, mask, 3, 5)).toBe(3);
  });
  it('shows that the policy wrote nothing there', () => {
    expect(representative(view, mask, 4, 5)).toBe(-1);
    expect(representative(view, mask, 0, 1)).toBe(-1);
  });
});
