/** The check after a restart of a server. It makes the server work, so it must not meet the router bringing weights back. */
import { setTimeout as sleep } from 'node:timers/promises';
import { Conflict } from '../../core/errors';
import type { BackendCheck } from '../../core/inference';
import type { ServiceContext } from '../context';
import { recheckBackend } from './check-backend';

/** What the router does about a server that came back has begun by then. */
const SETTLED_MS = 5_000;

/** Throws Conflict while not every server of the backend serves: it is to be asked again later. */
export async function recheckWhenServing(
  ctx: ServiceContext,
  name: string,
  signal: AbortSignal,
  settledMs = SETTLED_MS,
): Promise<BackendCheck[]> {
  await sleep(settledMs, undefined, { signal });
  const backend = await ctx.process.backendLive(name);
  const away = backend.replicas?.().find(({ state }) => state !== 'healthy');
  if (away)
    throw new Conflict(
      `The backend ${name} is checked again when all its servers serve; ${away.url} is ${away.state}.`,
    );
  return recheckBackend({ ctx, input: { name } });
}
