/** How the servers of a backend are, in the words a person reads. */
import { behindName } from '../remote/server-name';
import { ended } from '../remote/server-words';
import type { Replica } from './replica';

/** Servers that are named each with its own reason; of more, the first stands for all. */
const MOST_TOLD = 3;

/** Why nobody can be served now; the caller knows that it is so. */
export function troubleOf(
  backend: string,
  replicas: readonly Replica[],
  { paused, updatingTo }: { paused: boolean; updatingTo: string | null },
): string {
  const pause = `An operator paused the backend ${backend}; requests wait until it is resumed.`;
  if (paused && replicas.some(({ serving, updating }) => serving || updating)) return pause;
  if (updatingTo !== null && replicas.some((replica) => replica.updating))
    return `The weights of the backend ${backend} are being changed to ${updatingTo}; requests wait until that is done.`;
  const [first, ...others] = replicas;
  if (!first) return `The backend ${backend} has no server.`;
  // Most reasons name their server themselves.
  const whyOf = ({ url, reason }: Replica) =>
    `${url}: ${ended(behindName(reason ?? 'it has not been asked yet', { backend, url }))}`;
  const why =
    others.length < MOST_TOLD
      ? replicas.map(whyOf).join(' ')
      : `${whyOf(first)} The other ${others.length} cannot either.`;
  const silent = `No server of the backend ${backend} can be used, and requests wait until one can. ${why}`;
  return paused ? `${pause} ${silent}` : silent;
}

/** What serves, and the first that does not. */
export function healthOf(replicas: readonly Replica[], modelName: string, weights: string | null): string {
  const serving = replicas.filter((replica) => replica.serving);
  const who =
    replicas.length === 1
      ? `The server ${replicas[0]?.url} serves`
      : `${serving.length} of ${replicas.length} servers serve`;
  const down = replicas.find((replica) => !replica.serving);
  const missing = down ? ` ${down.url} does not: ${down.reason}` : '';
  return `${who} ${modelName}, weights ${weights}.${missing}`;
}
