/** Scores of many completions, spread over the servers beside what else they do. */
import { setMaxListeners } from 'node:events';
import { Unavailable } from '../../core/errors';
import type { CompletionScores, ScoreOptions, ScorePair } from '../backend';
import type { Dispatcher } from './dispatcher';

/** In the order of the pairs. The first failure ends the rest. @param key names the asker: its turn comes once a round */
export async function scorePairs(
  dispatcher: Dispatcher,
  pairs: readonly ScorePair[],
  options: ScoreOptions,
  key: string,
): Promise<CompletionScores[]> {
  const stop = new AbortController();
  // Every pair listens to it.
  setMaxListeners(0, stop.signal);
  const onAbort = () => stop.abort(options.signal?.reason);
  if (options.signal?.aborted) onAbort();
  options.signal?.addEventListener('abort', onAbort, { once: true });
  const scored = pairs.map((pair) =>
    dispatcher.submit({
      key,
      keepsTogether: false,
      tokens: pair.promptIds.length + pair.completionIds.length,
      signal: stop.signal,
      work: async (server, signal) => {
        const [scores] = await server.getLogprobs([pair], { ...options, signal });
        if (!scores) throw new Unavailable(`The backend ${server.name} gave no scores.`);
        return scores;
      },
    }),
  );
  try {
    return await Promise.all(scored);
  } catch (error) {
    stop.abort(error);
    throw error;
  } finally {
    options.signal?.removeEventListener('abort', onAbort);
  }
}
