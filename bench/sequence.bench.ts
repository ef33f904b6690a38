/** Building token sequences from the chunks of events, against plain copies of the same columns. */
import { seededRandom } from '../server/core/ambient';
import { SequenceBuilder } from '../server/core/tokens/builder';
import type { TokenChunk } from '../server/core/tokens/chunk';
import { compareSpeed, printReport, progress } from './figure';

const CHUNK_TOKENS = 100;
const CHUNKS = 40;
const SEQUENCES = 500;
const REPEATS = 5;
const TOKENS = CHUNK_TOKENS * CHUNKS * SEQUENCES * REPEATS;

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
let sink = 0;

function build(chunks: readonly TokenChunk[]) {
  const builder = new SequenceBuilder();
  for (const chunk of chunks) builder.append(chunk);
  return builder.finish();
}

progress('sequence: building');
const figure = compareSpeed({
  items: TOKENS,
  turns: 9,
  unit: 'million tokens/s',
  least: 0.3,
  measured: () => {
    for (let repeat = 0; repeat < REPEATS; repeat++)
      for (const chunks of trajectories) sink += build(chunks).byteEnds.length;
  },
  baseline: () => {
    for (let repeat = 0; repeat < REPEATS; repeat++)
      for (const { ids, logprobs, mask, stepIndex, segment, bytes, byteEnds } of whole) {
        const copies = [ids, logprobs, mask, stepIndex, segment, bytes, byteEnds].map((column) => column.slice());
        sink += copies.length;
      }
  },
});
if (sink === 0) throw new Error('Nothing was built.');
printReport({ figures: { 'sequence: building from chunks of 100 tokens': figure } });
