/**
 * What the server process and the forked model process say to each other. One message a finished request, numbers
 * in typed arrays (`serialization: 'advanced'` carries them as they are).
 */
import type { ErrorCode } from '../../core/errors';
import type { ChatMessage } from '../../core/events';
import type {
  CompletionScores,
  EncodedText,
  GenerationResult,
  SamplingOptions,
  ScorePair,
  TemplateOptions,
} from '../backend';

/** A model file and how it is to be served. */
export interface ModelSettings {
  modelPath: string;
  /** Label of the weights in `modelPath`. */
  version: string;
  threads: number;
  /** Tokens a sequence can hold, prompt and completion together; null: what the model was trained on, at most 4,096. */
  contextLength: number | null;
  /** Sequences generated at once; null: what fits into 1 GiB of key-value cache, at most 32. */
  maxSequences: number | null;
}

export interface ModelInfo {
  modelName: string;
  contextLength: number;
  maxSequences: number;
  vocabularySize: number;
}

/** A request of generation without what cannot travel: its signal becomes a `cancel` message. */
export interface GenerateTask {
  id: number;
  promptIds: Int32Array;
  options: SamplingOptions;
  affinityKey: string;
}

export type ToChild =
  | { kind: 'open'; id: number; settings: ModelSettings }
  | { kind: 'generate'; tasks: GenerateTask[] }
  | { kind: 'score'; id: number; pairs: ScorePair[]; alternatives: number; entropy: boolean }
  | { kind: 'tokenize'; id: number; text: string; special: boolean }
  | { kind: 'decode'; id: number; ids: Int32Array }
  | { kind: 'template'; id: number; messages: ChatMessage[]; options: TemplateOptions }
  | { kind: 'update'; id: number; source: string; version: string }
  | { kind: 'ping'; id: number }
  | { kind: 'cancel'; id: number }
  | { kind: 'close'; id: number };

/** What a request of each kind is answered with. */
export interface Answers {
  open: ModelInfo;
  generate: GenerationResult;
  score: CompletionScores[];
  tokenize: EncodedText;
  decode: EncodedText;
  template: string;
  update: ModelInfo;
  ping: null;
  close: null;
}
export type Answer = Answers[keyof Answers];

export interface WireError {
  code: ErrorCode;
  message: string;
  details: Record<string, unknown>;
}

export type FromChild =
  | { kind: 'result'; id: number; value: Answer }
  | { kind: 'error'; id: number; error: WireError }
  | { kind: 'log'; level: 'warn' | 'debug'; message: string };
