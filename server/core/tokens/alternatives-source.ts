/** Whose alternatives a token sequence has. */
import type { ScoreSource } from './chunk';

/** The scoring that brought alternatives last: the columns of a sequence share one place for them. Null: none did. */
export function alternativesSource(sources: readonly (ScoreSource | null)[]): ScoreSource | null {
  const brought = sources.filter((source) => source !== null).filter(({ alternatives = 0 }) => alternatives > 0);
  return brought.reduce<ScoreSource | null>((last, one) => (last && last.atMs >= one.atMs ? last : one), null);
}
