/** What one request on the model has come to so far. */
import { StopStrings } from '../../stop-strings';
import type { EngineFinish, EngineGeneration, EngineRequest, EngineToken } from './engine';
import type { Lease, Weights } from './weights';

export class Run {
  readonly request: EngineRequest;
  weights: Weights;
  readonly tokens: EngineToken[] = [];
  finish: EngineFinish | null = null;
  promptLogprobs: EngineGeneration['promptLogprobs'] = [];
  #cachedTokens: number | null = null;
  readonly #stops: StopStrings;

  constructor(request: EngineRequest, weights: Weights) {
    this.request = request;
    this.weights = weights;
    this.#stops = new StopStrings(request.stop);
  }

  async lease(weights: Weights, context: readonly number[]): Promise<Lease> {
    this.#cachedTokens ??= Math.min(weights.cached(context), this.request.promptIds.length);
    return weights.take(context);
  }

  push(token: EngineToken): void {
    this.tokens.push(token);
    this.finish = this.#finishOf(token.id);
    // The last one comes with the end.
    if (this.finish === null && this.tokens.length < this.request.maxTokens)
      this.request.onToken?.(this.generation(null));
  }

  generation(finish: EngineFinish | null): EngineGeneration {
    return {
      tokens: this.tokens,
      finish,
      promptTokens: this.request.promptIds.length,
      cachedTokens: this.#cachedTokens ?? 0,
      promptLogprobs: this.promptLogprobs,
    };
  }

  #finishOf(id: number): EngineFinish | null {
    const { ignoreEos, stopTokenIds } = this.request;
    const { vocabulary } = this.weights;
    if (!ignoreEos && vocabulary.endsGeneration(id)) return { kind: 'stop', matched: id };
    if (stopTokenIds.includes(id)) return { kind: 'stop', matched: id };
    const matched = this.#stops.push(vocabulary.bytesOf(id));
    return matched === null ? null : { kind: 'stop', matched };
  }
}
