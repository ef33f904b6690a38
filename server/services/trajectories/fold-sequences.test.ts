/** What the page shows of a trajectory that still runs is what will be stored of it. */
import { expect, it } from 'vitest';
import type { SessionEvent } from '../../core/events';
import type { TokenChunk, WeightSpan } from '../../core/tokens/chunk';
import type { LogprobKind } from '../../core/vocabulary';
import { foldSequences } from './fold-sequences';

function chunk(n: number, mask: 0 | 1): TokenChunk {
  return {
    ids: Int32Array.from({ length: n }, (_, k) => k),
    logprobs: new Float32Array(n).fill(mask ? -1 : Number.NaN),
    mask: new Uint8Array(n).fill(mask),
    stepIndex: new Int32Array(n),
    segment: new Uint8Array(n),
    bytes: new Uint8Array(n),
    byteEnds: Uint32Array.from({ length: n }, (_, k) => k + 1),
  };
}

const event = (type: string, data: object, tokens?: TokenChunk, weights?: WeightSpan[]) =>
  ({ type, data, tokens, weights }) as unknown as SessionEvent;
const prompt = (sequenceIndex: number) => event('prompt.rendered', { sequenceIndex }, chunk(4, 0));
const turn = (logprobKind: LogprobKind, n: number, weights: WeightSpan[]) =>
  event('generation.completed', { logprobKind }, chunk(n, 1), weights);
const observation = event('step.completed', {}, chunk(2, 0));

it('says of each token which weights made it, at its place in the sequence', () => {
  const [first, second] = foldSequences([
    prompt(0),
    turn('raw', 3, [{ version: 'v1', start: 0, end: 3 }]),
    observation,
    turn('raw', 5, [
      { version: 'v1', start: 0, end: 1 },
      { version: 'v2', start: 1, end: 5 },
    ]),
    prompt(1),
    turn('raw', 2, [{ version: 'v2→v3', start: 0, end: 2 }]),
  ]);
  expect(first?.sequence.weightVersions).toEqual([
    { version: 'v1', start: 4, end: 7 },
    { version: 'v1', start: 9, end: 10 },
    { version: 'v2', start: 10, end: 14 },
  ]);
  expect(second?.sequence).toMatchObject({ index: 1, weightVersions: [{ version: 'v2→v3', start: 4, end: 6 }] });
});

it('has log-probabilities of one kind, or of one that nobody may count on', () => {
  const kinds = (...turns: LogprobKind[]) =>
    foldSequences([prompt(0), ...turns.map((kind) => turn(kind, 1, []))]).map(({ logprobKind }) => logprobKind);
  expect(kinds('sampled', 'sampled')).toEqual(['sampled']);
  expect(kinds('raw', 'sampled')).toEqual(['unknown']);
  expect(kinds('constrained', 'raw')).toEqual(['unknown']);
  expect(kinds()).toEqual(['unknown']);
});
