/** The least a backend must do to be a replica, on a loopback server, over the real HTTP client. */
import { Invalid } from '../../../core/errors';
import type {
  BackendCapabilities,
  CompletionScores,
  EncodedText,
  GenerationRequest,
  GenerationResult,
  InferenceBackend,
  ScoreOptions,
  ScorePair,
  WeightUpdate,
} from '../../backend';
import { createHttpClient, type HttpClient } from '../../remote/http-client';
import { PLAIN_CAPABILITIES } from '../../testing/capabilities';
import type { ReplicaSource } from '../replica';

interface State {
  model: string;
  context: number;
  version: string;
  starts: number;
}

export class LoopbackBackend implements InferenceBackend {
  readonly name = 'loop';
  readonly #http: HttpClient;
  readonly #maxInFlight: number;
  #starts = 0;

  constructor(url: string, maxInFlight: number) {
    this.#http = createHttpClient({ backend: this.name, url });
    this.#maxInFlight = maxInFlight;
  }

  generate(requests: GenerationRequest[]): Promise<PromiseSettledResult<GenerationResult>[]> {
    return Promise.allSettled(requests.map((request) => this.#generate(request)));
  }

  async getLogprobs(pairs: ScorePair[], options: ScoreOptions = {}): Promise<CompletionScores[]> {
    const scores = pairs.map(async ({ promptIds, completionIds }) => {
      const { logprobs } = await this.#post(promptIds, 'score', options.signal);
      return { logprobs: logprobs.slice(0, completionIds.length), entropy: null, alternatives: null };
    });
    return Promise.all(scores);
  }

  async updateWeights({ version }: WeightUpdate): Promise<void> {
    await this.#http.postJson('/weights', { version });
  }

  async weightVersion(): Promise<string> {
    return (await this.#state()).version;
  }

  async tokenize(text: string): Promise<EncodedText> {
    await this.#state();
    const bytes = new TextEncoder().encode(text);
    return { ids: Int32Array.from(bytes), bytes, byteEnds: Uint32Array.from(bytes, (_, k) => k + 1) };
  }

  async applyTemplate(): Promise<string> {
    throw new Invalid('There is no template.');
  }

  async health(): Promise<{ ok: boolean; message: string }> {
    await this.#http.getJson('/health');
    return { ok: true, message: 'ready' };
  }

  async capabilities(): Promise<BackendCapabilities> {
    const { model, context } = await this.#state();
    return {
      ...PLAIN_CAPABILITIES,
      constraints: ['choice', 'regex'],
      weightSources: ['checkpoint', 'external'],
      contextLength: context,
      modelName: model,
      maxInFlight: this.#maxInFlight,
    };
  }

  close(): Promise<void> {
    return this.#http.close();
  }

  async #generate({ promptIds, affinityKey, signal }: GenerationRequest): Promise<GenerationResult> {
    const { ids, logprobs, version } = await this.#post(promptIds, affinityKey, signal);
    return {
      ids,
      logprobs,
      logprobKind: 'raw',
      bytes: Uint8Array.from(ids),
      byteEnds: Uint32Array.from(ids, (_, k) => k + 1),
      finishReason: 'length',
      endTokenSampled: false,
      stopString: null,
      weightVersions: [{ version, start: 0, end: ids.length }],
    };
  }

  async #post(ids: Int32Array, key: string, signal?: AbortSignal) {
    const { body } = await this.#http.postJson(
      '/generate',
      { ids, key },
      { timeoutMs: null, ...(signal && { signal }) },
    );
    const said = body as { ids: number[]; logprobs: number[]; version: string };
    return { ids: Int32Array.from(said.ids), logprobs: Float32Array.from(said.logprobs), version: said.version };
  }

  starts(): number {
    return this.#starts;
  }

  async #state(): Promise<State> {
    const state = (await this.#http.getJson('/state')).body as State;
    this.#starts = state.starts;
    return state;
  }
}

/** Its opening asks the server, as that of a real one does. */
export function loopbackSource(url: string, maxInFlight = 8): ReplicaSource {
  return {
    url,
    open: async () => {
      const backend = new LoopbackBackend(url, maxInFlight);
      await backend.weightVersion();
      return backend;
    },
    metrics: {
      names: {
        route: '/metrics',
        running: ['test:running'],
        waiting: [],
        timeToFirstToken: [],
        timePerOutputToken: [],
        generatedTokens: ['test:generated'],
        promptTokens: [],
        kvCacheUse: [],
        prefixCache: null,
      },
      read: async () => (await fetch(`${url}/metrics`)).text(),
      close: async () => undefined,
    },
  };
}
