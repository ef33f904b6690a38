/** The shapes pages receive: what the services return and the components draw. Plain data, JSON-able. */
import type {
  Json,
  JsonObject,
  LogprobKind,
  PermissionLevel,
  Role,
  RunStatus,
  SandboxLevel,
  ToolStatus,
  TrajectoryStatus,
} from './vocabulary';

export interface Page<T> {
  items: T[];
  /** Pass back to get the next page; null at the end. */
  nextCursor: string | null;
  total: number;
}

export interface Viewer {
  userId: string;
  name: string;
  role: Role;
}

export interface RunSummary {
  runId: string;
  name: string;
  status: RunStatus;
  skillName: string;
  skillVersion: number;
  datasetName: string;
  backendName: string;
  groupSize: number;
  taskCount: number;
  /** Trajectories by status. */
  counts: Record<TrajectoryStatus, number>;
  meanReward: number | null;
  successRate: number | null;
  createdAtMs: number;
  finishedAtMs: number | null;
}

export interface TrajectoryRow {
  trajectoryId: string;
  groupId: string;
  member: number;
  status: TrajectoryStatus;
  reward: number | null;
  success: boolean | null;
  stepRewards: number[];
  /** Null until the whole group has ended. */
  advantages: number[] | null;
  generatedTokens: number | null;
  totalTokens: number | null;
  endReason: string | null;
  errorMessage: string | null;
  toolFailures: Record<string, number>;
  startedAtMs: number | null;
  finishedAtMs: number | null;
}

export interface GroupRow {
  groupId: string;
  position: number;
  taskId: string;
  prompt: string;
  completed: boolean;
  meanReward: number | null;
  stdReward: number | null;
  hasSignal: boolean | null;
  /** In member order, groupSize of them. */
  trajectories: TrajectoryRow[];
}

export interface RunDetail extends RunSummary {
  seed: number;
  options: JsonObject;
  notices: string[];
  error: string | null;
  groups: GroupRow[];
  groupsWithoutSignal: number;
  sandboxLevels: SandboxLevel[];
  generatedTokens: number;
  /** Subscribe from here: events after this number are not yet in this answer. */
  eventSeq: number;
}

/** What went wrong, in words, counted over a run, with an example to open. */
export interface FailureCount {
  kind: string;
  count: number;
  exampleTrajectoryId: string;
}

/** One entry of a run's feed. `seq` is the cursor. */
export interface RunFeedEntry {
  seq: number;
  atMs: number;
  trajectoryId: string | null;
  type: string;
  /** Only what the page draws: step number, reward, status. Never model text. */
  stepNumber: number | null;
  reward: number | null;
  status: TrajectoryStatus | RunStatus | null;
}

export interface StepView {
  stepNumber: number;
  thought: string;
  actions: { index: number; tool: string; arguments: Json; raw: string }[];
  results: {
    callIndex: number;
    tool: string;
    status: ToolStatus;
    observation: string;
    error: string | null;
    durationMs: number;
    sandboxLevel: SandboxLevel | null;
    truncated: { keptBytes: number; totalBytes: number; outputId: string } | null;
    permission: { level: PermissionLevel; outcome: 'allow' | 'ask' | 'refuse'; rule: string } | null;
  }[];
  answer: JsonObject | null;
  problem: string | null;
  reward: number | null;
  components: Record<string, number>;
  advantage: number | null;
}

export interface TrajectoryDetail {
  trajectoryId: string;
  runId: string;
  runName: string;
  groupId: string;
  groupPosition: number;
  taskId: string;
  prompt: string;
  reference: Json;
  member: number;
  groupSize: number;
  status: TrajectoryStatus;
  reward: number | null;
  rewardComponents: Record<string, number>;
  rewardWeights: Record<string, number>;
  success: boolean | null;
  answer: JsonObject | null;
  endReason: string | null;
  error: { message: string; stack: string | null } | null;
  skillName: string;
  skillVersion: number;
  backendName: string;
  generatedTokens: number;
  totalTokens: number;
  sandboxLevels: SandboxLevel[];
  steps: StepView[];
  /** All members of the group, in member order, this one included. */
  siblings: TrajectoryRow[];
  sequences: {
    index: number;
    length: number;
    generatedLength: number;
    weightVersions: { version: string; start: number; end: number }[];
    logprobKind: LogprobKind;
    approximate: boolean;
    truncated: boolean;
  }[];
  /** True once the tokens are final. */
  final: boolean;
  eventSeq: number;
}

export interface SkillSummary {
  name: string;
  version: number;
  description: string;
  tools: string[];
  createdAtMs: number;
}
export interface SkillDetail extends SkillSummary {
  yaml: string;
  versions: { version: number; createdAtMs: number }[];
}
export interface DatasetSummary {
  name: string;
  taskCount: number;
  createdAtMs: number;
}
export interface TaskView {
  taskId: string;
  prompt: string;
  answer: Json;
  metadata: JsonObject;
  skill: string | null;
}
export interface BackendSummary {
  name: string;
  kind: string;
  modelName: string | null;
  isDefault: boolean;
  health: { ok: boolean; message: string };
}
export interface AuditEntryView {
  id: string;
  atMs: number;
  agentId: string | null;
  userName: string | null;
  actionType: string;
  resource: string;
  operation: string;
  status: string;
  details: Json;
}
