import { describe, expect, it } from 'vitest';
import type { BackendHistory, BackendHistoryPoint } from '../../server/core/views';
import { seriesOf, versionChanges } from './figure-series';

const point = (atMs: number, inFlight: number, weightVersion = 'a'): BackendHistoryPoint => ({
  atMs,
  state: 'healthy',
  inFlight,
  errors: 0,
  weightVersion,
  figures: null,
});
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

describe('changes of weights', () => {
  it('are told once, when the first server has them', () => {
    const changes = versionChanges(history([point(100, 0), point(300, 0, 'b')], [point(100, 0), point(200, 0, 'b')]));
    expect(changes.map(({ version }) => version)).toEqual(['b']);
    expect(versionChanges(history([point(100, 0)]))).toEqual([]);
  });
});
