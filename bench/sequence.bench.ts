/** Building token sequences from the chunks of events, against plain copies of the same columns. */
import { seededRandom } from '../server/core/ambient';
import { SequenceBuilder } from '../server/core/tokens/builder';
import type { TokenChunk } from '../server/core/tokens/chunk';
import { compareSpeed, printReport, progress } from './figure';

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
/** Both keep what they made until the turn is over, as a trajectory's sequence is kept until it is stored. */
let kept: unknown[] = [];

function build(chunks: readonly TokenChunk[]) {
  const builder = new SequenceBuilder();
  for (const chunk of chunks) builder.append(chunk);
  return builder.finish();
}

progress('sequence: building');
const figure = compareSpeed({
  items: TOKENS,
  turns: 15,
  unit: 'million tokens/s',
  least: 0.3,
  before: () => {
    kept = [];
  },
  measured: () => {
    for (const chunks of trajectories) kept.push(build(chunks));
  },
  baseline: () => {
    for (const { ids, logprobs, mask, stepIndex, segment, bytes, byteEnds } of whole)
      kept.push([ids, logprobs, mask, stepIndex, segment, bytes, byteEnds].map((column) => column.slice()));
  },
});
printReport({ figures: { 'sequence: building from chunks of 100 tokens': figure } });
