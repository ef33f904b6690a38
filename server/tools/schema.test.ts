import { describe, expect, it } from 'vitest';
import { Invalid } from '../core/errors';
import { argumentCheck } from './schema';

const check = argumentCheck({
  type: 'object',
  properties: {
    n: { type: 'integer', minimum: 0 },
    mode: { enum: ['a', 'b'] },
    points: {
      type: 'array',
      items: { type: 'object', properties: { 'x/y': { type: ['number', 'null'] } }, required: ['x/y'] },
    },
    name: { type: 'string', maxLength: 3 },
  },
  required: ['n'],
});

describe('the check of arguments', () => {
  it('accepts what fits', () => {
    expect(check({ n: 5, mode: 'a', points: [{ 'x/y': null }] })).toBeNull();
  });

  it.each([
    [{ n: '5' }, 'argument n: expected integer, got string "5"'],
    [{ n: 5.5 }, 'argument n: expected integer, got number 5.5'],
    [{ n: null }, 'argument n: expected integer, got null'],
    [{ n: true }, 'argument n: expected integer, got boolean true'],
    [{ n: [5] }, 'argument n: expected integer, got array [5]'],
    [{}, 'argument n: expected integer, but it is missing'],
    [{ n: -1 }, 'argument n: must be >= 0, got number -1'],
    [{ n: 5, m: 1 }, 'argument m: the tool has no such argument; it takes n, mode, points, name'],
    [{ n: 5, mode: 'c' }, 'argument mode: expected one of ["a","b"], got string "c"'],
    [
      { n: 5, points: [{ 'x/y': 1 }, { 'x/y': 'far' }] },
      'argument points[1].x/y: expected number or null, got string "far"',
    ],
    [{ n: 5, points: [{}] }, 'argument points[0].x/y: expected number or null, but it is missing'],
    [
      { n: 5, name: 'x'.repeat(500) },
      `argument name: must NOT have more than 3 characters, got string "${'x'.repeat(59)}… (502 characters)`,
    ],
  ])('names the path and what is right: %j', (args, sentence) => {
    expect(check(args)).toBe(sentence);
  });

  it('leaves the arguments as they were', () => {
    const args = { n: '5', extra: 1 };
    check(args);
    expect(args).toEqual({ n: '5', extra: 1 });
  });

  it('is not fooled by names that every object has', () => {
    expect(check(JSON.parse('{"n": 5, "__proto__": 1}'))).toMatch(/has no such argument/);
    expect(check(JSON.parse('{"n": 5, "constructor": 1}'))).toMatch(/has no such argument/);
  });

  it('cannot be made from a schema that is none', () => {
    expect(() => argumentCheck({ type: 'interger' })).toThrow(Invalid);
  });
});
