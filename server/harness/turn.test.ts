/** What a backend answers is checked before it is durable: a log that cannot be folded again could never go on. */
import { describe, expect, it } from 'vitest';
import { formatNamed } from '../core/actions/formats';
import { Invalid } from '../core/errors';
import { SEGMENT_KINDS } from '../core/vocabulary';
import type { GenerationResult } from '../inference/backend';
import { readSampledTurn } from './turn';

const encoder = new TextEncoder();
const REACT = { format: formatNamed('react'), startsInThought: false };

/** A generation of these pieces, a token each. */
function generated(pieces: readonly (string | Uint8Array)[], more: Partial<GenerationResult> = {}): GenerationResult {
  const parts = pieces.map((piece) => (typeof piece === 'string' ? encoder.encode(piece) : piece));
  let at = 0;
  return {
    ids: Int32Array.from(parts, (_, k) => 100 + k),
    logprobs: new Float32Array(parts.length).fill(-0.5),
    logprobKind: 'raw',
    bytes: Uint8Array.from(parts.flatMap((part) => [...part])),
    byteEnds: Uint32Array.from(parts, (part) => {
      at += part.length;
      return at;
    }),
    finishReason: 'length',
    endTokenSampled: more.finishReason === 'eos',
    stopString: null,
    weightVersions: [{ version: 'w1', start: 0, end: parts.length }],
    ...more,
  };
}

const read = (result: GenerationResult) => readSampledTurn(result, REACT, 2, 40, 'trajectory trj_7', true);

describe('an answer of a backend', () => {
  it('whose columns do not fit each other is refused with the trajectory, and nothing of it is taken', () => {
    const wrong: [Partial<GenerationResult>, RegExp][] = [
      [{ logprobs: Float32Array.of(-1) }, /2 tokens but 1 log-probabilities.*trj_7/],
      [{ logprobs: Float32Array.of(-1, -1, -1) }, /2 tokens but 3 log-probabilities/],
      [{ byteEnds: Uint32Array.of(1) }, /1 texts for trajectory trj_7/],
      [{ byteEnds: Uint32Array.of(2, 1) }, /overlap for trajectory trj_7/],
      [{ byteEnds: Uint32Array.of(1, 3) }, /2 bytes for tokens of 3 bytes/],
      [{ weightVersions: [{ version: 'w', start: 0, end: 3 }] }, /weights w made tokens 0 to 3 of 2/],
      [{ weightVersions: [{ version: 'w', start: 1, end: 0 }] }, /weights w/],
      [
        {
          weightVersions: [
            { version: 'v', start: 0, end: 2 },
            { version: 'w', start: 1, end: 2 },
          ],
        },
        /weights w/,
      ],
    ];
    for (const [more, message] of wrong) {
      expect(() => read(generated(['a', 'b'], more))).toThrow(Invalid);
      expect(() => read(generated(['a', 'b'], more))).toThrow(message);
    }
    expect(read(generated(['a', 'b'])).chunk.ids).toHaveLength(2);
  });

  it('with a number that is no log-probability is refused with position and value', () => {
    for (const value of [Number.NaN, -9999, -3.4e38, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, 0.5]) {
      const logprobs = Float32Array.of(-1, value);
      expect(() => read(generated(['a', 'b'], { logprobs }))).toThrow(
        expect.objectContaining({
          message: expect.stringContaining(
            `The log-probability ${Math.fround(value)} at token 41 of trajectory trj_7 is none`,
          ),
          details: { position: 41, value: Math.fround(value) },
        }),
      );
    }
    const logprobs = Float32Array.of(-1, Number.NaN);
    // A backend that cannot score: the token stays without a number, and its sequence is approximate.
    expect(readSampledTurn(generated(['a', 'b'], { logprobs }), REACT, 0, 0, 't', false).chunk.logprobs[1]).toBeNaN();
  });
});

describe('the text of a turn', () => {
  it('is decoded over its tokens: a character split over two of them is whole, and no other appears', () => {
    const emoji = encoder.encode('🌊');
    const { text, chunk, parsed } = read(generated(['Thought: ', emoji.subarray(0, 2), emoji.subarray(2), '!']));
    expect(text).toBe('Thought: 🌊!');
    expect(parsed.thought).toBe('🌊!');
    expect(chunk.ids).toHaveLength(4);
    expect(chunk.byteEnds).toEqual(Uint32Array.of(9, 11, 13, 14));
  });

  it('leaves a character out that the token limit cut off, and keeps its bytes', () => {
    const emoji = encoder.encode('🌊');
    for (const most of [1, 2, 3]) {
      const { text, chunk } = read(generated(['Thought: é', emoji.subarray(0, most)]));
      expect(text).toBe('Thought: é');
      expect(chunk.bytes).toHaveLength(11 + most);
    }
    expect(read(generated(['\ufffd'])).text).toBe('\ufffd');
  });

  it('ends before a stop string whose last token says more; that token and all its bytes stay', () => {
    const { text, chunk } = read(
      generated(['Action: {}', '\nObserv', 'ation: more'], { finishReason: 'stop', stopString: 'Observation:' }),
    );
    expect(text).toBe('Action: {}\n');
    expect(new TextDecoder().decode(chunk.bytes)).toBe('Action: {}\nObservation: more');
    expect([...chunk.mask]).toEqual([1, 1, 1]);
    expect([...chunk.segment].map((code) => SEGMENT_KINDS[code])).toEqual(['action', 'action', 'stop']);
  });

  it('ends before the first stop string, also where one token holds it twice', () => {
    const { text, chunk } = read(generated(['Thought: x', '\n\n'], { finishReason: 'stop', stopString: '\n' }));
    expect(text).toBe('Thought: x');
    expect([...chunk.segment].map((code) => SEGMENT_KINDS[code])).toEqual(['thought', 'stop']);
  });
});
