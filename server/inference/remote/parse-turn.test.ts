import { describe, expect, it } from 'vitest';
import { parseTurn } from './parse-turn';

describe('turns of parsing', () => {
  it('lets one go at once and each other in a later turn of the event loop, in order', async () => {
    const log: string[] = [];
    const parse = async (name: string) => {
      await parseTurn();
      log.push(name);
    };
    let over = false;
    const ticking = (async () => {
      while (!over) {
        log.push('tick');
        await new Promise((next) => setImmediate(next));
      }
    })();
    await Promise.all(['a', 'b', 'c', 'd'].map(parse));
    over = true;
    await ticking;
    const order = log.join(' ');
    expect(order).toMatch(/a.*b.*c.*d/);
    for (const pair of ['a b', 'b c', 'c d']) expect(order).not.toContain(pair);
    // The turn is free again afterwards.
    await new Promise((next) => setImmediate(next));
    expect(parseTurn()).toBeNull();
  });
});
