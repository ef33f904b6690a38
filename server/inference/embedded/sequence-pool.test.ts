import { describe, expect, it } from 'vitest';
import { commonPrefix, SequencePool } from './sequence-pool';

const ids = (...numbers: number[]) => Int32Array.from(numbers);

describe('the choice of a sequence', () => {
  it('comes back to the one a trajectory used last', () => {
    const pool = new SequencePool(3);
    const first = pool.take('a', ids(1, 2));
    first?.held.push(1, 2, 3);
    if (first) pool.release(first);
    expect(pool.take('b', ids(9))?.id).not.toBe(first?.id);
    expect(pool.take('a', ids(1, 2, 3, 4))?.id).toBe(first?.id);
  });

  it('shares a long common prompt, but does not take a long trajectory away for a short one', () => {
    const pool = new SequencePool(2);
    const held = pool.take('a', ids(1));
    held?.held.push(1, 2, 3, 4, 5);
    if (held) pool.release(held);
    const sharing = pool.take('b', ids(1, 2, 3, 4, 9));
    expect(sharing?.id).toBe(held?.id);
    if (sharing) pool.release(sharing);
    expect(pool.take('c', ids(1, 9))?.id).not.toBe(held?.id);
  });

  it('gives none when all are busy', () => {
    const pool = new SequencePool(1);
    const taken = pool.take('a', ids(1));
    expect(pool.take('b', ids(1))).toBeNull();
    if (taken) pool.release(taken);
    expect(pool.take('b', ids(1))).toBe(taken);
  });

  it('counts the leading tokens two lists share', () => {
    expect([commonPrefix([], [1]), commonPrefix([1, 2], [1, 3]), commonPrefix([1, 2], [1, 2, 3])]).toEqual([0, 1, 2]);
  });
});
