import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { StopStrings } from './stop-strings';

const bytes = (text: string) => new TextEncoder().encode(text);

describe('stop strings', () => {
  it('are found inside a token, over tokens and in the middle of characters', () => {
    const stops = new StopStrings(['Observation:', '🌊']);
    expect(['Obser', 'vation', ' Obs', 'ervat'].map((text) => stops.push(bytes(text)))).toEqual([
      null,
      null,
      null,
      null,
    ]);
    expect(stops.push(bytes('ion: and'))).toBe('Observation:');
    const wave = bytes('🌊');
    const split = new StopStrings(['🌊']);
    expect(split.push(wave.subarray(0, 2))).toBeNull();
    expect(split.push(wave.subarray(2))).toBe('🌊');
  });

  it('name the one that ends first, of those that end together the longest, and never an empty one', () => {
    expect(new StopStrings(['cd', 'b']).push(bytes('abcd'))).toBe('b');
    expect(new StopStrings(['b', 'ab']).push(bytes('ab'))).toBe('ab');
    expect(new StopStrings(['']).push(bytes('ab'))).toBeNull();
  });

  it('are found wherever a text is cut into tokens', () => {
    const letters = fc.string({ unit: fc.constantFrom('a', 'b', 'é'), maxLength: 30 });
    fc.assert(
      fc.property(
        letters,
        fc.string({ unit: fc.constantFrom('a', 'b', 'é'), minLength: 1, maxLength: 4 }),
        fc.array(fc.nat(40)),
        (text, stop, cuts) => {
          const all = bytes(text);
          const ends = [...new Set([...cuts.map((cut) => Math.min(cut, all.length)), all.length])].sort(
            (a, b) => a - b,
          );
          const stops = new StopStrings([stop]);
          let seen = 0;
          let found = false;
          for (const end of ends) {
            found = stops.push(all.subarray(seen, end)) !== null;
            seen = end;
            expect(found).toBe(Buffer.from(all.subarray(0, end)).includes(Buffer.from(bytes(stop))));
            if (found) break;
          }
        },
      ),
    );
  });
});
