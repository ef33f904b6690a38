/** Entry of a training thread: runs its shard; shard 0 reports progress and sends the weights at the end. */
import { parentPort, workerData } from 'node:worker_threads';
import type { Corpus } from './corpus';
import { type Exchange, type TrainingPlan, trainShard } from './shard';

export interface ShardJob {
  module: WebAssembly.Module;
  plan: TrainingPlan;
  corpus: Corpus;
  exchange: Exchange;
  shard: number;
}
export type ShardMessage = { type: 'step'; step: number; loss: number } | { type: 'trained'; parameters: Float32Array };

const job = workerData as ShardJob;
const send = (message: ShardMessage) => {
  if (job.shard === 0) parentPort?.postMessage(message);
};
const model = trainShard({ ...job, report: (step, loss) => send({ type: 'step', step, loss }) });
send({ type: 'trained', parameters: model.parameters.values.slice() });
