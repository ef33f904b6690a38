/** A skill as the harness uses it: the YAML of DESIGN with its defaults filled in. See `parseSkill` for the text form. */
import type { ActionFormatName } from '../actions/format';
import type { Json, JsonObject, PermissionLevel, SandboxLevel } from '../vocabulary';

export interface Skill {
  skillName: string;
  description: string;
  availableTools: string[];
  maxRounds: number;
  answerFormat: { requiredFields: string[] };
  auditRules: { field: string; pattern: string }[];
  /** Scorer name → weight; the weights sum to 1. */
  rewardWeights: Record<string, number>;
  /** What the model is told. With `{{tools}}` in it, it is the whole system message; else the ReAct frame is put around it. */
  instructions: string;
  /** The form of a turn; `auto`: the one that the backend's chat template writes. */
  actionFormat: ActionFormatName | 'auto';
  /** Ask the backend to constrain a turn so that its action parses. */
  constrainActions: boolean;
  sampling: { temperature: number; topP: number; topK: number; minP: number; maxTokensPerTurn: number };
  /** Texts that end a turn; null: those of the format. */
  stop: string[] | null;
  sandbox: { level: SandboxLevel; accept: SandboxLevel[] };
  permissions: SkillPermissions;
  /** Tokens an observation may take before it is truncated with notice. */
  maxObservationTokens: number;
  /** Milliseconds for a whole trajectory. */
  deadlineMs: number;
  /** Unknown keys, kept as they were written. */
  extra: Record<string, Json>;
}

export interface PermissionRule {
  /** Whole-string, case-sensitive pattern with `*`, `?` and `[...]`. */
  resource: string;
  level: PermissionLevel;
  actions: string[];
  conditions: JsonObject;
}

export interface SkillPermissions {
  /** The level of what no rule matches. */
  defaultLevel: PermissionLevel;
  rules: PermissionRule[];
  /** Milliseconds since the epoch; from then on everything is refused. Absent: they do not expire. */
  expiresAtMs?: number;
}

/** One problem of a dataset. */
export interface Task {
  taskId: string;
  prompt: string;
  answer: Json;
  metadata: JsonObject;
  skill: string | null;
}
