/** `studio backends`, `weights`, `pause`, `resume`: servers that generate, from the command line. */
import { setTimeout as sleep } from 'node:timers/promises';
import { Cancelled, Conflict, Unavailable } from '../core/errors';
import type { WeightUpdateView } from '../core/views';
import type { StudioClient } from './client';

const POLL_MS = 1_000;

/** Waits for the end of the update, however long it takes. Throws Unavailable with what the server said when it failed. */
export async function updateWeights(
  client: StudioClient,
  update: Parameters<StudioClient['updateWeights']>[0],
  signal: AbortSignal,
): Promise<WeightUpdateView> {
  let current = await client.updateWeights(update);
  while (current.status === 'running') {
    if (signal.aborted) throw new Cancelled(`Stopped watching. The update of ${update.name} goes on.`);
    await sleep(POLL_MS, undefined, { signal }).catch(() => undefined);
    const newer = (await client.weightUpdates(update.name)).find(({ id }) => id === current.id);
    if (!newer) throw new Conflict(`The update of ${update.name} is gone: the backend was removed.`);
    current = newer;
  }
  if (current.status === 'failed') throw new Unavailable(current.error ?? `The update of ${update.name} failed.`);
  return current;
}

/** The servers that were away while the others took the weights: they get them when they are back. */
export async function serversWithout(
  client: StudioClient,
  name: string,
  version: string,
): Promise<{ url: string; reason: string }[]> {
  const { replicas } = await client.getBackend(name);
  return replicas
    .filter(({ state, weightVersion }) => state === 'down' || (state !== 'unknown' && weightVersion !== version))
    .map(({ url, reason, weightVersion }) => ({ url, reason: reason ?? `It serves ${weightVersion ?? 'nothing'}.` }));
}

/** An answer of the studio with the names that the command line's JSON has: words parted by underscores. */
export function snakeCase(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(snakeCase);
  if (value === null || typeof value !== 'object') return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, part]) => [
      name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
      snakeCase(part),
    ]),
  );
}
