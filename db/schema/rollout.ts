/** Runs, groups, trajectories, their event log and their tokens. */
import { sql } from 'drizzle-orm';
import {
  bigint,
  boolean,
  doublePrecision,
  index,
  integer,
  pgTable,
  primaryKey,
  text,
  uniqueIndex,
} from 'drizzle-orm/pg-core';
import type { ScoreSource, WeightSpan } from '../../server/core/tokens/chunk';
import type { JsonObject, LogprobKind, RunStatus, SandboxLevel, TrajectoryStatus } from '../../server/core/vocabulary';
import { backends, datasets, skillVersions } from './catalog';
import { bytea, json } from './column-types';
import { users } from './people';

export const runs = pgTable(
  'runs',
  {
    id: text('id').primaryKey(),
    name: text('name').notNull(),
    status: text('status').$type<RunStatus>().notNull(),
    skillVersionId: text('skill_version_id')
      .notNull()
      .references(() => skillVersions.id),
    datasetId: text('dataset_id')
      .notNull()
      .references(() => datasets.id),
    backendId: text('backend_id')
      .notNull()
      .references(() => backends.id),
    groupSize: integer('group_size').notNull(),
    taskCount: integer('task_count').notNull(),
    seed: integer('seed').notNull(),
    /** Sampling, deadline, judge, estimator: everything else that was chosen at the start. */
    options: json<JsonObject>()('options').notNull(),
    /** Sentences a reader must know: 'reasoning_quality left out: no judge'. */
    notices: json<string[]>()('notices').notNull(),
    startedBy: text('started_by').references(() => users.id),
    createdAtMs: bigint('created_at_ms', { mode: 'number' }).notNull(),
    finishedAtMs: bigint('finished_at_ms', { mode: 'number' }),
    /** The number the next event of this run's log gets; moved in the transaction that writes events. */
    nextEventSeq: bigint('next_event_seq', { mode: 'number' }).notNull().default(0),
    error: text('error'),
  },
  (t) => [index('runs_by_time').on(t.createdAtMs, t.id)],
);

export const groups = pgTable(
  'groups',
  {
    id: text('id').primaryKey(),
    runId: text('run_id')
      .notNull()
      .references(() => runs.id),
    position: integer('position').notNull(),
    taskId: text('task_id').notNull(),
    /** Set once, when the last member ends. */
    completedAtMs: bigint('completed_at_ms', { mode: 'number' }),
    meanReward: doublePrecision('mean_reward'),
    stdReward: doublePrecision('std_reward'),
    countedMembers: integer('counted_members'),
    hasSignal: boolean('has_signal'),
  },
  (t) => [uniqueIndex('groups_by_position').on(t.runId, t.position)],
);

export const trajectories = pgTable(
  'trajectories',
  {
    id: text('id').primaryKey(),
    runId: text('run_id')
      .notNull()
      .references(() => runs.id),
    groupId: text('group_id')
      .notNull()
      .references(() => groups.id),
    sessionId: text('session_id').notNull().unique(),
    /** Position in the group, from 0. */
    member: integer('member').notNull(),
    seed: integer('seed').notNull(),
    status: text('status').$type<TrajectoryStatus>().notNull(),
    /** The queue: who works on it, until when. A worker that stops renewing loses it. */
    workerId: text('worker_id'),
    leaseUntilMs: bigint('lease_until_ms', { mode: 'number' }),
    claims: integer('claims').notNull().default(0),
    /** Claimed in the order they were put in: group by group, so that whole groups end early. */
    queueOrder: bigint('queue_order', { mode: 'number' }).notNull().generatedAlwaysAsIdentity(),
    stepRewards: json<number[]>()('step_rewards'),
    stepComponents: json<Record<string, number>[]>()('step_components'),
    stateKeys: json<string[]>()('state_keys'),
    advantages: json<number[]>()('advantages'),
    reward: doublePrecision('reward'),
    rewardComponents: json<Record<string, number>>()('reward_components'),
    success: boolean('success'),
    endReason: text('end_reason'),
    errorMessage: text('error_message'),
    errorStack: text('error_stack'),
    generatedTokens: integer('generated_tokens'),
    totalTokens: integer('total_tokens'),
    /** Tool calls that did not succeed, by status; null while running. */
    toolFailures: json<Record<string, number>>()('tool_failures'),
    sandboxLevels: json<SandboxLevel[]>()('sandbox_levels'),
    humanEdited: boolean('human_edited').notNull().default(false),
    approximate: boolean('approximate').notNull().default(false),
    /** How often it was begun anew because its weights had become too old. */
    redone: integer('redone').notNull().default(0),
    startedAtMs: bigint('started_at_ms', { mode: 'number' }),
    finishedAtMs: bigint('finished_at_ms', { mode: 'number' }),
  },
  (t) => [
    uniqueIndex('trajectories_by_member').on(t.groupId, t.member),
    index('trajectories_by_run').on(t.runId, t.groupId),
    index('trajectories_queue').on(t.queueOrder).where(sql`status in ('queued', 'running')`),
  ],
);

