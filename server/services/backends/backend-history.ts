/** What the servers of a backend told over the last hour, for charts. */
import type { z } from 'zod';
import { getBackend } from '../../../db/queries/catalog';
import type { BackendHistory } from '../../core/views';
import { requireRole, type ServiceContext } from '../context';
import { parseInput } from '../inputs';
import { backendNameInput } from './backend-inputs';

/** A chart has no more room than this; of more points every second, third … is sent. */
const MOST_POINTS = 360;

/** Throws NotFound. */
export async function backendHistory({
  ctx,
  input,
}: {
  ctx: ServiceContext;
  input: z.input<typeof backendNameInput>;
}): Promise<BackendHistory> {
  requireRole(ctx, 'viewer', 'Looking at a backend');
  const { name } = parseInput(backendNameInput, input);
  await getBackend(ctx.database.db, name);
  return thinned(ctx.process.backendHistory(name));
}

/** The newest point is always there. */
export function thinned({ stepMs, replicas }: BackendHistory, most = MOST_POINTS): BackendHistory {
  const longest = Math.max(0, ...replicas.map(({ points }) => points.length));
  const every = Math.max(1, Math.ceil(longest / most));
  return {
    stepMs: stepMs * every,
    replicas: replicas.map(({ url, points }) => ({
      url,
      points: points.filter((_point, i) => (points.length - 1 - i) % every === 0),
    })),
  };
}
