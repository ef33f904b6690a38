/**
 * What each kind of server does in its own way: one file a kind implements `ServerProtocol`. It turns neutral calls into
 * that server's routes and its replies into neutral values, and nothing else: retries, replicas, bytes of tokens, checks
 * of constraints and spans of weight versions are the same for all and live outside (remote-backend.ts, ../router).
 */
import type { ChatMessage } from '../../core/events';
import type { RemoteKind, ServerFigures, WeightSource } from '../../core/inference';
import type { WeightSpan } from '../../core/tokens/chunk';
import type { LogprobKind } from '../../core/vocabulary';
import type { SamplingOptions, TemplateOptions, UnfinishedUpdate, WeightUpdate } from '../backend';
import type { HttpClient } from './http-client';

/** What is known of the server this protocol speaks to; found by `describe` and by the check. */
export interface ServerFacts {
  modelName: string;
  contextLength: number;
  version: string | null;
  /** Changes when the server was started again or serves another model: what it said of itself, as one string. */
  fingerprint: string;
  /** What a sampled token's number is when nothing shapes the distribution but temperature. */
  logprobs: LogprobKind;
  /** Requests it works on side by side, where it has a fixed number; more would only wait in it. */
  slots?: number;
  /** Routes found to exist, e.g. `tokens-in-tokens-out`, `pause`, `lora`; each protocol has its own words. */
  routes: ReadonlySet<string>;
}

export interface GenerateCall {
  promptIds: Int32Array;
  options: SamplingOptions;
  /** Fixed width, unique: a name for the request where the server takes one. */
  requestId: string;
  affinityKey: string;
  signal?: AbortSignal;
}

export interface RawGeneration {
  ids: Int32Array;
  /** NaN where the server gave none. −9999, the lowest float and null are given as they came (null as NaN). Shape [n]. */
  logprobs: Float32Array;
  /** Of this reply, with its sampling options: `constrained` where a mask was in the numbers, `sampled` after temperature or filters. */
  logprobKind: LogprobKind;
  /** `aborted`: an update or a person stopped it; what was sampled before is valid. */
  finish: 'stop' | 'length' | 'eos' | 'aborted';
  /** The last id is the end-of-turn token. */
  endTokenSampled: boolean;
  stopString: string | null;
  /** What the server says it read; must be the length of the prompt. Null where it does not tell. */
  promptTokens: number | null;
  /** Spans where the server gives them, else its one label, else null. */
  weightVersions: WeightSpan[] | string | null;
  /** Bytes of each token where the reply has them exactly (never from text that may hold U+FFFD). */
  tokenBytes: (Uint8Array | null)[] | null;
}

export interface RawScores {
  logprobs: Float32Array;
  alternatives: { k: number; ids: Int32Array; logprobs: Float32Array } | null;
  entropy: Float32Array | null;
}

/** Driving new weights. Each call throws from the error family; `remote-backend.ts` puts them in order. */
export interface WeightRoutes {
  sources: readonly WeightSource[];
  canPause: boolean;
  /** False: the server keeps no label; `version` is never asked and `stamp` does nothing. Absent: it keeps one. */
  readonly keepsLabel?: boolean;
  /** Label now. */
  version(http: HttpClient): Promise<string>;
  /** Resolves when nothing is running any more. With `interrupt` running generations come back as `aborted`. */
  pause(http: HttpClient, mode: 'drain' | 'interrupt', signal?: AbortSignal): Promise<void>;
  resume(http: HttpClient): Promise<void>;
  /** Whether the server itself stands paused, whoever did it; absent where it does not say. */
  paused?(http: HttpClient): Promise<boolean>;
  /**
   * Loads while paused (or holds requests by itself). Throws with the server's words; then the old weights serve. Where
   * that cannot be known, `details.weightsUnknown` of the error is true, and the server stays paused.
   */
  load(http: HttpClient, source: WeightUpdate['source'], version: string): Promise<void>;
  /**
   * Makes the weights those that the label names again after an update that was cut off, where label and weights do not
   * change as one. Called while nothing runs. Throws Unavailable where it cannot be known what serves.
   */
  restore?(http: HttpClient, unfinished: UnfinishedUpdate): Promise<void>;
  /** Empties the prefix cache and makes sure of it; throws when it cannot be told that it is empty. */
  flush(http: HttpClient): Promise<void>;
  /** Makes sure that the server takes the key that signs these calls, changing nothing there; absent where none does. Throws Forbidden. */
  checkKey?(http: HttpClient): Promise<void>;
  /** Stamps the label; a server without labels keeps none and the backend remembers it. */
  stamp(http: HttpClient, version: string): Promise<void>;
}

export interface ServerProtocol {
  readonly kind: RemoteKind;
  /**
   * Asks the server what it is. Throws Unavailable when it does not answer, Invalid when it is another kind.
   * `contextLength`: what a person said, for servers that do not tell; without it their facts hold 0.
   */
  describe(http: HttpClient, wanted: { model: string | null; contextLength?: number | null }): Promise<ServerFacts>;
  generate(http: HttpClient, facts: ServerFacts, call: GenerateCall): Promise<RawGeneration>;
  /** Absent where the server cannot score given tokens. Null: an update or a person stopped it before it had the numbers. */
  score?(
    http: HttpClient,
    facts: ServerFacts,
    call: {
      promptIds: Int32Array;
      completionIds: Int32Array;
      alternatives: number;
      entropy: boolean;
      signal?: AbortSignal;
    },
  ): Promise<RawScores | null>;
  /** Ids of a text, no special tokens added. `special: false` where the server can encode control strings as text. */
  tokenize?(http: HttpClient, facts: ServerFacts, text: string, special: boolean): Promise<Int32Array>;
  /** True when `tokenize(…, special false)` is exact; else control strings are cut (see token-text.ts). */
  readonly plainTokenize: boolean;
  /** Text of ids, special tokens included, nothing cleaned up. */
  detokenize?(http: HttpClient, facts: ServerFacts, ids: Int32Array): Promise<string>;
  /** The chat template as text, or as ids where the server gives no text. */
  applyTemplate?(
    http: HttpClient,
    facts: ServerFacts,
    messages: ChatMessage[],
    options: TemplateOptions,
  ): Promise<string | Int32Array>;
  health(http: HttpClient): Promise<{ ok: boolean; message: string }>;
  /** Route of its Prometheus text and the names in it; null where it has none. */
  readonly metrics: MetricNames | null;
  weights(facts: ServerFacts): WeightRoutes | null;
  embed?(http: HttpClient, facts: ServerFacts, texts: string[], signal?: AbortSignal): Promise<Float32Array[]>;
}

/** Names in the Prometheus text; each may have older spellings, tried in order. */
export interface MetricNames {
  route: string;
  running: string[];
  waiting: string[];
  /** Histogram (`_sum`, `_count`) in seconds. */
  timeToFirstToken: string[];
  timePerOutputToken: string[];
  generatedTokens: string[];
  promptTokens: string[];
  kvCacheUse: string[];
  /** Counters of hits and of lookups, or one gauge 0 to 1. */
  prefixCache: { hits: string[]; queries: string[] } | { rate: string[] } | null;
}

export type { ServerFigures };
