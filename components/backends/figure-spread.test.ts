import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { spreadOf } from './figure-spread';

describe('the spread of many servers', () => {
  it('goes from the lowest to the highest, with the server of each, round the median', () => {
    expect(spreadOf([{ atMs: 1, s0: 4, s1: 9, s2: 1, s3: 9 }], 4)).toEqual([
      { atMs: 1, s0: 4, s1: 9, s2: 1, s3: 9, range: [1, 9], median: 6.5, lowest: 2, highest: 1 },
    ]);
    expect(spreadOf([{ atMs: 1, s0: 4, s1: 9, s2: 1 }], 3)[0]).toMatchObject({ median: 4 });
  });

  it('leaves out who did not tell, and is nothing where nobody did', () => {
    expect(spreadOf([{ atMs: 1, s0: null, s2: 3 }], 3)[0]).toMatchObject({ range: [3, 3], median: 3, lowest: 2 });
    const nothing = { range: null, median: null, lowest: null, highest: null };
    expect(spreadOf([{ atMs: 2 }], 3)).toEqual([{ atMs: 2, ...nothing }]);
  });

  it('holds the values it is made of', () => {
    fc.assert(
      fc.property(fc.array(fc.option(fc.nat(50)), { maxLength: 9 }), (values) => {
        const row = { atMs: 0, ...Object.fromEntries(values.map((value, server) => [`s${server}`, value])) };
        const [spread] = spreadOf([row], values.length);
        const told = values.filter((value) => value !== null);
        if (told.length === 0) {
          expect(spread?.range).toBeNull();
          return;
        }
        expect(spread?.range).toEqual([Math.min(...told), Math.max(...told)]);
        expect(values[spread?.lowest ?? -1]).toBe(Math.min(...told));
        expect(values[spread?.highest ?? -1]).toBe(Math.max(...told));
        const below = told.filter((value) => value <= (spread?.median ?? -1)).length;
        const above = told.filter((value) => value >= (spread?.median ?? 99)).length;
        expect(Math.min(below, above) * 2).toBeGreaterThanOrEqual(told.length);
      }),
    );
  });
});
