/** What many servers can do together, and whether one of them is what the others are. */
import { Invalid } from '../../core/errors';
import type { BackendCapabilities } from '../backend';

/**
 * What each of them can do. `maxInFlight` is the sum; log-probabilities of unlike kinds are of an unknown kind.
 * @param each at least one
 */
export function together(each: readonly BackendCapabilities[]): BackendCapabilities {
  const [first] = each;
  if (!first) throw new Invalid('There is no server whose capabilities could be known.');
  const all = (has: (one: BackendCapabilities) => boolean) => each.every(has);
  return {
    tokenIds: all((one) => one.tokenIds),
    logprobs: all((one) => one.logprobs === first.logprobs) ? first.logprobs : 'unknown',
    canScore: all((one) => one.canScore),
    entropy: all((one) => one.entropy),
    constraints: first.constraints.filter((kind) => all((one) => one.constraints.includes(kind))),
    weightSources: first.weightSources.filter((source) => all((one) => one.weightSources.includes(source))),
    // Requests are held here, so any server can be paused.
    canPause: true,
    seeded: all((one) => one.seeded),
    embeddings: all((one) => one.embeddings),
    contextLength: Math.min(...each.map((one) => one.contextLength)),
    modelName: first.modelName,
    batchSize: 1,
    maxInFlight: each.reduce((sum, one) => sum + one.maxInFlight, 0),
  };
}

/** Why a server must not serve beside (or in the place of) those that were known before, as a sentence; else null. */
export function disagreement(
  where: { url: string; backend: string },
  found: BackendCapabilities,
  wanted: BackendCapabilities,
): string | null {
  const { url, backend } = where;
  if (found.modelName !== wanted.modelName)
    return `The server ${url} serves ${found.modelName} and the backend ${backend} is of ${wanted.modelName}; it is left out until it serves that again.`;
  if (found.contextLength < wanted.contextLength)
    return `The server ${url} has a context of ${found.contextLength} tokens and the backend ${backend} one of ${wanted.contextLength}; it is left out until it has as much.`;
  if (wanted.tokenIds && !found.tokenIds)
    return `The server ${url} gives no token ids any more, which the backend ${backend} needs; it is left out until it does.`;
  return null;
}
