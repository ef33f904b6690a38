/** Building token sequences from the chunks of events, against plain copies of the same columns. */
import { seededRandom } from '../server/core/ambient';
import { SequenceBuilder } from '../server/core/tokens/builder';
import type { TokenChunk } from '../server/core/tokens/chunk';
import { compareSpeed, type Figure, printReport, progress } from './figure';

const CHUNK_TOKENS = 100;
const CHUNKS = 40;
const SEQUENCES = 500;
const TOKENS = CHUNK_TOKENS * CHUNKS * SEQUENCES;

function makeChunk(random: () => number, step: number): TokenChunk {
  const n = CHUNK_TOKENS;
  const byteEnds = new Uint32Array(n);
  let at = 0;
  for (let k = 0; k < n; k++) {
    at += 1 + Math.floor(random() * 7);
    byteEnds[k] = at;
  }
  return {
    ids: Int32Array.from({ length: n }, () => Math.floor(random() * 150_000)),
    logprobs: Float32Array.from({ length: n }, () => -random()),
    mask: new Uint8Array(n).fill(step % 2),
    stepIndex: new Int32Array(n).fill(step >> 1),
    segment: new Uint8Array(n).fill(step % 2),
    bytes: new Uint8Array(at).fill(97),
    byteEnds,
  };
}

const random = seededRandom(3);
const trajectories = Array.from({ length: SEQUENCES }, () =>
  Array.from({ length: CHUNKS }, (_, step) => makeChunk(random, step)),
);
/** The same columns in one piece each: what a copy starts from. */
const whole = trajectories.map((chunks) => build(chunks));
let kept: unknown[] = [];

function build(chunks: readonly TokenChunk[]) {
  const builder = new SequenceBuilder();
  for (const chunk of chunks) builder.append(chunk);
  return builder.finish();
}

/**
 * @param repeats how often all trajectories are gone through in a turn
 * @param keep whether what was made is held until the turn is over, as a trajectory's sequence is held until it is
 *   stored: then both ways pay for fresh memory, which the system hands out slowly. Else memory is used again, and the
 *   copy is about as fast as memory is.
 */
function compare(repeats: number, keep: boolean): Figure {
  const take = keep ? (made: unknown) => kept.push(made) : (made: unknown) => (kept = [made]);
  return compareSpeed({
    items: TOKENS * repeats,
    turns: 11,
    unit: 'million tokens/s',
    least: 0.3,
    before: () => {
      kept = [];
    },
    measured: () => {
      for (let repeat = 0; repeat < repeats; repeat++) for (const chunks of trajectories) take(build(chunks));
    },
    baseline: () => {
      for (let repeat = 0; repeat < repeats; repeat++)
        for (const { ids, logprobs, mask, stepIndex, segment, bytes, byteEnds } of whole)
          take([ids, logprobs, mask, stepIndex, segment, bytes, byteEnds].map((column) => column.slice()));
    },
  });
}

progress('sequence: building, memory used again');
const again = compare(5, false);
progress('sequence: building, every sequence kept');
const fresh = { ...compare(1, true), target: null, met: null };
printReport({
  figures: {
    'sequence: building from chunks of 100 tokens': again,
    'sequence: building from chunks of 100 tokens, every sequence kept': fresh,
  },
});
