/** Scores one token sequence: what was sampled, given everything before it. */
import { Unavailable } from '../../core/errors';
import type { TokenExtras, TokenSequence } from '../../core/tokens/chunk';
import type { CompletionScores, InferenceBackend, ScorePair } from '../../inference/backend';

export interface SequenceScores {
  /** Shape [n], NaN where nothing was sampled. */
  logprobs: Float32Array;
  /** Null when none were asked for. Positions where nothing was sampled hold NaN and id −1. */
  extras: TokenExtras | null;
}

export interface ScoreWishes {
  alternatives: number;
  entropy: boolean;
  signal: AbortSignal;
}

/** Throws from the error family; a number that no sampled token can have is refused with its position. */
export async function scoreSequence(
  backend: InferenceBackend,
  { ids, mask }: Pick<TokenSequence, 'ids' | 'mask'>,
  { alternatives, entropy, signal }: ScoreWishes,
): Promise<SequenceScores> {
  const n = ids.length;
  const first = mask.indexOf(1);
  const end = mask.lastIndexOf(1) + 1;
  const extras: TokenExtras | null =
    alternatives > 0 || entropy
      ? {
          entropy: entropy ? new Float32Array(n).fill(Number.NaN) : null,
          alternatives:
            alternatives > 0
              ? {
                  k: alternatives,
                  ids: new Int32Array(n * alternatives).fill(-1),
                  logprobs: new Float32Array(n * alternatives).fill(Number.NaN),
                }
              : null,
        }
      : null;
  const logprobs = new Float32Array(n).fill(Number.NaN);
  if (end === 0) return { logprobs, extras };
  const pair: ScorePair = { promptIds: ids.slice(0, first), completionIds: ids.slice(first, end) };
  const [scores] = await backend.getLogprobs([pair], { signal, alternatives, entropy });
  if (!scores) throw new Unavailable(`The backend ${backend.name} gave no scores.`);
  checkShapes(backend.name, scores, end - first, { alternatives, entropy });
  for (let k = first; k < end; k++) {
    if (mask[k] !== 1) continue;
    const value = scores.logprobs[k - first] as number;
    // -9999 and the lowest float are how servers spell minus infinity; NaN is no number at all.
    if (!(value <= 1e-4 && value > -9000))
      throw new Unavailable(
        `The backend ${backend.name} gave the log-probability ${value} for the sampled token at position ${k}; it is no number that a sampled token can have.`,
      );
    logprobs[k] = value;
    if (extras) copyExtras(extras, scores, k, k - first);
  }
  return { logprobs, extras };
}

function checkShapes(name: string, scores: CompletionScores, n: number, wanted: Omit<ScoreWishes, 'signal'>): void {
  const { logprobs, entropy, alternatives } = scores;
  const wrong =
    logprobs.length !== n ||
    (wanted.entropy && entropy?.length !== n) ||
    (wanted.alternatives > 0 &&
      (!alternatives ||
        alternatives.ids.length !== n * alternatives.k ||
        alternatives.logprobs.length !== n * alternatives.k));
  if (wrong) throw new Unavailable(`The backend ${name} gave scores of another length than the ${n} tokens asked for.`);
}

/** @param at position in the sequence; @param from position in the scores */
function copyExtras(into: TokenExtras, { entropy, alternatives }: CompletionScores, at: number, from: number): void {
  if (into.entropy && entropy) into.entropy[at] = entropy[from] as number;
  if (!into.alternatives || !alternatives) return;
  const { k } = into.alternatives;
  for (let i = 0; i < Math.min(k, alternatives.k); i++) {
    into.alternatives.ids[at * k + i] = alternatives.ids[from * alternatives.k + i] as number;
    into.alternatives.logprobs[at * k + i] = alternatives.logprobs[from * alternatives.k + i] as number;
  }
}
