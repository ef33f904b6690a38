/**
 * What the harness asks of an inference server: token ids in, token ids out.
 * One file (or folder) an implementation; nothing above this line knows which server answers.
 */
import type { ChatMessage } from '../core/events';
import type { BackendCapabilities, BackendHealth, ConstraintKind, ServerFigures } from '../core/inference';
import type { WeightSpan } from '../core/tokens/chunk';
import type { JsonObject, LogprobKind } from '../core/vocabulary';

export type { BackendCapabilities } from '../core/inference';

/** What the text of a completion may be; each server has its own fields for it. */
export type Constraint =
  | { kind: 'json_schema'; schema: JsonObject }
  /** Anchored at both ends. */
  | { kind: 'regex'; pattern: string }
  /** GBNF; the root rule is `root`. */
  | { kind: 'grammar'; grammar: string }
  | { kind: 'choice'; choices: string[] };

/** Holds the two lists of kinds together. */
export type KindOfConstraint = Constraint['kind'] & ConstraintKind;

export interface SamplingOptions {
  maxTokens: number;
  temperature: number;
  topP: number;
  /** 0 = off. */
  topK: number;
  /** 0 = off. */
  minP: number;
  /** Same seed, prompt and weights → same tokens, where the server can. Below 2^53. */
  seed: number;
  stop: string[];
  /** At most one. */
  constraint?: Constraint;
}

export interface GenerationRequest {
  promptIds: Int32Array;
  options: SamplingOptions;
  /** Requests with one key share a prefix and are kept together (a trajectory's id). */
  affinityKey: string;
  /**
   * Numbers of another kind than `raw`, or missing ones, are scored again at once where the server can score, and only by
   * the weights that sampled; where these are gone, they stay what they are.
   */
  rawLogprobs?: boolean;
  signal?: AbortSignal;
}

export interface GenerationResult {
  /** Every sampled token, those of the stop string included. Shape [n]. */
  ids: Int32Array;
  /** Natural log, shape [n], NaN where the server gave none. */
  logprobs: Float32Array;
  logprobKind: LogprobKind;
  /** Bytes of the tokens end to end, and where each ends. */
  bytes: Uint8Array;
  byteEnds: Uint32Array;
  finishReason: 'stop' | 'length' | 'eos';
  /** With `eos`: whether the last of `ids` is the end-of-turn token; some engines keep it to themselves. Else false. */
  endTokenSampled: boolean;
  /** The stop string that ended it, when one did. */
  stopString: string | null;
  /** Half-open positions in `ids`; more than one when the weights changed under it. */
  weightVersions: WeightSpan[];
}

export interface EncodedText {
  ids: Int32Array;
  bytes: Uint8Array;
  byteEnds: Uint32Array;
}

/** A function the model may call, as its template is told. */
export interface TemplateTool {
  name: string;
  description: string;
  parameters: JsonObject;
}

export interface TemplateOptions {
  addGenerationPrompt: boolean;
  /** For templates that know tools; left out when absent or empty. */
  tools?: TemplateTool[];
}

export interface ScorePair {
  promptIds: Int32Array;
  completionIds: Int32Array;
}

export interface ScoreOptions {
  signal?: AbortSignal;
  /** The likeliest tokens of each position to report beside, 0 to 5 (default 0). */
  alternatives?: number;
  /** Also the entropy of each position, in nats; only where capabilities.entropy. */
  entropy?: boolean;
}

/** Of one completion of n tokens: temperature 1, unconstrained, natural logs. */
export interface CompletionScores {
  /** Shape [n]. */
  logprobs: Float32Array;
  /** Shape [n]; null when not asked for or not offered. */
  entropy: Float32Array | null;
  /** Likeliest first, shape [n × k], id −1 where there are fewer; null when not asked for. */
  alternatives: { k: number; ids: Int32Array; logprobs: Float32Array } | null;
}

export interface WeightUpdate {
  source:
    | { kind: 'checkpoint'; path: string }
    | { kind: 'lora'; path: string }
    /** The trainer moves the tensors itself: pause, flush, stamp the version, resume. */
    | { kind: 'external' };
  version: string;
  /** Generations under way: let them end with the old weights, or stop them and go on with the new. Default drain. */
  inFlight?: 'drain' | 'interrupt';
}

/** An update of weights that nobody saw the end of: its process died, or it left a server held back. */
export interface UnfinishedUpdate {
  update: WeightUpdate;
  /** Those that had succeeded before it, oldest first: where the weights of a label came from. */
  before: readonly Pick<WeightUpdate, 'source' | 'version'>[];
}

export interface ReplicaStatus {
  url: string;
  state: 'healthy' | 'down' | 'paused' | 'updating';
  /** Why it is not healthy, as a sentence. */
  reason: string | null;
  /** Ours with it now. */
  inFlight: number;
  tokensInFlight: number;
  weightVersion: string | null;
  /** Requests that failed since the start of this process. */
  errors: number;
  lastError: string | null;
  /** Of the server itself; null while it does not tell. */
  figures: ServerFigures | null;
}

export interface InferenceBackend {
  readonly name: string;
  /** Results in the order of the requests; each settles on its own. Throws from the error family. */
  generate(requests: GenerationRequest[]): Promise<PromiseSettledResult<GenerationResult>[]>;
  /** Log-probabilities (temperature 1, unconstrained) of given completions, in the order of the pairs. */
  getLogprobs(pairs: ScorePair[], options?: ScoreOptions): Promise<CompletionScores[]>;
  /** When it fails the old weights go on serving, and the error says so. */
  updateWeights(update: WeightUpdate): Promise<void>;
  /** Label of the weights that serve now. */
  weightVersion(): Promise<string>;
  /** `special: false` encodes control strings as plain text: use it for everything a person, task or tool wrote. */
  tokenize(text: string, options: { special: boolean }): Promise<EncodedText>;
  /** The bytes of ids, for showing tokens that nobody encoded here. Only where capabilities.tokenIds. */
  decode?(ids: Int32Array): Promise<EncodedText>;
  /** Renders the model's own chat template as text. */
  applyTemplate(messages: ChatMessage[], options: TemplateOptions): Promise<string>;
  /** Vectors of length d each. Only where capabilities.embeddings. */
  embed?(texts: string[], signal?: AbortSignal): Promise<Float32Array[]>;
  health(): Promise<BackendHealth>;
  capabilities(): Promise<BackendCapabilities>;
  /** Stops taking requests (they wait) until `resume`. Generations under way end first; the signal gives it up before that. */
  pause?(signal?: AbortSignal): Promise<void>;
  /** Also reaches servers that stand paused without anybody here knowing of it. */
  resume?(): Promise<void>;
  /**
   * Makes sure after an update that was cut off that what serves is what its label says and that no cache is of other
   * weights, and lets it go on unless it is paused. Throws Unavailable: to be tried again (retry), or it stays held back.
   */
  settle?(unfinished: UnfinishedUpdate): Promise<void>;
  /** How often its server was seen to have been started again: its weights are its first ones then. Absent: never. */
  starts?(): number;
  /** Why requests would wait at the server for somebody who paused it there, as a sentence; null where none would, or it does not say. */
  pausedElsewhere?(): Promise<string | null>;
  /** The replicas as they are now; a backend inside this process has none. */
  replicas?(): ReplicaStatus[];
  /** Why requests wait now (no replica answers, an operator paused it), as a sentence; else null. */
  trouble?(): string | null;
  /** Milliseconds since the start of this process in which no request could be served; deadlines do not count them. */
  stoppedMs?(): number;
  close(): Promise<void>;
}
