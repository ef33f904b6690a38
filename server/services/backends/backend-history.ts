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

/**
 * The first point of each longer step, and the newest of all. Which ones stay does not depend on how many there are, so
 * that lines do not waver while points come in.
 */
export function thinned({ stepMs, replicas }: BackendHistory, most = MOST_POINTS): BackendHistory {
  const longest = Math.max(0, ...replicas.map(({ points }) => points.length));
  const longerMs = stepMs * Math.max(1, Math.ceil(longest / most));
  const stepOf = (atMs: number): number => Math.floor(atMs / longerMs);
  return {
    stepMs: longerMs,
    replicas: replicas.map(({ url, points }) => ({
      url,
      points:
        longerMs === stepMs
          ? points
          : points.filter(({ atMs }, i) => {
              const before = points[i - 1];
              return !before || i === points.length - 1 || stepOf(before.atMs) !== stepOf(atMs);
            }),
    })),
  };
}
