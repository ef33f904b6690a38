import { beforeAll, describe, expect, it } from 'vitest';
import { seededRandom } from '../../server/core/ambient';
import { type Corpus, packCorpus } from './corpus';
import { compileKernels } from './kernels/compile';
import { learningRateAt, makeBatch, makeExchange, type TrainingPlan, trainShard } from './shard';
import { train } from './train';

const PLAN: TrainingPlan = {
  shape: { vocabulary: 16, width: 16, layers: 1, heads: 2, hidden: 16, context: 32 },
  seed: 1,
  steps: 30,
  batch: 6,
  learningRate: 1e-2,
  warmUp: 5,
  shards: 2,
};

/** Sequences that count up from a random start; only what follows the start is learnt. */
function countingCorpus(): Corpus {
  const random = seededRandom(4);
  return packCorpus(
    Array.from({ length: 20 }, (_, i) => {
      const start = Math.floor(random() * 16);
      const ids = Array.from({ length: 6 + (i % 5) }, (_, j) => (start + j) % 16);
      return { ids, sampled: ids.map((_, j) => j > 0) };
    }),
  );
}

let kernels: Uint8Array<ArrayBuffer>;
beforeAll(async () => {
  kernels = await compileKernels();
});

async function run(plan: TrainingPlan) {
  const losses: number[] = [];
  const weights = await train(kernels, plan, countingCorpus(), (_, loss) => losses.push(loss));
  return { losses, weights };
}

describe('training', () => {
  it('lowers the loss, and gives the same bits for the same seed', async () => {
    const first = await run(PLAN);
    expect(first.losses).toHaveLength(PLAN.steps);
    expect(first.losses[0]).toBeGreaterThan(2);
    expect(first.losses.at(-1)).toBeLessThan((first.losses[0] as number) / 2);
    const again = await run(PLAN);
    expect(again.losses).toEqual(first.losses);
    expect(again.weights).toEqual(first.weights);
    const other = await run({ ...PLAN, seed: 2 });
    expect(other.weights).not.toEqual(first.weights);
  });

  it('learns the same from one thread as from two, up to the order of addition', async () => {
    const two = await run({ ...PLAN, steps: 4 });
    const losses: number[] = [];
    const plan = { ...PLAN, steps: 4, shards: 1 };
    const model = trainShard({
      module: await WebAssembly.compile(kernels),
      plan,
      corpus: countingCorpus(),
      exchange: makeExchange(
        [...two.weights.values()].reduce((sum, weight) => sum + weight.length, 0),
        1,
      ),
      shard: 0,
      report: (_, loss) => losses.push(loss),
    });
    losses.forEach((loss, i) => {
      expect(loss).toBeCloseTo(two.losses[i] as number, 4);
    });
    expect(model.parameters.weights.size).toBe(two.weights.size);
  });

  it('fails with the reason when a thread fails', async () => {
    await expect(run({ ...PLAN, shape: { ...PLAN.shape, width: 12 } })).rejects.toThrow('multiples of 8');
  });
});

describe('a batch', () => {
  it('lays the chosen sequences end to end and predicts only what was sampled', () => {
    const corpus = packCorpus([
      { ids: [1, 2, 3], sampled: [false, false, true] },
      { ids: [4, 5, 6, 7], sampled: [false, true, true, false] },
    ]);
    const batch = makeBatch(corpus, [1, 0], 0.5);
    expect([...batch.ids]).toEqual([4, 5, 6, 7, 1, 2, 3]);
    expect(batch.lengths).toEqual([4, 3]);
    expect([...batch.predicted]).toEqual([0, 1, 5]);
    expect([...batch.weights]).toEqual([0.5, 0.5, 0.5]);
  });
});

describe('the learning rate', () => {
  it('rises to its height during the warm-up and falls to a twentieth', () => {
    const plan = { learningRate: 1, warmUp: 10, steps: 110 };
    expect(learningRateAt(plan, 0)).toBeCloseTo(0.1, 12);
    expect(learningRateAt(plan, 9)).toBe(1);
    expect(learningRateAt(plan, 60)).toBeCloseTo(0.525, 12);
    expect(learningRateAt(plan, 110)).toBeCloseTo(0.05, 12);
  });
});
