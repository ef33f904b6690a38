/** Time series of a backend's servers for the charts: which figures, in which unit, one column a server. */
import type { BackendHistory, BackendHistoryPoint } from '../../server/core/views';

export const FIGURES = ['requests', 'waiting', 'tokens', 'ttft', 'tpot', 'kv', 'prefix', 'errors'] as const;
export type Figure = (typeof FIGURES)[number];

/** Null where the server did not tell. */
export function figureOf(figure: Figure, point: BackendHistoryPoint): number | null {
  const { figures } = point;
  switch (figure) {
    case 'requests':
      return figures?.running ?? point.inFlight;
    case 'waiting':
      return figures?.waiting ?? null;
    case 'tokens':
      return figures?.tokensPerSecond ?? null;
    case 'ttft':
      return figures?.timeToFirstTokenMs ?? null;
    case 'tpot':
      return figures?.timePerOutputTokenMs ?? null;
    case 'kv':
      return figures?.kvCacheUse ?? null;
    case 'prefix':
      return figures?.prefixHitRate ?? null;
    case 'errors':
      return point.errors;
  }
}

/** A moment of all servers; `s0`, `s1` … are the columns, in the order of the replicas. */
export interface SeriesRow {
  atMs: number;
  [server: `s${number}`]: number | null;
}

/**
 * One row a moment. Points of different servers that lie within half a step are one moment; after a gap of more than
 * three steps a row of nulls parts the line, so that nobody reads what was not measured.
 */
export function seriesOf(history: BackendHistory, figure: Figure): SeriesRow[] {
  const { stepMs, replicas } = history;
  const rows = new Map<number, SeriesRow>();
  replicas.forEach(({ points }, server) => {
    for (const point of points) {
      const slot = Math.round(point.atMs / stepMs);
      const row = rows.get(slot) ?? { atMs: slot * stepMs };
      row[`s${server}`] = figureOf(figure, point);
      rows.set(slot, row);
    }
  });
  const ordered = [...rows.values()].sort((a, b) => a.atMs - b.atMs);
  return ordered.flatMap((row, i) => {
    const before = ordered[i - 1];
    return before && row.atMs - before.atMs > 3 * stepMs ? [{ atMs: before.atMs + stepMs }, row] : [row];
  });
}

/** When the weights of a server changed, oldest first. */
export function versionChanges(history: BackendHistory): { atMs: number; version: string }[] {
  const changes: { atMs: number; version: string }[] = [];
  const seen = new Set<string>();
  for (const { points } of history.replicas) {
    let last: string | null = null;
    for (const { atMs, weightVersion } of points) {
      if (weightVersion !== null && last !== null && weightVersion !== last && !seen.has(weightVersion)) {
        changes.push({ atMs, version: weightVersion });
        seen.add(weightVersion);
      }
      last = weightVersion ?? last;
    }
  }
  return changes.sort((a, b) => a.atMs - b.atMs);
}
