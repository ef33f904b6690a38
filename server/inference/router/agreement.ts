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

/** What a server must be to serve: what the others are, and what was said of it to those who use it. */
export interface Wanted {
  /** Under any of these names: some servers are called after their weights. Empty: any. */
  modelNames: ReadonlySet<string>;
  contextLength: number;
  tokenIds: boolean;
}

/** Why a server is left out, as a sentence; null when it is what is wanted. */
export function disagreement(
  where: { url: string; backend: string },
  found: BackendCapabilities,
  { modelNames, contextLength, tokenIds }: Wanted,
): string | null {
  const { url, backend } = where;
  if (modelNames.size > 0 && !modelNames.has(found.modelName)) {
    const [name] = modelNames;
    return `The server ${url} serves ${found.modelName} and the backend ${backend} is of ${name}; it is left out until it serves that.`;
  }
  if (found.contextLength < contextLength)
    return `The server ${url} has a context of ${found.contextLength} tokens and the backend ${backend} one of ${contextLength}; it is left out until it has as much.`;
  if (tokenIds && !found.tokenIds)
    return `The server ${url} gives no token ids, which the backend ${backend} needs; it is left out until it does.`;
  return null;
}
