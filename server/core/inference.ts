/** What is known and shown of an inference backend: kinds, capabilities, the check of a server, its live figures. */
import type { LogprobKind } from './vocabulary';

export const BACKEND_KINDS = ['embedded', 'vllm', 'sglang', 'tensorrt-llm', 'llama-server', 'openai'] as const;
export type BackendKind = (typeof BACKEND_KINDS)[number];
export type RemoteKind = Exclude<BackendKind, 'embedded'>;
export const REMOTE_KINDS = BACKEND_KINDS.filter((kind) => kind !== 'embedded') as readonly RemoteKind[];

export const CONSTRAINT_KINDS = ['json_schema', 'regex', 'grammar', 'choice'] as const;
export type ConstraintKind = (typeof CONSTRAINT_KINDS)[number];

export const WEIGHT_SOURCES = ['checkpoint', 'lora', 'external'] as const;
export type WeightSource = (typeof WEIGHT_SOURCES)[number];

export interface BackendCapabilities {
  /** False: the server takes and gives text only; everything that comes from it is approximate. */
  tokenIds: boolean;
  /** What the numbers of sampled tokens are at temperature 1 without filters or constraint; see `logprobsAtTemperature`. */
  logprobs: LogprobKind;
  canScore: boolean;
  /** Scores may come with the entropy of each position. */
  entropy: boolean;
  constraints: ConstraintKind[];
  /** Ways to bring new weights that this server offers; none = []. */
  weightSources: WeightSource[];
  canPause: boolean;
  /** Same seed, same tokens. */
  seeded: boolean;
  embeddings: boolean;
  contextLength: number;
  modelName: string;
  /** Requests merged into one call; 1 for a server that batches by itself, 32 for one that wants batches. */
  batchSize: number;
  /** How many requests are worth having in flight, over all replicas. */
  maxInFlight: number;
}

/** What a server is asked when it is added, in the order a person reads the answers. */
export const CHECK_ITEMS = [
  'reach',
  'kind',
  'model',
  'context_length',
  'token_round_trip',
  'tokenizer',
  'chat_template',
  'logprob_kind',
  'scoring',
  'constraints',
  'weight_updates',
  'metrics',
  'embeddings',
] as const;

/** One line of the checklist that comes with adding a server. */
export interface CheckItem {
  id: (typeof CHECK_ITEMS)[number];
  /** `fail`: cannot be used as it is. `warn`: usable, with the loss that `says` names. `absent`: not offered, nothing lost that is required. */
  status: 'pass' | 'fail' | 'warn' | 'absent';
  /** What was asked, e.g. `POST /v1/completions {"prompt":[…]}`; never a key. Null: nothing. */
  sent: string | null;
  /** What came back, shortened with notice. Null: nothing. */
  received: string | null;
  /** One sentence for a person. */
  says: string;
}

export interface BackendCheck {
  url: string;
  /** Found out; null when nothing is there that is known. */
  kind: RemoteKind | null;
  serverVersion: string | null;
  /** True when no item failed. */
  ok: boolean;
  items: CheckItem[];
  /** Null when the server cannot be used. */
  capabilities: BackendCapabilities | null;
  /** What a stored check is held against when the server restarts. */
  fingerprint: string | null;
  checkedAtMs: number;
}

/** Live figures of one server, from its own metrics; null where it does not tell. */
export interface ServerFigures {
  running: number | null;
  waiting: number | null;
  /** Means over the time since the figures before, in milliseconds. */
  timeToFirstTokenMs: number | null;
  timePerOutputTokenMs: number | null;
  /** Sampled tokens a second over that time. */
  tokensPerSecond: number | null;
  promptTokensPerSecond: number | null;
  /** 0 to 1. */
  kvCacheUse: number | null;
  /** Share of prompt tokens found in the prefix cache, 0 to 1, over that time. */
  prefixHitRate: number | null;
}

export interface BackendHealth {
  ok: boolean;
  /** A sentence. */
  message: string;
  /**
   * It is not ok, and nothing is wrong: somebody paused it, its weights are being changed, or its model is still loading.
   * Generations wait until that is over.
   */
  held?: boolean;
}
