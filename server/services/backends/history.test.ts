import { describe, expect, it } from 'vitest';
import { CountedBackend } from '../testing/counted-backend';
import { thinned } from './backend-history';
import { HistoryRecorder } from './history-recorder';

describe('the history of a backend', () => {
  it('has a point of every replica a step, forgets what is old, and keeps a gap a gap', () => {
    let now = 1_000;
    const backend = new CountedBackend('pair', {}, ['http://a', 'http://b']);
    const opened = new Map([['pair', backend]]);
    const recorder = new HistoryRecorder({
      opened: () => opened,
      now: () => now,
      stepMs: 100,
      keptMs: 300,
    });
    const record = (atMs: number) => {
      now = atMs;
      recorder.record();
    };
    record(1_000);
    backend.weights = 'w2';
    record(1_100);
    expect(recorder.history('pair')).toMatchObject({
      stepMs: 100,
      replicas: [
        {
          url: 'http://a',
          points: [
            { atMs: 1_000, weightVersion: 'w1' },
            { atMs: 1_100, weightVersion: 'w2' },
          ],
        },
        { url: 'http://b', points: [{ inFlight: 1 }, { inFlight: 1 }] },
      ],
    });
    opened.delete('pair');
    record(1_350);
    expect(recorder.history('pair').replicas[0]?.points.map(({ atMs }) => atMs)).toEqual([1_100]);
    record(1_500);
    expect(recorder.history('pair').replicas).toEqual([]);
    expect(recorder.history('unknown').replicas).toEqual([]);
  });

  it('is thinned for a chart without losing the newest point, and keeps the same points while new ones come', () => {
    const points = Array.from({ length: 12 }, (_, i) => ({
      atMs: 1_000 + 5 * i,
      state: 'healthy' as const,
      inFlight: 0,
      errors: 0,
      weightVersion: null,
      figures: null,
    }));
    const kept = (from: number, to: number) => {
      const { stepMs, replicas } = thinned({ stepMs: 5, replicas: [{ url: 'a', points: points.slice(from, to) }] }, 4);
      return [stepMs, ...(replicas[0]?.points.map(({ atMs }) => atMs) ?? [])];
    };
    expect(kept(0, 10)).toEqual([15, 1_000, 1_005, 1_020, 1_035, 1_045]);
    expect(kept(1, 11)).toEqual([15, 1_005, 1_020, 1_035, 1_050]);
    expect(kept(2, 12)).toEqual([15, 1_010, 1_020, 1_035, 1_050, 1_055]);
    expect(kept(0, 4)).toEqual([5, 1_000, 1_005, 1_010, 1_015]);
    expect(thinned({ stepMs: 5, replicas: [] })).toEqual({ stepMs: 5, replicas: [] });
  });
});
