/**
 * One worker's part of the training. Every step both workers take the same batch from the corpus, each computes the
 * gradient of its share, and after a barrier each adds the shares in the same order and makes the same update: their
 * models stay equal bit by bit, and the result depends on the seed alone.
 */
import { seededRandom } from '../../server/core/ambient';
import type { LlamaShape } from '../../server/inference/gguf/llama';
import { modelMemory } from './activations';
import { Adam } from './adam';
import type { Corpus } from './corpus';
import { Kernels } from './kernels/kernels';
import { type Batch, Model } from './model';

export interface TrainingPlan {
  shape: LlamaShape;
  seed: number;
  steps: number;
  /** Demonstrations in a step, over all shards. */
  batch: number;
  /** Highest learning rate: reached after `warmUp` steps, then falling to a twentieth on a cosine. */
  learningRate: number;
  warmUp: number;
  shards: number;
}

/** What the workers share besides the corpus. Slots and losses are double, so that one barrier a step is enough. */
export interface Exchange {
  /** [2, shards, parameters] */
  gradients: Float32Array;
  /** [2, shards]: summed −log p of the share. */
  losses: Float64Array;
  /** How many have arrived at the barrier; which barrier it is. */
  barrier: Int32Array;
}

export function makeExchange(parameters: number, shards: number): Exchange {
  return {
    gradients: new Float32Array(new SharedArrayBuffer(2 * shards * parameters * 4)),
    losses: new Float64Array(new SharedArrayBuffer(2 * shards * 8)),
    barrier: new Int32Array(new SharedArrayBuffer(8)),
  };
}

/** Runs the whole plan; blocks. Returns the trained model. `report` is called after each step with the mean loss a token. */
export function trainShard(input: {
  module: WebAssembly.Module;
  plan: TrainingPlan;
  corpus: Corpus;
  exchange: Exchange;
  shard: number;
  report: (step: number, loss: number) => void;
}): Model {
  const { plan, corpus, exchange, shard } = input;
  const limits = batchLimits(plan, corpus);
  const kernels = new Kernels(input.module, modelMemory(plan.shape, limits));
  const model = new Model(kernels, plan.shape, limits);
  model.parameters.initialise(plan.seed);
  const adam = new Adam(kernels, model.parameters);
  const { gradients } = model.parameters;
  const count = gradients.length;
  const draw = sampler(plan, corpus);
  for (let step = 0; step < plan.steps; step++) {
    const members = draw();
    const share = members.filter((_, i) => i % plan.shards === shard);
    const { loss } = model.run(makeBatch(corpus, share, 1 / sampledTokens(corpus, members)), true);
    const side = (step % 2) * plan.shards;
    exchange.gradients.set(gradients, (side + shard) * count);
    exchange.losses[side + shard] = loss;
    waitForAll(exchange.barrier, plan.shards);
    sumInto(gradients, exchange.gradients, side * count, plan.shards);
    adam.step(learningRateAt(plan, step));
    let total = 0;
    for (let i = 0; i < plan.shards; i++) total += exchange.losses[side + i] as number;
    input.report(step, total);
  }
  return model;
}

/** The learning rate of a step: linear warm-up, then a cosine down to a twentieth. */
export function learningRateAt(plan: Pick<TrainingPlan, 'learningRate' | 'warmUp' | 'steps'>, step: number): number {
  if (step < plan.warmUp) return (plan.learningRate * (step + 1)) / plan.warmUp;
  const progress = (step - plan.warmUp) / Math.max(1, plan.steps - plan.warmUp);
  return plan.learningRate * (0.05 + 0.95 * 0.5 * (1 + Math.cos(Math.PI * progress)));
}

/** Draws batches: every demonstration once, in random order, then again in another. Longest first, so that shares are of a size. */
function sampler(plan: TrainingPlan, corpus: Corpus): () => number[] {
  const random = seededRandom(plan.seed ^ 0x5bd1e995);
  const order = Array.from({ length: corpus.starts.length - 1 }, (_, i) => i);
  let at = order.length;
  return () => {
    if (at + plan.batch > order.length) {
      shuffle(order, random);
      at = 0;
    }
    const members = order.slice(at, at + plan.batch);
    at += plan.batch;
    return members.sort((a, b) => lengthOf(corpus, b) - lengthOf(corpus, a) || a - b);
  };
}

function shuffle(list: number[], random: () => number): void {
  for (let i = list.length - 1; i > 0; i--) {
    const j = Math.floor(random() * (i + 1));
    [list[i], list[j]] = [list[j] as number, list[i] as number];
  }
}

const lengthOf = (corpus: Corpus, i: number): number => (corpus.starts[i + 1] as number) - (corpus.starts[i] as number);

function batchLimits(plan: TrainingPlan, corpus: Corpus): { tokens: number; sequenceLength: number } {
  let longest = 0;
  for (let i = 0; i + 1 < corpus.starts.length; i++) longest = Math.max(longest, lengthOf(corpus, i));
  return { tokens: longest * Math.ceil(plan.batch / plan.shards), sequenceLength: longest };
}

function sampledTokens(corpus: Corpus, members: readonly number[]): number {
  let count = 0;
  for (const i of members) {
    for (let at = corpus.starts[i] as number; at < (corpus.starts[i + 1] as number); at++)
      count += corpus.sampled[at] as number;
  }
  return count;
}

/** The chosen sequences end to end; every sampled token costs `weight`. */
export function makeBatch(corpus: Corpus, members: readonly number[], weight: number): Batch {
  const lengths = members.map((i) => lengthOf(corpus, i));
  const ids = new Int32Array(lengths.reduce((sum, length) => sum + length, 0));
  const predicted: number[] = [];
  let at = 0;
  members.forEach((member, i) => {
    const start = corpus.starts[member] as number;
    const length = lengths[i] as number;
    ids.set(corpus.ids.subarray(start, start + length), at);
    for (let j = 0; j + 1 < length; j++) if (corpus.sampled[start + j + 1]) predicted.push(at + j);
    at += length;
  });
  return {
    ids,
    lengths,
    predicted: Int32Array.from(predicted),
    weights: new Float32Array(predicted.length).fill(weight),
  };
}

/** out = the shards' gradients, added in their order. */
function sumInto(out: Float32Array, all: Float32Array, from: number, shards: number): void {
  const count = out.length;
  out.set(all.subarray(from, from + count));
  for (let shard = 1; shard < shards; shard++) {
    const part = all.subarray(from + shard * count, from + (shard + 1) * count);
    for (let i = 0; i < count; i++) out[i] = (out[i] as number) + (part[i] as number);
  }
}

/** Blocks until all shards have come here. The last to come wakes the others. */
function waitForAll(barrier: Int32Array, shards: number): void {
  const round = Atomics.load(barrier, 1);
  if (Atomics.add(barrier, 0, 1) === shards - 1) {
    Atomics.store(barrier, 0, 0);
    Atomics.add(barrier, 1, 1);
    Atomics.notify(barrier, 1);
  } else {
    while (Atomics.load(barrier, 1) === round) Atomics.wait(barrier, 1, round);
  }
}
