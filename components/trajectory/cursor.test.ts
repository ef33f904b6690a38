import { describe, expect, it } from 'vitest';
import { type Move, moved } from './cursor';
import { TokenLayout } from './layout';
import { RowReader } from './row-cells';
import { tokensOf } from './tokens-of';

const tokens = tokensOf([
  { bytes: 'system text\n', step: -1 },
  { bytes: 'one', step: 0 },
  { bytes: ' two', step: 0 },
  { bytes: 'x'.repeat(50), step: 0 },
  { bytes: 'three', step: 1 },
]);
tokens.mask.set([0, 1, 1, 0, 1]);
const layout = new TokenLayout(tokens, { columns: 20, rowHeight: 20, blockGap: 6, stepGap: 20 });
layout.advance(100);
const go = (from: number, move: Move) => moved(layout, new RowReader(), from, move);

describe('the token cursor', () => {
  it('goes by token, step and sampled token, and stops at the ends', () => {
    expect([go(0, 'next'), go(4, 'next'), go(0, 'previous')]).toEqual([1, 4, 0]);
    expect([go(0, 'nextStep'), go(1, 'nextStep'), go(4, 'previousStep'), go(4, 'nextStep')]).toEqual([1, 4, 1, 4]);
    expect([go(2, 'nextSampled'), go(4, 'previousSampled'), go(4, 'nextSampled')]).toEqual([4, 2, 4]);
  });
  it('goes up and down by column, past a token that fills several rows', () => {
    expect(go(0, 'down')).toBe(2);
    expect(go(3, 'down')).toBe(4);
    expect(go(4, 'up')).toBe(3);
    expect(go(4, 'down')).toBe(4);
  });
});
