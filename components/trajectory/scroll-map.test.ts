import { describe, expect, it } from 'vitest';
import { scrollMap, TALLEST_ELEMENT } from './scroll-map';

describe('the scroll map', () => {
  it('is one to one for content an element can hold', () => {
    const map = scrollMap(5000, 500);
    expect([map.toContent(1234), map.toScroll(1234), map.elementHeight]).toEqual([1234, 1234, 5000]);
  });
  it('reaches both ends of content taller than any element', () => {
    const map = scrollMap(40_000_000, 800);
    expect(map.elementHeight).toBe(TALLEST_ELEMENT);
    expect(map.toContent(TALLEST_ELEMENT - 800)).toBe(40_000_000 - 800);
    expect(map.toContent(map.toScroll(20_000_000))).toBeCloseTo(20_000_000, 3);
  });
  it('holds still where all fits', () => {
    expect(scrollMap(100, 500).toContent(50)).toBe(0);
  });
});
