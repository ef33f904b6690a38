import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { SequenceBuilder } from './builder';
import type { TokenChunk } from './chunk';

function chunk(ids: number[], mask: number, step: number, text = ids.map(() => 'ab').join('')): TokenChunk {
  const bytes = new TextEncoder().encode(text);
  const each = ids.length === 0 ? 0 : bytes.length / ids.length;
  return {
    ids: Int32Array.from(ids),
    logprobs: Float32Array.from(ids, (id) => (mask ? -id : Number.NaN)),
    mask: new Uint8Array(ids.length).fill(mask),
    stepIndex: new Int32Array(ids.length).fill(step),
    segment: new Uint8Array(ids.length).fill(2),
    bytes,
    byteEnds: Uint32Array.from(ids, (_, i) => (i + 1) * each),
  };
}

describe('a sequence builder', () => {
  it('tells sampled tokens from all tokens: 1111 000 11111 is 9 of 12', () => {
    const builder = new SequenceBuilder();
    builder.append(chunk([1, 2, 3, 4], 1, 0));
    builder.append(chunk([5, 6, 7], 0, 0));
    builder.append(chunk([8, 9, 10, 11, 12], 1, 1));
    expect(builder.lengths).toEqual({ total: 12, generated: 9 });
    expect(builder.length).toBe(12);
    const sequence = builder.finish();
    expect([...sequence.mask].join('')).toBe('111100011111');
    expect([...sequence.byteEnds]).toEqual([2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24]);
    // Only sampled tokens have a score.
    sequence.logprobs.forEach((value, k) => {
      expect(Number.isNaN(value)).toBe(sequence.mask[k] === 0);
    });
  });

  it('takes nothing of a chunk whose columns differ in length, and the retry starts afresh', () => {
    const builder = new SequenceBuilder(2);
    builder.append(chunk([1, 2], 0, -1));
    const aborted = { ...chunk([7, 8, 9], 1, 0), logprobs: Float32Array.of(-7) };
    expect(() => builder.append(aborted)).toThrow(/3 tokens has columns of other lengths: logprobs 1/);
    expect(() => builder.append({ ...chunk([7], 1, 0), bytes: new Uint8Array(9) })).toThrow(/2 of 9 bytes/);
    expect(builder.lengths).toEqual({ total: 2, generated: 0 });
    builder.append(chunk([7, 8], 1, 0));
    const { ids, mask, logprobs, index } = builder.finish();
    expect([...ids]).toEqual([1, 2, 7, 8]);
    expect([...mask]).toEqual([0, 0, 1, 1]);
    expect(logprobs).toHaveLength(4);
    expect(index).toBe(2);
  });

  it('hands out the ids so far and the bytes of the last token', () => {
    const builder = new SequenceBuilder();
    expect(builder.lastTokenBytes()).toHaveLength(0);
    builder.append(chunk([1, 2], 0, -1, 'abcd'));
    const prompt = builder.ids();
    builder.append(chunk([3, 4], 1, 0, 'efgh'));
    expect([...prompt]).toEqual([1, 2]);
    expect([...builder.ids()]).toEqual([1, 2, 3, 4]);
    expect(new TextDecoder().decode(builder.lastTokenBytes())).toBe('gh');
    builder.append(chunk([5], 1, 0, 'xyz'));
    expect(new TextDecoder().decode(builder.lastTokenBytes())).toBe('xyz');
  });

  it('joins weight spans of one version and refuses spans out of order or range', () => {
    const builder = new SequenceBuilder();
    builder.append(chunk([1, 2, 3, 4, 5, 6], 1, 0));
    builder.appendWeights({ version: 'w1', start: 0, end: 2 });
    builder.appendWeights({ version: 'w1', start: 2, end: 3 });
    builder.appendWeights({ version: 'w2', start: 4, end: 6 });
    expect(builder.finish().weightVersions).toEqual([
      { version: 'w1', start: 0, end: 3 },
      { version: 'w2', start: 4, end: 6 },
    ]);
    expect(() => builder.appendWeights({ version: 'w2', start: 5, end: 6 })).toThrow(/out of order/);
    expect(() => builder.appendWeights({ version: 'w2', start: 6, end: 7 })).toThrow(/out of range/);
  });

  it('gives the same columns however the tokens were cut into chunks', () => {
    fc.assert(
      fc.property(fc.array(fc.array(fc.nat({ max: 9999 }), { maxLength: 6 })), (cuts) => {
        const builder = new SequenceBuilder();
        for (const ids of cuts) builder.append(chunk(ids, ids.length % 2, 0));
        const sequence = builder.finish();
        const flat = cuts.flat();
        expect([...sequence.ids]).toEqual(flat);
        expect([...sequence.byteEnds]).toEqual(flat.map((_, i) => 2 * (i + 1)));
        expect([...sequence.mask]).toEqual(cuts.flatMap((ids) => ids.map(() => ids.length % 2)));
        expect(sequence.bytes).toHaveLength(2 * flat.length);
      }),
    );
  });
});
