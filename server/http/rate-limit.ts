/** A token bucket for each key, with a bound on how many keys are remembered. */
export interface RateLimit {
  /** True when the key may go on now. */
  take(key: string, nowMs: number): boolean;
}

const MAX_KEYS = 10_000;

/** `burst` at once, then `perMinute` a minute. */
export function createRateLimit(options: { burst: number; perMinute: number }): RateLimit {
  const costMs = 60_000 / options.perMinute;
  const fullMs = options.burst * costMs;
  const buckets = new Map<string, { creditMs: number; atMs: number }>();
  return {
    take(key, nowMs) {
      const bucket = buckets.get(key) ?? { creditMs: fullMs, atMs: nowMs };
      const creditMs = Math.min(fullMs, bucket.creditMs + Math.max(0, nowMs - bucket.atMs));
      const goesOn = creditMs >= costMs;
      // Deleting first keeps the map in order of last use, so that the bound drops the longest unused key.
      buckets.delete(key);
      if (buckets.size >= MAX_KEYS) {
        const oldest = buckets.keys().next().value;
        if (oldest !== undefined) buckets.delete(oldest);
      }
      buckets.set(key, { creditMs: goesOn ? creditMs - costMs : creditMs, atMs: nowMs });
      return goesOn;
    },
  };
}
