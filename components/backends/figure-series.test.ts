import { describe, expect, it } from 'vitest';
import type { ServerFigures } from '../../server/core/inference';
import type { BackendHistory, BackendHistoryPoint } from '../../server/core/views';
import {
  historyOf,
  isUntold,
  lonePoints,
  newestOf,
  type SeriesRow,
  seriesOf,
  versionAtMs,
  versionChanges,
} from './figure-series';

const point = (atMs: number, inFlight: number, weightVersion = 'a'): BackendHistoryPoint => ({
  atMs,
  state: 'healthy',
  inFlight,
  errors: 0,
  weightVersion,
  figures: null,
});
const NOTHING_TOLD: ServerFigures = {
  running: null,
  waiting: null,
  timeToFirstTokenMs: null,
  timePerOutputTokenMs: null,
  tokensPerSecond: null,
  promptTokensPerSecond: null,
  kvCacheUse: null,
  prefixHitRate: null,
};
const history = (...replicas: BackendHistoryPoint[][]): BackendHistory => ({
  stepMs: 100,
  replicas: replicas.map((points, i) => ({ url: `http://server-${i}`, points })),
});

describe('the series of a chart', () => {
  it('puts the servers of one moment into one row', () => {
    expect(seriesOf(history([point(100, 1), point(200, 2)], [point(104, 5), point(203, 6)]), 'requests')).toEqual([
      { atMs: 100, s0: 1, s1: 5 },
      { atMs: 200, s0: 2, s1: 6 },
    ]);
  });

  it('parts the line where nobody looked', () => {
    const rows = seriesOf(history([point(100, 1), point(2_000, 2)]), 'requests');
    expect(rows.map((row) => row.s0)).toEqual([1, undefined, 2]);
  });

  it('has no number where the server told none', () => {
    expect(seriesOf(history([point(100, 1)]), 'ttft')).toEqual([{ atMs: 100, s0: null }]);
  });
});

describe('the newest figure', () => {
  const told = (atMs: number, kvCacheUse: number | null) => ({
    ...point(atMs, 3),
    figures: { ...NOTHING_TOLD, running: 4, kvCacheUse },
  });

  it('is the value of one server, the sum of several, or the span of what has no sum', () => {
    expect(newestOf(history([told(100, 0.1), told(200, 0.5)]), 'kv')).toEqual({ low: 0.5, high: 0.5, summed: false });
    expect(newestOf(history([told(200, 0.5)], [point(200, 2)]), 'requests')).toEqual({ low: 6, high: 6, summed: true });
    expect(newestOf(history([told(200, 0.5)], [told(200, 0.2)]), 'kv')).toEqual({ low: 0.2, high: 0.5, summed: false });
  });

  it('leaves out a server that told nothing, or nothing of late', () => {
    expect(newestOf(history([told(2_000, 0.5)], [told(1_000, 0.2)]), 'kv')).toMatchObject({ low: 0.5, high: 0.5 });
    expect(newestOf(history([told(200, null)], [point(200, 1)]), 'kv')).toBeNull();
    expect(newestOf(history([], []), 'requests')).toBeNull();
  });
});

describe('readings that stand alone', () => {
  it('are those without another of the same column beside them', () => {
    const rows: SeriesRow[] = [
      { atMs: 1, s0: 5, s1: null },
      { atMs: 2, s0: 6, s1: 7 },
      { atMs: 3, s0: null },
      { atMs: 4, s0: 0, s1: null },
    ];
    expect(lonePoints(rows, 's0')).toEqual([{ atMs: 4, value: 0 }]);
    expect(lonePoints(rows, 's1')).toEqual([{ atMs: 2, value: 7 }]);
    expect(lonePoints([], 's0')).toEqual([]);
  });
});

describe('the servers of a chart', () => {
  it('are those that are there now, in their order', () => {
    const kept = historyOf(history([point(100, 1)], [point(100, 2)]), ['http://new', 'http://server-1']);
    expect(kept.replicas).toEqual([
      { url: 'http://new', points: [] },
      { url: 'http://server-1', points: [point(100, 2)] },
    ]);
    expect(seriesOf(kept, 'requests')).toEqual([{ atMs: 100, s1: 2 }]);
  });
});

describe('changes of weights', () => {
  it('are told once, when the first server has them', () => {
    const changes = versionChanges(history([point(100, 0), point(300, 0, 'b')], [point(100, 0), point(200, 0, 'b')]));
    expect(changes).toEqual([{ atMs: 200, version: 'b' }]);
    expect(versionChanges(history([point(100, 0)]))).toEqual([]);
    expect([100, 200, 900].map((atMs) => versionAtMs(changes, atMs))).toEqual([null, 'b', 'b']);
  });
});

describe('what a server does not tell', () => {
  const reading = (figures: Partial<ServerFigures>): BackendHistoryPoint => ({
    ...point(100, 0),
    figures: { ...NOTHING_TOLD, ...figures },
  });

  it('is everything once it answered without figures, and nothing before it answered', () => {
    expect(isUntold(history([point(100, 0)]), 'kv')).toBe(true);
    expect(isUntold(history([{ ...point(100, 0), state: 'down' }]), 'kv')).toBe(false);
  });

  it('is a gauge as soon as others are told, and a figure of requests once something was sampled', () => {
    const idle = history([reading({ running: 0, tokensPerSecond: 0 })]);
    expect(isUntold(idle, 'kv')).toBe(true);
    for (const figure of ['ttft', 'tpot', 'prefix'] as const) {
      expect(isUntold(idle, figure), figure).toBe(false);
      expect(isUntold(history([reading({ tokensPerSecond: 12 })]), figure), figure).toBe(true);
    }
  });
});
