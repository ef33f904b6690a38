/**
 * The part of node-llama-cpp's native binding that the batch loop drives itself.
 *
 * The library's public generator holds its context lock as long as any sequence has work queued, so under load a new
 * request that must first drop stale tokens would wait for all others; and it samples once a position, so that the
 * log-probability of a given token costs a list of the whole vocabulary. The binding below has neither limit. It is
 * internal to the library: the version is pinned exactly, and `addonOf` refuses a build that lacks any of it.
 */
import type { Llama, LlamaContext, LlamaGrammar, LlamaModel } from 'node-llama-cpp';
import { Unavailable } from '../../core/errors';

export interface SamplerConfig {
  temperature: number;
  topK?: number;
  topP?: number;
  minP?: number;
  seed?: number;
  tokenBiasKeys?: Uint32Array;
  tokenBiasValues?: Float32Array;
  grammarEvaluationState?: GrammarState;
}

export interface AddonSampler {
  applyConfig(config: SamplerConfig): void;
  dispose(): void;
}

/** Opaque: where a text stands in its grammar. Advanced by the sampler that holds it. */
export interface GrammarState {
  readonly grammarState: never;
}

export interface AddonContext {
  initBatch(tokens: number): void;
  /** Positions `logitIndexes` of `tokens` get logits; returns their indexes in the batch. */
  addToBatch(sequence: number, firstPosition: number, tokens: Uint32Array, logitIndexes: Uint32Array): Uint32Array;
  decodeBatch(): Promise<void>;
  /** The sampled token, −1 when there is none. Each call starts from the logits anew. */
  sampleToken(logitIndex: number, sampler: AddonSampler): Promise<number>;
  sampleToken(
    logitIndex: number,
    sampler: AddonSampler,
    probabilities: false,
    confidence: true,
  ): Promise<[token: number, probabilities: undefined, confidence: number | undefined]>;
  /** Also every token and its probability, one after the other, likeliest first. */
  sampleToken(
    logitIndex: number,
    sampler: AddonSampler,
    probabilities: true,
  ): Promise<[token: number, probabilities: number[]]>;
  /** False when this kind of model cannot forget part of a sequence. */
  removeTokenCellsFromSequence(sequence: number, start: number, end: number): boolean;
  disposeSequence(sequence: number): void;
}

export interface Addon {
  context: AddonContext;
  newSampler(): AddonSampler;
  newGrammarState(grammar: LlamaGrammar): GrammarState;
  canBeNext(state: GrammarState, token: number): boolean;
}

interface Internals {
  bindings: {
    AddonSampler: {
      new (model: unknown): AddonSampler;
      canBeNextTokenForGrammarEvaluationState(state: GrammarState, token: number): boolean;
    };
    AddonGrammarEvaluationState: new (model: unknown, grammar: unknown) => GrammarState;
  };
}

export function addonOf(llama: Llama, model: LlamaModel, context: LlamaContext): Addon {
  const { _bindings: bindings } = llama as unknown as { _bindings: Internals['bindings'] };
  const { _model: nativeModel } = model as unknown as { _model: unknown };
  const { _ctx: native } = context as unknown as { _ctx: AddonContext };
  const methods = [
    'initBatch',
    'addToBatch',
    'decodeBatch',
    'sampleToken',
    'removeTokenCellsFromSequence',
    'disposeSequence',
  ] as const;
  const complete =
    methods.every((method) => typeof native?.[method] === 'function') &&
    typeof bindings?.AddonSampler === 'function' &&
    typeof bindings.AddonSampler.canBeNextTokenForGrammarEvaluationState === 'function' &&
    typeof bindings.AddonGrammarEvaluationState === 'function' &&
    nativeModel !== undefined;
  if (!complete)
    throw new Unavailable(
      'The installed node-llama-cpp is not the version this product was built for; run `npm ci` to get that version.',
    );
  return {
    context: native,
    newSampler: () => new bindings.AddonSampler(nativeModel),
    newGrammarState: (grammar) =>
      new bindings.AddonGrammarEvaluationState(nativeModel, (grammar as unknown as { _grammar: unknown })._grammar),
    canBeNext: (state, token) => bindings.AddonSampler.canBeNextTokenForGrammarEvaluationState(state, token),
  };
}
