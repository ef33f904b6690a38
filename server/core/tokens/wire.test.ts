import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Invalid } from '../errors';
import { decodeTokens, encodeTokens } from './wire';

const columns = (n: number, seed: number) => ({
  ids: Int32Array.from({ length: n }, (_, k) => seed * 31 + k),
  logprobs: Float32Array.from({ length: n }, (_, k) => -k / 7),
  mask: Uint8Array.from({ length: n }, (_, k) => k % 2),
  stepIndex: Int32Array.from({ length: n }, (_, k) => k - 1),
  segment: Uint8Array.from({ length: n }, (_, k) => k % 8),
  bytes: Uint8Array.from({ length: n * 3 }, (_, k) => k),
  byteEnds: Uint32Array.from({ length: n }, (_, k) => 3 * (k + 1)),
});
const floats = (n: number) => Float32Array.from({ length: n }, (_, k) => (k % 3 === 0 ? Number.NaN : -k));

const anyTokens = fc
  .record({
    n: fc.nat({ max: 9 }),
    seed: fc.nat({ max: 99 }),
    k: fc.integer({ min: 1, max: 5 }),
    has: fc.tuple(fc.boolean(), fc.boolean(), fc.boolean(), fc.boolean()),
  })
  .map(({ n, seed, k, has: [policy, ref, entropy, alternatives] }) => ({
    ...columns(n, seed),
    policyLogprobs: policy ? floats(n) : null,
    refLogprobs: ref ? floats(n) : null,
    entropy: entropy ? floats(n) : null,
    alternatives: alternatives
      ? { k, ids: Int32Array.from({ length: n * k }, (_, i) => i - 1), logprobs: floats(n * k) }
      : null,
  }));

describe('token data on the wire', () => {
  it('comes back as it was, whatever is in it and wherever it lies in memory', () => {
    fc.assert(
      fc.property(anyTokens, fc.nat({ max: 3 }), (tokens, offset) => {
        const wire = encodeTokens(tokens);
        const shifted = new Uint8Array(wire.length + offset);
        shifted.set(wire, offset);
        expect(decodeTokens(shifted.subarray(offset))).toEqual(tokens);
      }),
    );
  });

  it('is refused when a byte is missing or too many, or a flag is of tomorrow', () => {
    fc.assert(
      fc.property(anyTokens, (tokens) => {
        const wire = encodeTokens(tokens);
        const longer = new Uint8Array(wire.length + 1);
        longer.set(wire);
        for (const damaged of [wire.subarray(0, -1), longer, wire.subarray(0, 15)])
          expect(() => decodeTokens(damaged)).toThrow(Invalid);
        const odd = wire.slice();
        odd[12] = 16;
        expect(() => decodeTokens(odd)).toThrow(Invalid);
      }),
    );
  });

  it('reads what was stored before there were entropy and alternatives', () => {
    // n = 1, one byte of text, no flags: header, id, logprob, step, byte end, mask, segment, byte.
    const old = Uint8Array.from([
      ...[0x54, 0x4f, 0x4b, 0x31, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0],
      ...[7, 0, 0, 0, 0, 0, 0x80, 0xbf, 2, 0, 0, 0, 1, 0, 0, 0, 1, 3, 65],
    ]);
    const read = decodeTokens(old);
    expect(read).toMatchObject({ entropy: null, alternatives: null, policyLogprobs: null, refLogprobs: null });
    expect([read.ids[0], read.logprobs[0], read.stepIndex[0], read.mask[0], read.segment[0], read.bytes[0]]).toEqual([
      7, -1, 2, 1, 3, 65,
    ]);
    expect(encodeTokens(read)).toEqual(old);
  });
});
