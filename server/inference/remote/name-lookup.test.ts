import { describe, expect, it } from 'vitest';
import { NameLookup } from './name-lookup';

/** A system whose names are answered by hand. */
function byHand() {
  const asked: string[] = [];
  const answers = new Map<string, (error: Error | null) => void>();
  const names = new NameLookup((hostname, _options, answer) => {
    asked.push(hostname);
    answers.set(hostname, (error) => answer(error, error ? [] : [{ address: '10.0.0.1', family: 4 }]));
  });
  const told: string[] = [];
  const ask = (...hostnames: string[]) => {
    for (const hostname of hostnames)
      names.lookup(hostname, { all: true }, (error) => told.push(`${hostname} ${error ? 'fails' : 'is there'}`));
  };
  const end = (hostname: string, error: Error | null = null) => answers.get(hostname)?.(error);
  return { asked, told, ask, end };
}

describe('names of servers', () => {
  it('are asked for two at a time, each once for all who want it', () => {
    const { asked, told, ask, end } = byHand();
    ask('a', 'b', 'c', 'a', 'c');
    expect(asked).toEqual(['a', 'b']);
    end('a');
    expect(told).toEqual(['a is there', 'a is there']);
    expect(asked).toEqual(['a', 'b', 'c']);
    end('c');
    end('b');
    expect(told).toEqual(['a is there', 'a is there', 'c is there', 'c is there', 'b is there']);
    ask('a');
    expect(asked).toEqual(['a', 'b', 'c', 'a']);
  });

  it('that did not resolve leave room for those that do, and wait behind them', () => {
    const { asked, ask, end } = byHand();
    const none = new Error('ENOTFOUND');
    ask('dead 1', 'dead 2');
    end('dead 1', none);
    end('dead 2', none);
    ask('dead 1', 'dead 2', 'alive');
    expect(asked.slice(2)).toEqual(['dead 1', 'alive']);
    end('alive');
    // The one room that is left is not for them.
    expect(asked.slice(4)).toEqual([]);
    ask('alive');
    expect(asked.slice(4)).toEqual(['alive']);
    end('dead 1', none);
    expect(asked.slice(5)).toEqual(['dead 2']);
    // One has come back.
    end('dead 2');
    end('alive');
    ask('dead 1', 'dead 2');
    expect(asked.slice(6)).toEqual(['dead 1', 'dead 2']);
  });
});
