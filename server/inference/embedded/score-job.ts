/** Scores a given completion on one sequence. */
import type { Job } from './batch-loop';
import type { Addon, AddonSampler } from './llama-addon';
import { logprobOf } from './scoring';

export class ScoreJob implements Job {
  readonly key: string;
  readonly tokens: number[];
  readonly logitsFrom: number;
  readonly done: Promise<Float32Array>;
  readonly #addon: Addon;
  readonly #completion: Int32Array;
  readonly #logprobs: Float32Array;
  #sampler: AddonSampler | null = null;
  #scored = 0;
  #settle: (logprobs: Float32Array) => void = () => {};
  #fail: (error: Error) => void = () => {};

  /** Both lists hold at least one token. */
  constructor(pair: { promptIds: Int32Array; completionIds: Int32Array }, key: string, addon: Addon) {
    this.key = key;
    // The last token of the completion is scored from the one before it and need not be evaluated.
    this.tokens = [...pair.promptIds, ...pair.completionIds.subarray(0, -1)];
    this.logitsFrom = pair.promptIds.length - 1;
    this.#completion = pair.completionIds;
    this.#logprobs = new Float32Array(pair.completionIds.length);
    this.#addon = addon;
    this.done = new Promise((settle, fail) => {
      this.#settle = settle;
      this.#fail = fail;
    });
  }

  start(): void {
    this.#sampler = this.#addon.newSampler();
  }

  async read(logits: { position: number; index: number }[]): Promise<boolean> {
    if (!this.#sampler) return false;
    for (const { position, index } of logits) {
      const k = position - this.logitsFrom;
      this.#logprobs[k] = await logprobOf(this.#addon.context, this.#sampler, index, this.#completion[k] ?? 0);
      this.#scored++;
    }
    return this.#scored >= this.#completion.length;
  }

  end(error: Error | null): void {
    this.#sampler?.dispose();
    if (error) this.#fail(error);
    else this.#settle(this.#logprobs);
  }
}
