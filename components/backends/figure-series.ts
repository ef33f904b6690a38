/** Time series of a backend's servers for the charts: which figures, in which unit, one column a server. */
import type { BackendHistory, BackendHistoryPoint } from '../../server/core/views';

export const FIGURES = ['requests', 'waiting', 'tokens', 'ttft', 'tpot', 'kv', 'prefix', 'errors'] as const;
export type Figure = (typeof FIGURES)[number];

/** What several servers do together is their sum; the others are means and shares. */
const SUMMED: ReadonlySet<Figure> = new Set(['requests', 'waiting', 'tokens', 'errors']);

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

/** The history of the servers that are there now, in their order. */
export function historyOf(history: BackendHistory, urls: readonly string[]): BackendHistory {
  const known = new Map(history.replicas.map((replica) => [replica.url, replica]));
  return { ...history, replicas: urls.map((url) => known.get(url) ?? { url, points: [] }) };
}

/** A moment of all servers; `s0`, `s1` … are the columns, in the order of the replicas. */
export interface SeriesRow {
  atMs: number;
  [server: `s${number}`]: number | null;
}

/** Steps without a point that part a line, so that nobody reads what was not measured. */
const GAP_STEPS = 3;

/** One row a moment. Points of different servers that lie within half a step are one moment; a gap is a row of nulls. */
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
    return before && row.atMs - before.atMs > GAP_STEPS * stepMs ? [{ atMs: before.atMs + stepMs }, row] : [row];
  });
}

/** Readings of a column without another beside them: no line leads to one, so it is drawn as a dot. */
export function lonePoints<Column extends string>(
  rows: readonly ({ atMs: number } & { [column in Column]?: number | null })[],
  column: Column,
): { atMs: number; value: number }[] {
  const valueAt = (at: number): number | null => rows[at]?.[column] ?? null;
  return rows.flatMap(({ atMs }, at) => {
    const value = valueAt(at);
    return value !== null && valueAt(at - 1) === null && valueAt(at + 1) === null ? [{ atMs, value }] : [];
  });
}

/**
 * A figure as it is now: of one server its value; of several their sum, or from the lowest to the highest where a sum
 * says nothing. Null when no server told of late.
 */
export function newestOf(
  history: BackendHistory,
  figure: Figure,
): { low: number; high: number; summed: boolean } | null {
  const { stepMs, replicas } = history;
  const newest = replicas.flatMap(({ points }) => points.at(-1) ?? []);
  const newestMs = Math.max(...newest.map(({ atMs }) => atMs));
  const values = newest
    .filter(({ atMs }) => newestMs - atMs <= GAP_STEPS * stepMs)
    .map((point) => figureOf(figure, point))
    .filter((value) => value !== null);
  if (values.length === 0) return null;
  if (replicas.length === 1 || !SUMMED.has(figure))
    return { low: Math.min(...values), high: Math.max(...values), summed: false };
  const sum = values.reduce((total, value) => total + value, 0);
  return { low: sum, high: sum, summed: true };
}

/** Figures of requests: there is none before a server has sampled something. */
const OF_REQUESTS: ReadonlySet<Figure> = new Set(['ttft', 'tpot', 'prefix']);

/**
 * Whether the servers do not tell a figure of which nothing was read: they have answered and told nothing at all, or
 * have told others when this one would have been there.
 */
export function isUntold({ replicas }: BackendHistory, figure: Figure): boolean {
  const points = replicas.flatMap((replica) => replica.points);
  const told = points.flatMap(({ figures }) => figures ?? []);
  if (told.length === 0) return points.some(({ state }) => state === 'healthy');
  return told.some(({ tokensPerSecond }) => !OF_REQUESTS.has(figure) || (tokensPerSecond ?? 0) > 0);
}

/** When the first server had new weights, oldest first. */
export function versionChanges(history: BackendHistory): { atMs: number; version: string }[] {
  const first = new Map<string, number>();
  for (const { points } of history.replicas) {
    let last: string | null = null;
    for (const { atMs, weightVersion } of points) {
      if (weightVersion !== null && last !== null && weightVersion !== last)
        first.set(weightVersion, Math.min(atMs, first.get(weightVersion) ?? atMs));
      last = weightVersion ?? last;
    }
  }
  return [...first].map(([version, atMs]) => ({ atMs, version })).sort((a, b) => a.atMs - b.atMs);
}

/** The weights at a moment, by the changes until then; null where the chart begins with them. */
export function versionAtMs(changes: readonly { atMs: number; version: string }[], atMs: number): string | null {
  return changes.findLast((change) => change.atMs <= atMs)?.version ?? null;
}
