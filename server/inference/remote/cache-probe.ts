/** What a server is asked to read when nobody knows what its prefix cache holds. */
import type { ServerFacts } from './protocol';

/** Ids that every vocabulary has. */
const FIRST_ID = 10;
const IDS = 64;
const TOKENS = 256;

/**
 * A prompt that shows whether a prefix cache was emptied, where none of ours is known to have been read: it is read before
 * and after. Long enough to fill whole pages of a cache.
 */
export function cacheProbe({ contextLength }: Pick<ServerFacts, 'contextLength'>): Int32Array {
  return Int32Array.from({ length: Math.min(TOKENS, contextLength - 1) }, (_, k) => FIRST_ID + (k % IDS));
}
