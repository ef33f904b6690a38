/** Trains the policy on the corpus with two threads. */
import { Worker } from 'node:worker_threads';
import { llamaTensorShapes } from '../../server/inference/gguf/llama';
import type { Corpus } from './corpus';
import { makeExchange, type TrainingPlan } from './shard';
import type { ShardJob, ShardMessage } from './shard-worker';

/**
 * The trained weights by tensor name. The same plan, corpus and kernels give the same bits.
 * `onStep` hears the mean loss a token. Rejects when a thread fails.
 */
export async function train(
  kernels: Uint8Array<ArrayBuffer>,
  plan: TrainingPlan,
  corpus: Corpus,
  onStep: (step: number, loss: number) => void,
): Promise<Map<string, Float32Array>> {
  const module = await WebAssembly.compile(kernels);
  const tensors = llamaTensorShapes(plan.shape);
  const exchange = makeExchange(
    tensors.reduce((sum, { rows, columns }) => sum + rows * columns, 0),
    plan.shards,
  );
  const workers = Array.from({ length: plan.shards }, (_, shard) => {
    const workerData: ShardJob = { module, plan, corpus, exchange, shard };
    return new Worker(new URL('./shard-worker.mjs', import.meta.url), { workerData, execArgv: [] });
  });
  try {
    const parameters = await Promise.race(workers.map((worker) => finished(worker, onStep)));
    return splitByTensor(parameters, tensors);
  } finally {
    await Promise.all(workers.map((worker) => worker.terminate()));
  }
}

/** Settles with the weights that shard 0 sends, or with the first failure; never for a shard that ends quietly. */
function finished(worker: Worker, onStep: (step: number, loss: number) => void): Promise<Float32Array> {
  return new Promise((resolve, reject) => {
    worker.on('error', reject);
    worker.on('message', (message: ShardMessage) => {
      if (message.type === 'step') onStep(message.step, message.loss);
      else resolve(message.parameters);
    });
    worker.on('exit', (code) => {
      if (code !== 0) reject(new Error(`A training thread ended with code ${code}.`));
    });
  });
}

function splitByTensor(
  parameters: Float32Array,
  tensors: readonly { name: string; rows: number; columns: number }[],
): Map<string, Float32Array> {
  const weights = new Map<string, Float32Array>();
  let at = 0;
  for (const { name, rows, columns } of tensors) {
    weights.set(name, parameters.slice(at, at + rows * columns));
    at += rows * columns;
  }
  return weights;
}
