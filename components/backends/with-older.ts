import type { WeightUpdateView } from '../../server/core/views';

/** The newest updates as they are now, then those asked for before; some stand in both. Newest first. */
export function withOlder(newest: readonly WeightUpdateView[], older: readonly WeightUpdateView[]): WeightUpdateView[] {
  const all = new Map([...older, ...newest].map((update) => [update.number, update]));
  return [...all.values()].sort((a, b) => b.number - a.number);
}
