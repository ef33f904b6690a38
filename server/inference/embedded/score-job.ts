/** Scores a given completion on one sequence. */
import type { CompletionScores, ScorePair } from '../backend';
import type { Job } from './batch-loop';
import type { Addon, AddonSampler } from './llama-addon';
import { logprobOf, positionOf } from './scoring';

export interface ScoreNeeds {
  addon: Addon;
  /** The likeliest tokens of each position to report, 0 = none. */
  alternatives: number;
  entropy: boolean;
}

export class ScoreJob implements Job {
  readonly key: string;
  readonly tokens: number[];
  readonly logitsFrom: number;
  readonly done: Promise<CompletionScores>;
  readonly #needs: ScoreNeeds;
  readonly #completion: Int32Array;
  readonly #scores: CompletionScores;
  #sampler: AddonSampler | null = null;
  #scored = 0;
  #settle: (scores: CompletionScores) => void = () => {};
  #fail: (error: Error) => void = () => {};

  /** The prompt holds at least one token; a job without a completion is ended without having been started. */
  constructor({ promptIds, completionIds }: ScorePair, key: string, needs: ScoreNeeds) {
    this.key = key;
    // The last token of the completion is scored from the one before it and need not be evaluated.
    this.tokens = [...promptIds, ...completionIds.subarray(0, -1)];
    this.logitsFrom = promptIds.length - 1;
    this.#completion = completionIds;
    this.#needs = needs;
    const { alternatives: k, entropy } = needs;
    const n = completionIds.length;
    this.#scores = {
      logprobs: new Float32Array(n),
      entropy: entropy ? new Float32Array(n) : null,
      alternatives:
        k > 0 ? { k, ids: new Int32Array(n * k).fill(-1), logprobs: new Float32Array(n * k).fill(Number.NaN) } : null,
    };
    this.done = new Promise((settle, fail) => {
      this.#settle = settle;
      this.#fail = fail;
    });
  }

  start(): void {
    this.#sampler = this.#needs.addon.newSampler();
  }

  async read(logits: { position: number; index: number }[]): Promise<boolean> {
    if (!this.#sampler) return false;
    for (const { position, index } of logits) {
      await this.#score(position - this.logitsFrom, index, this.#sampler);
      this.#scored++;
    }
    return this.#scored >= this.#completion.length;
  }

  end(error: Error | null): void {
    this.#sampler?.dispose();
    if (error) this.#fail(error);
    else this.#settle(this.#scores);
  }

  async #score(k: number, index: number, sampler: AddonSampler): Promise<void> {
    const { logprobs, entropy, alternatives } = this.#scores;
    const { context } = this.#needs.addon;
    const token = this.#completion[k] ?? 0;
    if (!entropy && !alternatives) {
      logprobs[k] = await logprobOf(context, sampler, index, token);
      return;
    }
    const position = await positionOf(context, sampler, index, token, this.#needs.alternatives);
    logprobs[k] = position.logprob;
    if (entropy) entropy[k] = position.entropy;
    for (const [rank, { id, logprob }] of position.likeliest.entries()) {
      if (!alternatives) break;
      alternatives.ids[k * alternatives.k + rank] = id;
      alternatives.logprobs[k * alternatives.k + rank] = logprob;
    }
  }
}
