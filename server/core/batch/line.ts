/** A line of a rollout batch: one token sequence with the facts of its trajectory, repeated on each of its lines. */
import type { WeightSpan } from '../tokens/chunk';
import type { FinalTrajectoryStatus, JsonObject, LogprobKind } from '../vocabulary';

/** What a trajectory says of itself on every line of its sequences. Null: there is no such value. */
export interface TrajectoryFacts {
  runId: string | null;
  groupId: string;
  taskId: string | null;
  trajectoryId: string;
  skill: string | null;
  skillVersion: number | null;
  backend: string | null;
  status: FinalTrajectoryStatus;
  /** Null only where the trajectory failed before it had any. */
  stepRewards: number[] | null;
  reward: number | null;
  rewardComponents: Record<string, number> | null;
  stateKeys: string[] | null;
  /** By step. */
  advantages: number[] | null;
  humanEdited: boolean;
}

/** Per token, all of one length. A log-probability that does not exist is NaN; a column that does not exist is null. */
export interface BatchTokens {
  ids: Int32Array;
  mask: Uint8Array;
  /** -1 for the prompt. */
  stepIndex: Int32Array;
  /** Positions in SEGMENT_KINDS. */
  segment: Uint8Array | null;
  logprobs: Float64Array | Float32Array | null;
  policyLogprobs: Float64Array | Float32Array | null;
  refLogprobs: Float64Array | Float32Array | null;
}

export interface BatchLine extends TrajectoryFacts {
  sequenceIndex: number | null;
  weightVersions: WeightSpan[] | null;
  logprobKind: LogprobKind | null;
  truncated: boolean;
  approximate: boolean;
  tokens: BatchTokens;
  /** Keys this program does not know, kept as they came. */
  extra: JsonObject;
}
