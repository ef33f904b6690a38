import { beforeAll, describe, expect, it } from 'vitest';
import { seededRandom } from '../../server/core/ambient';
import { modelMemory } from './activations';
import { Adam } from './adam';
import { compileKernels } from './kernels/compile';
import { Kernels } from './kernels/kernels';
import { type Batch, Model } from './model';

const SHAPE = { vocabulary: 24, width: 16, layers: 2, heads: 2, hidden: 24, context: 32 };
const LIMITS = { tokens: 40, sequenceLength: 16 };

let module: WebAssembly.Module;
beforeAll(async () => {
  module = new WebAssembly.Module(await compileKernels());
});

function makeModel(seed = 3): { model: Model; kernels: Kernels } {
  const kernels = new Kernels(module, modelMemory(SHAPE, LIMITS));
  const model = new Model(kernels, SHAPE, LIMITS);
  model.parameters.initialise(seed);
  return { model, kernels };
}

/** Three sequences of unequal length; about two thirds of the tokens count. */
function makeBatch(seed = 5): Batch {
  const random = seededRandom(seed);
  const lengths = [7, 13, 2];
  const ids = Int32Array.from({ length: 22 }, () => Math.floor(random() * SHAPE.vocabulary));
  const predicted: number[] = [];
  let start = 0;
  for (const length of lengths) {
    for (let i = 0; i + 1 < length; i++) if (random() < 0.7) predicted.push(start + i);
    start += length;
  }
  return {
    ids,
    lengths,
    predicted: Int32Array.from(predicted),
    weights: Float32Array.from(predicted, () => random() - 0.3),
  };
}

describe('the model', () => {
  it('has the gradient that finite differences give, tensor by tensor', () => {
    const { model } = makeModel();
    // Norm weights away from 1, so that a mistake about them shows.
    const random = seededRandom(11);
    for (const [name, weight] of model.parameters.weights)
      if (name.includes('norm')) for (let i = 0; i < weight.length; i++) weight[i] = 0.6 + random();
    const batch = makeBatch();
    model.run(batch, true);
    const epsilon = 1e-2;
    for (const [name, weight] of model.parameters.weights) {
      const gradient = model.parameters.weightGradients.get(name) as Float32Array;
      const before = weight.slice();
      for (let trial = 0; trial < 3; trial++) {
        const direction = Float32Array.from(weight, () => (random() - 0.5) * 2);
        const lossAt = (step: number) => {
          for (let i = 0; i < weight.length; i++) weight[i] = (before[i] as number) + step * (direction[i] as number);
          return model.run(batch, false).loss;
        };
        // Fourth-order central difference.
        const slope =
          (8 * (lossAt(epsilon) - lossAt(-epsilon)) - (lossAt(2 * epsilon) - lossAt(-2 * epsilon))) / (12 * epsilon);
        weight.set(before);
        const expected = direction.reduce((sum, d, i) => sum + d * (gradient[i] as number), 0);
        const size = Math.sqrt(gradient.reduce((sum, g) => sum + g * g, 0));
        expect(size, `${name} has a gradient`).toBeGreaterThan(0);
        expect(Math.abs(slope - expected) / (size + Math.abs(expected)), `${name}, trial ${trial}`).toBeLessThan(2e-3);
      }
    }
  });

  it('gives each sequence the same log-probabilities alone and beside others', () => {
    const { model } = makeModel();
    const batch = makeBatch();
    const together = model.run(batch, false).logprobs.slice();
    let start = 0;
    let seen = 0;
    for (const length of batch.lengths) {
      const from = start;
      const predicted = batch.predicted.filter((position) => position >= from && position < from + length);
      const alone = model.run(
        {
          ids: batch.ids.slice(from, from + length),
          lengths: [length],
          predicted: predicted.map((position) => position - from),
          weights: new Float32Array(predicted.length).fill(1),
        },
        false,
      ).logprobs;
      expect([...alone]).toEqual([...together.subarray(seen, seen + predicted.length)]);
      seen += predicted.length;
      start += length;
    }
  });

  it('learns one batch by heart', () => {
    const { model, kernels } = makeModel();
    const adam = new Adam(kernels, model.parameters);
    const batch = { ...makeBatch() };
    batch.weights = new Float32Array(batch.weights.length).fill(1 / batch.weights.length);
    const first = model.run(batch, false).loss;
    for (let step = 0; step < 60; step++) {
      model.run(batch, true);
      adam.step(1e-2);
    }
    expect(first).toBeGreaterThan(2);
    expect(model.run(batch, false).loss).toBeLessThan(0.5);
  });

  it('says what is wrong with a batch that does not fit', () => {
    const { model } = makeModel();
    const long = { ids: new Int32Array(20), lengths: [20], predicted: Int32Array.of(0), weights: Float32Array.of(1) };
    expect(() => model.run(long, false)).toThrow('A sequence of 20 tokens is longer than the 16 allowed.');
    expect(() => new Model(new Kernels(module, 1_000_000), { ...SHAPE, width: 12 }, LIMITS)).toThrow('multiples of 8');
    expect(() => new Model(new Kernels(module, 10_000), SHAPE, LIMITS)).toThrow(RangeError);
  });
});
