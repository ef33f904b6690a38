/** The scorers a skill can weigh, by name. */
import { answerF1, exact, numeric, regex } from './answers';
import type { Scorer, SuppliedScorer } from './scorer';
import { searchProgress } from './search-progress';
import { toolAccuracy } from './tool-accuracy';

/** A judge model's verdict, 0..1; comes from outside. */
export const reasoningQuality: SuppliedScorer = {
  name: 'reasoning_quality',
  scores: 'end',
  supplied: true,
  lacks: () => null,
};

const SCORERS: ReadonlyMap<string, Scorer> = new Map(
  [toolAccuracy, searchProgress, answerF1, exact, numeric, regex, reasoningQuality].map((scorer) => [
    scorer.name,
    scorer,
  ]),
);

export const SCORER_NAMES: readonly string[] = [...SCORERS.keys()];

export function findScorer(name: string): Scorer | undefined {
  return SCORERS.get(name);
}
