import { describe, expect, it } from 'vitest';
import type { WeightUpdateView } from '../../server/core/views';
import { withOlder } from './with-older';

const update = (number: number, status: WeightUpdateView['status'] = 'succeeded'): WeightUpdateView => ({
  id: `wup_${number}`,
  version: `step-${number}`,
  number,
  source: { kind: 'external' },
  inFlight: 'drain',
  status,
  error: null,
  requestedBy: null,
  startedAtMs: number,
  finishedAtMs: null,
});

describe('weight updates of the page', () => {
  it('stand there once, newest first, as they are now', () => {
    const asked = [update(4, 'running'), update(3), update(2), update(1)];
    const joined = withOlder([update(5, 'running'), update(4), update(3)], asked);
    expect(joined.map(({ number }) => number)).toEqual([5, 4, 3, 2, 1]);
    expect(joined[1]?.status).toBe('succeeded');
  });

  it('lose none that has left the newest meanwhile', () => {
    const joined = withOlder([update(5), update(4)], [update(3), update(2)]);
    expect(joined.map(({ number }) => number)).toEqual([5, 4, 3, 2]);
  });
});
