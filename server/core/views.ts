/** The shapes pages receive: what the services return and the components draw. Plain data, JSON-able. */
import type {
  BackendCapabilities,
  BackendCheck,
  BackendHealth,
  BackendKind,
  ServerFigures,
  WeightSource,
} from './inference';
import type { ScoreSource } from './tokens/chunk';
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
  /** How often its trajectories were begun anew because their weights had become too old. */
  redone: number;
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
    /** Which weights gave policy and ref log-probabilities; null until scored. */
    policyScoredBy: ScoreSource | null;
    refScoredBy: ScoreSource | null;
  }[];
  /** How often it was begun anew because its weights had become too old. */
  redone: number;
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
  kind: BackendKind;
  modelName: string | null;
  isDefault: boolean;
  health: BackendHealth;
  /** Addresses of the servers; none for a model inside this process. */
  urls: string[];
  /** Whether it tells log-probabilities of given tokens; null where that was not found out. */
  canScore: boolean | null;
}

export interface ReplicaView {
  url: string;
  /** `unknown` while this process has not opened the backend. */
  state: 'healthy' | 'down' | 'paused' | 'updating' | 'unknown';
  /** Why it is not healthy, as a sentence. */
  reason: string | null;
  inFlight: number;
  tokensInFlight: number;
  weightVersion: string | null;
  errors: number;
  lastError: string | null;
  figures: ServerFigures | null;
  /** Whether a key is stored for this address alone; never the key. */
  hasOwnKey: boolean;
}

export interface WeightUpdateView {
  id: string;
  version: string;
  /** Grows by one with each update of a backend. */
  number: number;
  source: { kind: WeightSource; path?: string };
  inFlight: 'drain' | 'interrupt';
  status: 'running' | 'succeeded' | 'failed';
  error: string | null;
  /** Name of who asked for it. */
  requestedBy: string | null;
  startedAtMs: number;
  finishedAtMs: number | null;
}

export interface BackendDetail extends BackendSummary {
  /** What was said when it was added, without the check and without keys. */
  settings: JsonObject;
  replicas: ReplicaView[];
  /** Whether a key is stored for all replicas; never the key. */
  hasKey: boolean;
  /** Whether a key that signs requests for new weights is stored; never the key. */
  hasControlKey: boolean;
  /** Why stored keys cannot be read, as a sentence; null when they can, or when there are none. */
  keyProblem: string | null;
  /** Null while it does not answer and was never checked. */
  capabilities: BackendCapabilities | null;
  /** What was found when it was added or checked last; none when it was added unchecked. */
  checks: BackendCheck[];
  weightVersion: string | null;
  paused: boolean;
  /** Why requests wait now, as a sentence; else null. */
  trouble: string | null;
  /** The newest, newest first. */
  weightUpdates: WeightUpdateView[];
}

/** What one replica told at one time. */
export interface BackendHistoryPoint {
  atMs: number;
  state: 'healthy' | 'down' | 'paused' | 'updating';
  inFlight: number;
  errors: number;
  weightVersion: string | null;
  figures: ServerFigures | null;
}
export interface BackendHistory {
  /** Milliseconds between points; a wider gap is time in which nobody looked. */
  stepMs: number;
  /** Oldest point first. */
  replicas: { url: string; points: BackendHistoryPoint[] }[];
}

export const SCORE_TARGETS = ['ref', 'policy'] as const;
/** Which column of a token sequence scores fill. */
export type ScoreTarget = (typeof SCORE_TARGETS)[number];

export interface ScoreJobView {
  runId: string;
  as: ScoreTarget;
  backendName: string;
  status: 'running' | 'succeeded' | 'failed' | 'cancelled';
  /** Token sequences: all of the run, and those dealt with so far (scored, or counted below). */
  total: number;
  done: number;
  scored: number;
  /** Scored before by the same backend with the same weights. */
  alreadyScored: number;
  /** Left alone: their ids are not those of a model. */
  approximate: number;
  error: string | null;
  startedAtMs: number;
  finishedAtMs: number | null;
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
