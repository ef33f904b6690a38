/**
 * What the harness asks of an inference server: token ids in, token ids out.
 * One file (or folder) an implementation; nothing above this line knows which server answers.
 */
import type { ChatMessage } from '../core/events';
import type { WeightSpan } from '../core/tokens/chunk';
import type { JsonObject, LogprobKind } from '../core/vocabulary';

export interface SamplingOptions {
  maxTokens: number;
  temperature: number;
  topP: number;
  /** 0 = off. */
  topK: number;
  /** 0 = off. */
  minP: number;
  /** Same seed, prompt and weights → same tokens, where the server can. */
  seed: number;
  stop: string[];
  /** At most one. The grammar is GBNF for llama.cpp servers. */
  constraint?: { kind: 'json_schema'; schema: JsonObject } | { kind: 'grammar'; grammar: string };
}

export interface GenerationRequest {
  promptIds: Int32Array;
  options: SamplingOptions;
  /** Requests with one key share a prefix and are kept together (a trajectory's id). */
  affinityKey: string;
  signal?: AbortSignal;
}

export interface GenerationResult {
  /** Every sampled token, the stop string's and the end-of-turn token included. Shape [n]. */
  ids: Int32Array;
  /** Natural log, shape [n], NaN where the server gave none. */
  logprobs: Float32Array;
  logprobKind: LogprobKind;
  /** Bytes of the tokens end to end, and where each ends. */
  bytes: Uint8Array;
  byteEnds: Uint32Array;
  finishReason: 'stop' | 'length' | 'eos';
  /** The stop string that ended it, when one did. */
  stopString: string | null;
  weightVersions: WeightSpan[];
}

export interface EncodedText {
  ids: Int32Array;
  bytes: Uint8Array;
  byteEnds: Uint32Array;
}

export interface BackendCapabilities {
  tokenIds: boolean;
  logprobs: LogprobKind;
  canScore: boolean;
  constraints: ('json_schema' | 'grammar')[];
  canUpdateWeights: boolean;
  contextLength: number;
  modelName: string;
  /** Requests merged into one call; 1 for a server that batches by itself, 32 for one that wants batches. */
  batchSize: number;
  /** How many requests are worth having in flight. */
  maxInFlight: number;
}

export interface InferenceBackend {
  readonly name: string;
  /** Results in the order of the requests; each settles on its own. Throws from the error family. */
  generate(requests: GenerationRequest[]): Promise<PromiseSettledResult<GenerationResult>[]>;
  /** Log-probabilities (temperature 1, unconstrained) of given completions, one array a pair. */
  getLogprobs(
    pairs: { promptIds: Int32Array; completionIds: Int32Array }[],
    signal?: AbortSignal,
  ): Promise<Float32Array[]>;
  updateWeights(update: { source: string; version: string }): Promise<void>;
  /** `special: false` encodes control strings as plain text: use it for everything a person, task or tool wrote. */
  tokenize(text: string, options: { special: boolean }): Promise<EncodedText>;
  /** Renders the model's own chat template as text. */
  applyTemplate(messages: ChatMessage[], options: { addGenerationPrompt: boolean }): Promise<string>;
  health(): Promise<{ ok: boolean; message: string }>;
  capabilities(): Promise<BackendCapabilities>;
  close(): Promise<void>;
}
