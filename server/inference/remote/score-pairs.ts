/** Scores many completions on one server, a few at a time: each is a prefill, and none waits on another. */
import { setMaxListeners } from 'node:events';
import { Invalid } from '../../core/errors';
import type { CompletionScores, ScoreOptions, ScorePair } from '../backend';
import { reasonOf } from './error-sentence';
import type { RawScores } from './protocol';

const AT_ONCE = 16;

interface ScoreCall {
  promptIds: Int32Array;
  completionIds: Int32Array;
  alternatives: number;
  entropy: boolean;
  signal?: AbortSignal;
}

/** In the order of the pairs. The first failure stops the rest and is thrown. */
export async function scorePairs(
  pairs: ScorePair[],
  { alternatives = 0, entropy = false, signal }: ScoreOptions,
  server: string,
  score: (call: ScoreCall) => Promise<RawScores>,
): Promise<CompletionScores[]> {
  const stop = new AbortController();
  setMaxListeners(0, stop.signal);
  const onAbort = () => stop.abort(signal?.reason);
  if (signal?.aborted) onAbort();
  signal?.addEventListener('abort', onAbort, { once: true });
  const results = new Array<CompletionScores>(pairs.length);
  let next = 0;
  const work = async () => {
    for (let at = next++; at < pairs.length && !stop.signal.aborted; at = next++) {
      const pair = pairs[at] as ScorePair;
      const call = { ...pair, alternatives, entropy, signal: stop.signal };
      const raw = pair.completionIds.length === 0 ? nothing(alternatives) : await score(call);
      results[at] = checked(raw, pair.completionIds.length, call, server);
    }
  };
  try {
    await Promise.all(Array.from({ length: Math.min(AT_ONCE, pairs.length) }, work));
    // Aborted between two calls: no call was there to throw.
    if (signal?.aborted) throw reasonOf(signal);
    return results;
  } catch (error) {
    stop.abort(error);
    throw error;
  } finally {
    signal?.removeEventListener('abort', onAbort);
  }
}

function nothing(alternatives: number): RawScores {
  const none = { k: alternatives, ids: new Int32Array(0), logprobs: new Float32Array(0) };
  return { logprobs: new Float32Array(0), entropy: null, alternatives: alternatives > 0 ? none : null };
}

function checked(raw: RawScores, n: number, { alternatives, entropy }: ScoreCall, server: string): CompletionScores {
  const k = raw.alternatives?.k ?? 0;
  const wrong =
    raw.logprobs.length !== n ||
    (raw.alternatives !== null &&
      (raw.alternatives.ids.length !== n * k || raw.alternatives.logprobs.length !== n * k)) ||
    (raw.entropy !== null && raw.entropy.length !== n);
  if (wrong)
    throw new Invalid(
      `${server} sent ${raw.logprobs.length} log-probabilities for ${n} tokens; nothing of it is used.`,
    );
  return {
    logprobs: raw.logprobs,
    entropy: entropy ? raw.entropy : null,
    alternatives: alternatives > 0 ? raw.alternatives : null,
  };
}
