import { describe, expect, it } from 'vitest';
import { createRateLimit } from './rate-limit';

describe('a rate limit', () => {
  it('lets a burst through, then waits for the rate, a key apart from the others', () => {
    const limit = createRateLimit({ burst: 3, perMinute: 6 });
    expect([1, 2, 3, 4].map(() => limit.take('a', 0))).toEqual([true, true, true, false]);
    expect(limit.take('b', 0)).toBe(true);
    expect(limit.take('a', 9_000)).toBe(false);
    expect(limit.take('a', 10_000)).toBe(true);
    expect(limit.take('a', 10_000)).toBe(false);
  });

  it('does not gain from a clock that goes back', () => {
    const limit = createRateLimit({ burst: 1, perMinute: 60 });
    expect(limit.take('a', 60_000)).toBe(true);
    expect(limit.take('a', 0)).toBe(false);
  });
});
