/** One generation on one sequence: samples, collects, and decides when it is over. */
import type { GenerationResult, SamplingOptions } from '../backend';
import { StopStrings } from '../stop-strings';
import type { Job } from './batch-loop';
import type { ConstraintState } from './constraint';
import type { Addon, AddonSampler, SamplerConfig } from './llama-addon';
import { logprobOf } from './scoring';
import type { Vocabulary } from './vocabulary';

export interface GenerationNeeds {
  addon: Addon;
  vocabulary: Vocabulary;
  version: string;
  constraint: ConstraintState | null;
  /** What fits into the context, at most what was asked for. */
  maxTokens: number;
}

/** llama.cpp takes this seed for "draw one at random". */
const RANDOM_SEED = 0xffffffff;

export class GenerationJob implements Job {
  readonly key: string;
  readonly tokens: number[];
  readonly logitsFrom: number;
  readonly done: Promise<GenerationResult>;
  readonly #needs: GenerationNeeds;
  readonly #options: SamplingOptions;
  readonly #promptLength: number;
  readonly #stops: StopStrings;
  readonly #logprobs: number[] = [];
  #sampler: AddonSampler | null = null;
  #scorer: AddonSampler | null = null;
  #finish: Pick<GenerationResult, 'finishReason' | 'stopString'> | null = null;
  #settle: (result: GenerationResult) => void = () => {};
  #fail: (error: Error) => void = () => {};

  constructor(
    request: { promptIds: Int32Array; options: SamplingOptions; affinityKey: string },
    needs: GenerationNeeds,
  ) {
    this.key = request.affinityKey;
    this.tokens = Array.from(request.promptIds);
    this.logitsFrom = request.promptIds.length - 1;
    this.#promptLength = request.promptIds.length;
    this.#options = request.options;
    this.#needs = needs;
    this.#stops = new StopStrings(request.options.stop);
    this.done = new Promise((settle, fail) => {
      this.#settle = settle;
      this.#fail = fail;
    });
  }

  start(): void {
    this.#sampler = this.#needs.addon.newSampler();
    this.#sampler.applyConfig(this.#config());
  }

  async read(logits: { position: number; index: number }[]): Promise<boolean> {
    const last = logits.at(-1);
    if (!last || !this.#sampler) return false;
    const [token, logprob] = await this.#sample(last.index, this.#sampler);
    if (token < 0) throw new Error('No token could be sampled: the filters or the grammar left none.');
    this.tokens.push(token);
    this.#logprobs.push(logprob);
    this.#finish = this.#finished(token);
    return this.#finish !== null;
  }

  end(error: Error | null): void {
    this.#sampler?.dispose();
    this.#scorer?.dispose();
    if (error) this.#fail(error);
    else this.#settle(this.#result());
  }

  /**
   * The log-probability is always that of the unconstrained policy at temperature 1: at temperature 1 or 0 without
   * filters the sampler's own number is that already, else the token is scored from the same logits.
   */
  async #sample(index: number, sampler: AddonSampler): Promise<[token: number, logprob: number]> {
    const context = this.#needs.addon.context;
    if (this.#samplesRaw()) {
      const [token, , confidence] = await context.sampleToken(index, sampler, false, true);
      return [token, Math.log(confidence ?? Number.NaN)];
    }
    // Without asking for its probability, the grammar is checked against the sampled token alone; with it, against
    // the whole vocabulary.
    const token = await context.sampleToken(index, sampler);
    if (token < 0) return [token, Number.NaN];
    this.#scorer ??= this.#needs.addon.newSampler();
    return [token, await logprobOf(context, this.#scorer, index, token)];
  }

  #samplesRaw(): boolean {
    const { temperature, topK, topP, minP } = this.#options;
    if (this.#needs.constraint) return false;
    return temperature === 0 || (temperature === 1 && topK === 0 && topP >= 1 && minP <= 0);
  }

  #config(): SamplerConfig {
    const { temperature, topK, topP, minP, seed } = this.#options;
    const config: SamplerConfig = { temperature };
    if (temperature > 0) {
      const bits = seed >>> 0;
      config.seed = bits === RANDOM_SEED ? 0 : bits;
      if (topK > 0) config.topK = topK;
      if (topP < 1) config.topP = topP;
      if (minP > 0) config.minP = minP;
    }
    if (this.#needs.constraint) config.grammarEvaluationState = this.#needs.constraint.state;
    return config;
  }

  #finished(token: number): Pick<GenerationResult, 'finishReason' | 'stopString'> | null {
    const { vocabulary, constraint, maxTokens } = this.#needs;
    if (vocabulary.endsGeneration(token)) return { finishReason: 'eos', stopString: null };
    const stopString = this.#stops.push(vocabulary.bytesOf(token));
    if (stopString !== null) return { finishReason: 'stop', stopString };
    if (constraint?.complete()) return { finishReason: 'stop', stopString: null };
    if (this.#logprobs.length >= maxTokens) return { finishReason: 'length', stopString: null };
    return null;
  }

  #result(): GenerationResult {
    const ids = Int32Array.from(this.tokens.slice(this.#promptLength));
    return {
      ...this.#needs.vocabulary.encoded(ids),
      logprobs: Float32Array.from(this.#logprobs),
      logprobKind: 'raw',
      ...(this.#finish ?? { finishReason: 'length', stopString: null }),
      endTokenSampled: this.#finish?.finishReason === 'eos',
      weightVersions: [{ version: this.#needs.version, start: 0, end: ids.length }],
    };
  }
}
