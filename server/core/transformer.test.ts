import { describe, expect, it } from 'vitest';
import { transformer } from './transformer';

/** As it arrives on the other end. */
const sent = (value: unknown): unknown =>
  transformer.deserialize(JSON.parse(JSON.stringify(transformer.serialize(value))));

describe('values over tRPC', () => {
  it('arrive with whatever keys a model or a dataset gave them, and change nothing else', () => {
    for (const key of ['__proto__', 'constructor', 'prototype']) {
      const text = `{"items":[{"answer":{"${key}":{"x":1}},"count":2}]}`;
      expect(JSON.stringify(sent(JSON.parse(text)))).toBe(text);
    }
    expect(Object.hasOwn(Object.prototype, 'x')).toBe(false);
  });

  it('keep what JSON alone would lose', () => {
    const value = { at: new Date(5), none: undefined, nan: Number.NaN, list: [1, null] };
    expect(sent(value)).toEqual(value);
    expect(sent(undefined)).toBeUndefined();
  });

  it('are no fault of ours when a caller sends none', () => {
    expect(transformer.deserialize(null)).toBeUndefined();
  });
});
