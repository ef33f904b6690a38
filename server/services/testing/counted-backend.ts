/**
 * A backend for tests of verbs: a token is a byte, its log-probability a plain function of the ids before it and of the
 * weights, so that a test can count what should be stored. Says what it was asked.
 */
import { Invalid } from '../../core/errors';
import type { BackendCapabilities } from '../../core/inference';
import type {
  CompletionScores,
  EncodedText,
  InferenceBackend,
  ReplicaStatus,
  ScoreOptions,
  ScorePair,
  WeightUpdate,
} from '../../inference/backend';

/** −(id + number of tokens before + number of the weights) / 1000. */
export const countedLogprob = (id: number, before: number, weights: string): number =>
  Math.fround(-(id + before + Number(weights.slice(1))) / 1000);

export class CountedBackend implements InferenceBackend {
  weights = 'w1';
  readonly asked: ScorePair[] = [];
  readonly updates: WeightUpdate[] = [];
  paused = false;
  /** Runs before each scoring, for tests that let something happen meanwhile. */
  beforeScore: (pair: ScorePair, signal: AbortSignal | undefined) => Promise<void> = async () => undefined;
  duringUpdate: () => Promise<void> = async () => undefined;
  /** Also while it is resumed. */
  duringPause: () => Promise<void> = async () => undefined;
  /** Added to every number. */
  offset = 0;
  /** Added to every id that `tokenize` gives: another vocabulary. */
  shift = 0;

  constructor(
    readonly name: string,
    private readonly able: Partial<BackendCapabilities> = {},
    private readonly urls: readonly string[] = [],
  ) {}

  async generate(): Promise<never> {
    throw new Invalid('This backend only counts.');
  }

  async getLogprobs(pairs: ScorePair[], options: ScoreOptions = {}): Promise<CompletionScores[]> {
    return Promise.all(
      pairs.map(async (pair) => {
        await this.beforeScore(pair, options.signal);
        options.signal?.throwIfAborted();
        this.asked.push(pair);
        const { promptIds, completionIds } = pair;
        const k = options.alternatives ?? 0;
        const n = completionIds.length;
        return {
          logprobs: Float32Array.from(
            completionIds,
            (id, i) => this.offset + countedLogprob(id, promptIds.length + i, this.weights),
          ),
          entropy: options.entropy ? Float32Array.from({ length: n }, (_, i) => i / 2) : null,
          alternatives:
            k > 0
              ? {
                  k,
                  ids: Int32Array.from({ length: n * k }, (_, i) => i),
                  logprobs: Float32Array.from({ length: n * k }, (_, i) => -i),
                }
              : null,
        };
      }),
    );
  }

  async updateWeights(update: WeightUpdate): Promise<void> {
    this.updates.push(update);
    await this.duringUpdate();
    this.weights = update.version;
  }

  async weightVersion(): Promise<string> {
    return this.weights;
  }

  async tokenize(text: string): Promise<EncodedText> {
    const bytes = new TextEncoder().encode(text);
    return {
      ids: Int32Array.from(bytes, (byte) => byte + this.shift),
      bytes,
      byteEnds: Uint32Array.from(bytes, (_, i) => i + 1),
    };
  }

  async applyTemplate(): Promise<string> {
    return '';
  }

  async health(): Promise<{ ok: boolean; message: string }> {
    return { ok: true, message: 'Counts.' };
  }

  async capabilities(): Promise<BackendCapabilities> {
    return {
      tokenIds: true,
      logprobs: 'raw',
      canScore: true,
      entropy: true,
      constraints: [],
      weightSources: ['checkpoint', 'external'],
      canPause: true,
      seeded: true,
      embeddings: false,
      contextLength: 4096,
      modelName: 'counted',
      batchSize: 1,
      maxInFlight: 8,
      ...this.able,
    };
  }

  async pause(): Promise<void> {
    await this.duringPause();
    this.paused = true;
  }

  async resume(): Promise<void> {
    await this.duringPause();
    this.paused = false;
  }

  replicas(): ReplicaStatus[] {
    return this.urls.map((url, i) => ({
      url,
      state: this.paused ? 'paused' : 'healthy',
      reason: this.paused ? 'An operator paused it.' : null,
      inFlight: i,
      tokensInFlight: 10 * i,
      weightVersion: this.weights,
      errors: 0,
      lastError: null,
      figures: null,
    }));
  }

  trouble(): string | null {
    return this.paused ? 'An operator paused it.' : null;
  }

  async close(): Promise<void> {}
}
