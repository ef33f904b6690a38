/**
 * A stretch of tokens as the model saw or sampled them: parallel typed arrays, one entry a token.
 * The same shape is appended by an event, stored, sent to the browser and exported.
 */
export interface TokenChunk {
  /** Token ids, shape [n]. */
  ids: Int32Array;
  /** What the engine reported while sampling, natural log, shape [n]; NaN where there is none (mask 0, or unscored). */
  logprobs: Float32Array;
  /** Generation mask: 1 where the policy sampled the token, else 0. Shape [n]. */
  mask: Uint8Array;
  /** The step that sampled the token or caused the observation; -1 for the prompt. Shape [n]. */
  stepIndex: Int32Array;
  /** Position in SEGMENT_KINDS, shape [n]. */
  segment: Uint8Array;
  /** The bytes of all tokens, end to end. Not text: a character may be split over tokens. */
  bytes: Uint8Array;
  /** End of token k in `bytes` (exclusive), shape [n]; token k starts at byteEnds[k-1] (0 for the first). */
  byteEnds: Uint32Array;
}

/** Which weights produced which tokens: half-open token positions of the sequence. */
export interface WeightSpan {
  version: string;
  start: number;
  end: number;
}

/** Stands between the labels of weights of which nobody knows which were at work; no label of its own may hold it. */
export const MIXED = '→';

/** Which weights gave the scores of a sequence, and when. */
export interface ScoreSource {
  /** Name of the backend. */
  backend: string;
  weightVersion: string;
  atMs: number;
  /** What it also brought: so many alternatives a token, and entropy. Absent: none. */
  alternatives?: number;
  entropy?: boolean;
}

/** What scoring may bring beside the log-probabilities: NaN and id −1 where there is nothing. */
export interface TokenExtras {
  /** In nats, shape [n]. */
  entropy: Float32Array | null;
  /** The likeliest tokens of each position, likeliest first; token i's are at [i·k, (i+1)·k). */
  alternatives: { k: number; ids: Int32Array; logprobs: Float32Array } | null;
}

/** One prefix-consistent string of tokens. */
export interface TokenSequence extends TokenChunk {
  index: number;
  weightVersions: WeightSpan[];
  /** Log-probabilities of the policy being trained / of the frozen reference; null until scored. Shape [n]. */
  policyLogprobs: Float32Array | null;
  refLogprobs: Float32Array | null;
}
