/** The closed word lists of the product, used by the interface, the database, the code and the exports alike. */
export const ROLES = ['viewer', 'reviewer', 'operator', 'admin'] as const;
export type Role = (typeof ROLES)[number];

export const SEGMENT_KINDS = [
  'system',
  'user',
  'thought',
  'action',
  'answer',
  'stop',
  'observation',
  'template',
] as const;
export type SegmentKind = (typeof SEGMENT_KINDS)[number];
/** Stored as one byte: the position in SEGMENT_KINDS. */
export const segmentCode = (kind: SegmentKind): number => SEGMENT_KINDS.indexOf(kind);

export const TRAJECTORY_STATUSES = [
  'queued',
  'running',
  'completed',
  'truncated',
  'failed',
  'cancelled',
  'timed_out',
] as const;
export type TrajectoryStatus = (typeof TRAJECTORY_STATUSES)[number];
export const FINAL_TRAJECTORY_STATUSES = ['completed', 'truncated', 'failed', 'cancelled', 'timed_out'] as const;
export type FinalTrajectoryStatus = (typeof FINAL_TRAJECTORY_STATUSES)[number];
/** Only these count in group statistics, advantages and losses. */
export const COUNTED_STATUSES: readonly TrajectoryStatus[] = ['completed', 'truncated'];

export const RUN_STATUSES = ['queued', 'running', 'completed', 'cancelled', 'failed'] as const;
export type RunStatus = (typeof RUN_STATUSES)[number];

export const LOGPROB_KINDS = ['raw', 'sampled', 'constrained', 'unknown'] as const;
export type LogprobKind = (typeof LOGPROB_KINDS)[number];

export const PERMISSION_LEVELS = [
  'manual_only',
  'approve_always',
  'approve_once',
  'ask_first',
  'auto_with_notification',
  'full_trust',
] as const;
export type PermissionLevel = (typeof PERMISSION_LEVELS)[number];

export const TOOL_STATUSES = [
  'success',
  'error',
  'timeout',
  'permission_denied',
  'rejected',
  'expired',
  'interrupted',
  'cancelled',
] as const;
export type ToolStatus = (typeof TOOL_STATUSES)[number];

/** From weak to strong. */
export const SANDBOX_LEVELS = ['none', 'wasm', 'process', 'container', 'vm'] as const;
export type SandboxLevel = (typeof SANDBOX_LEVELS)[number];

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
export type JsonObject = { [key: string]: Json };
