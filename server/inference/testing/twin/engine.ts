/** What stands behind a twin's routes: a real small model, or a fixed service model for benches. */
import type { Constraint } from '../../backend';
import type { Scheduler } from './scheduler';

export interface EngineRequest {
  id: string;
  promptIds: number[];
  /** 0: nothing is sampled, only the prompt is read. */
  maxTokens: number;
  temperature: number;
  topP: number;
  topK: number;
  minP: number;
  /** Null: one drawn at random. */
  seed: number | null;
  stop: string[];
  stopTokenIds: number[];
  ignoreEos: boolean;
  constraint: Constraint | null;
  /** The likeliest tokens of each position to report. */
  alternatives: number;
  /** Tokens whose numbers are reported at every sampled position. */
  reported?: number[];
  /** Numbers of prompt tokens from this position on; null = none. */
  scoreFrom: number | null;
  /** The client has gone. */
  signal: AbortSignal;
  /** Called after each sampled token but the last with what there is so far. */
  onToken?: (so: EngineGeneration) => void;
}

/** Likeliest first. */
export type Alternatives = [logprob: number, id: number][];

/** A sampled token. */
export interface EngineToken {
  id: number;
  /** Natural log, of logits / temperature with the constraint's mask, before filters. */
  sampled: number;
  /** Natural log at temperature 1, without constraint or filters. */
  raw: number;
  sampledAlternatives: Alternatives;
  rawAlternatives: Alternatives;
  /** Of the request's `reported`, as `sampled`. */
  reported?: Alternatives;
  weightVersion: string;
}

export type EngineFinish =
  | { kind: 'stop'; matched: number | string }
  | { kind: 'length' }
  /** An update, a person or the client's going ended it. */
  | { kind: 'abort'; message: string };

export interface EngineGeneration {
  tokens: EngineToken[];
  /** Null while it goes on. */
  finish: EngineFinish | null;
  promptTokens: number;
  cachedTokens: number;
  /** Of the prompt's positions from `scoreFrom` on; null for position 0. At temperature 1. */
  promptLogprobs: { logprob: number | null; id: number; alternatives: Alternatives | null }[];
}

export interface TwinEngine {
  readonly scheduler: Scheduler;
  readonly modelName: string;
  /** Of the weights that serve now. */
  readonly modelPath: string;
  readonly contextLength: number;
  readonly vocabularySize: number;
  readonly beginOfText: number;
  readonly endOfText: number;
  /** Label of the weights that serve now. */
  weightVersion: string;
  /** Throws TwinError for what the model cannot do. */
  generate(request: EngineRequest): Promise<EngineGeneration>;
  /** Control strings become control tokens. */
  tokenize(text: string): number[];
  /** Parts of characters become U+FFFD. */
  detokenize(ids: readonly number[], skipSpecial: boolean): string;
  render(messages: unknown, options: { addGenerationPrompt: boolean; tools: unknown }): string;
  /** Replaces the weights; what runs goes on with the new ones. Throws when the file cannot be used; the old stay. */
  load(path: string, options: { keepCache: boolean }): Promise<void>;
  /** Forgets all prompts. */
  flush(): Promise<void>;
  /** Back to the weights and the label it was started with. */
  reset(): Promise<void>;
  close(): Promise<void>;
}

/** A refusal: each twin writes it in its own shape. */
export class TwinError extends Error {
  constructor(
    readonly status: number,
    message: string,
    readonly type = 'BadRequestError',
  ) {
    super(message);
  }
}