/** Append-only. (session_id, seq) is what makes one writer win; run_seq orders the run's feed. */
export const sessionEvents = pgTable(
  'session_events',
  {
    sessionId: text('session_id').notNull(),
    seq: integer('seq').notNull(),
    runId: text('run_id'),
    runSeq: bigint('run_seq', { mode: 'number' }),
    atMs: bigint('at_ms', { mode: 'number' }).notNull(),
    type: text('type').notNull(),
    data: json<JsonObject>()('data').notNull(),
    /** A TokenChunk in its wire form (core/tokens/wire), where the event brought tokens. */
    tokens: bytea('tokens'),
    weights: json<WeightSpan[]>()('weights'),
  },
  (t) => [primaryKey({ columns: [t.sessionId, t.seq] }), uniqueIndex('session_events_by_run').on(t.runId, t.runSeq)],
);

/** The finished token sequences of a trajectory: little-endian binary columns, all of one length. */
export const tokenSequences = pgTable(
  'token_sequences',
  {
    trajectoryId: text('trajectory_id')
      .notNull()
      .references(() => trajectories.id),
    sequenceIndex: integer('sequence_index').notNull(),
    length: integer('length').notNull(),
    generatedLength: integer('generated_length').notNull(),
    tokenIds: bytea('token_ids').notNull(),
    logprobs: bytea('logprobs').notNull(),
    generationMask: bytea('generation_mask').notNull(),
    stepIndex: bytea('step_index').notNull(),
    segmentKind: bytea('segment_kind').notNull(),
    bytes: bytea('bytes').notNull(),
    byteEnds: bytea('byte_ends').notNull(),
    policyLogprobs: bytea('policy_logprobs'),
    refLogprobs: bytea('ref_logprobs'),
    /** Who gave the two columns above. */
    policyScoredBy: json<ScoreSource>()('policy_scored_by'),
    refScoredBy: json<ScoreSource>()('ref_scored_by'),
    /** Of the last scoring that asked for them: f32[n] nats, i32[n·k] and f32[n·k], likeliest first. */
    entropy: bytea('entropy'),
    alternativesK: integer('alternatives_k'),
    alternativeIds: bytea('alternative_ids'),
    alternativeLogprobs: bytea('alternative_logprobs'),
    weightVersions: json<WeightSpan[]>()('weight_versions').notNull(),
    logprobKind: text('logprob_kind').$type<LogprobKind>().notNull(),
    truncated: boolean('truncated').notNull(),
    approximate: boolean('approximate').notNull(),
  },
  (t) => [primaryKey({ columns: [t.trajectoryId, t.sequenceIndex] })],
);

/** Whole tool outputs whose observation was truncated. */
export const toolOutputs = pgTable('tool_outputs', {
  id: text('id').primaryKey(),
  sessionId: text('session_id').notNull(),
  content: bytea('content').notNull(),
});
