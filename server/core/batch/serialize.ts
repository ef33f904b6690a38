/** Writes a line of a rollout batch: all keys in one order, numbers so that they read back exactly. */
import type { TokenSequence } from '../tokens/chunk';
import { type LogprobKind, SEGMENT_KINDS } from '../vocabulary';
import type { BatchLine, TrajectoryFacts } from './line';

/** A line from a stored sequence; shares its arrays. */
export function batchLine(
  sequence: TokenSequence,
  facts: TrajectoryFacts,
  { logprobKind, truncated, approximate }: { logprobKind: LogprobKind; truncated: boolean; approximate: boolean },
): BatchLine {
  const { ids, mask, stepIndex, segment, logprobs, policyLogprobs, refLogprobs } = sequence;
  return {
    ...facts,
    logprobKind,
    truncated,
    approximate,
    sequenceIndex: sequence.index,
    weightVersions: sequence.weightVersions,
    tokens: { ids, mask, stepIndex, segment, logprobs, policyLogprobs, refLogprobs },
    extra: {},
  };
}

/** Without the line's end. A log-probability that is not finite is written as null. */
export function serializeBatchLine(line: BatchLine): string {
  const { tokens } = line;
  const facts = JSON.stringify({
    run_id: line.runId,
    group_id: line.groupId,
    task_id: line.taskId,
    trajectory_id: line.trajectoryId,
    sequence_index: line.sequenceIndex,
    skill: line.skill,
    skill_version: line.skillVersion,
    backend: line.backend,
    status: line.status,
    step_rewards: line.stepRewards,
    reward: line.reward,
    reward_components: line.rewardComponents,
    state_keys: line.stateKeys,
    advantages: line.advantages,
    weight_versions: line.weightVersions,
    logprob_kind: line.logprobKind,
    truncated: line.truncated,
    human_edited: line.humanEdited,
    approximate: line.approximate,
  });
  const columns =
    `,"token_ids":[${tokens.ids.join()}],"generation_mask":[${tokens.mask.join()}],"step_index":[${tokens.stepIndex.join()}]` +
    `,"segment_kind":${segments(tokens.segment)},"logprobs":${numbers(tokens.logprobs)}` +
    `,"policy_logprobs":${numbers(tokens.policyLogprobs)},"ref_logprobs":${numbers(tokens.refLogprobs)}`;
  const extra = JSON.stringify(line.extra);
  return `${facts.slice(0, -1)}${columns}${extra === '{}' ? '}' : `,${extra.slice(1)}`}`;
}

const QUOTED = SEGMENT_KINDS.map((kind) => JSON.stringify(kind));

function segments(codes: Uint8Array | null): string {
  if (codes === null) return 'null';
  const parts = new Array<string>(codes.length);
  for (let k = 0; k < codes.length; k++) parts[k] = QUOTED[codes[k] as number] as string;
  return `[${parts.join()}]`;
}

function numbers(values: Float32Array | Float64Array | null): string {
  if (values === null) return 'null';
  const parts = new Array<string>(values.length);
  for (let k = 0; k < values.length; k++) {
    const value = values[k] as number;
    parts[k] = Number.isFinite(value) ? (Object.is(value, -0) ? '-0' : String(value)) : 'null';
  }
  return `[${parts.join()}]`;
}
