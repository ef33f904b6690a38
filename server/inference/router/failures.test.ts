import { expect, it } from 'vitest';
import { backOff } from './failures';

it('waits twice as long with each attempt, up to a longest time, and never all at the same moment', () => {
  const pauses = (random: () => number) =>
    Array.from({ length: 7 }, (_, attempt) => backOff(attempt, 500, 10_000, random));
  expect(pauses(() => 1)).toEqual([500, 1000, 2000, 4000, 8000, 10_000, 10_000]);
  expect(pauses(() => 0)).toEqual([250, 500, 1000, 2000, 4000, 5000, 5000]);
  expect(backOff(1e6, 500, 10_000, () => 1)).toBe(10_000);
});
