/**
 * The session's events: what happened, in order, never changed. Everything a page shows of a trajectory is
 * folded from these. `tokens` travels beside the data in binary (see core/tokens/wire).
 */
import type { TrajectoryFormat } from './actions/format';
import type { TokenChunk, WeightSpan } from './tokens/chunk';
import type {
  FinalTrajectoryStatus,
  Json,
  JsonObject,
  LogprobKind,
  PermissionLevel,
  SandboxLevel,
  ToolStatus,
} from './vocabulary';

/** A message as chat templates read it; the keys are theirs. */
export interface ChatMessage {
  role: 'system' | 'user' | 'assistant' | 'tool';
  content: string;
  /** Thinking of an assistant turn, for templates that want it beside the content. */
  thinking?: string;
  /** Calls of an assistant turn; absent where there are none. */
  tool_calls?: ChatToolCall[];
  /** Of a tool message: the function and the call it answers. */
  name?: string;
  tool_call_id?: string;
}

export interface ChatToolCall {
  /** Nine letters and digits. */
  id: string;
  type: 'function';
  /** Arguments as an object: servers that want them as a string of JSON are handed one where they are spoken to. */
  function: { name: string; arguments: JsonObject };
}

/** A tool call as parsed from the model's text. `arguments` is null when the text did not parse. */
export interface ToolCall {
  /** Position in its turn, from 0. */
  index: number;
  tool: string;
  arguments: JsonObject | null;
  /** The raw text the call was read from. */
  raw: string;
  /** Why it could not be read, as a sentence for the model; null when it could. */
  error: string | null;
}

export interface ToolResult {
  callIndex: number;
  tool: string;
  status: ToolStatus;
  /** What the model sees, already formatted and truncated. */
  observation: string;
  /** Structured value, where the tool gives one. */
  value: Json;
  /** A person's sentence when status is not success. */
  error: string | null;
  durationMs: number;
  /** The level that was really used; null where no sandbox was needed. */
  sandboxLevel: SandboxLevel | null;
  /** Where the whole output lies when the observation was truncated. */
  truncated: { keptBytes: number; totalBytes: number; outputId: string } | null;
}

export interface EventData {
  'prompt.rendered': {
    messages: ChatMessage[];
    tools: string[];
    sequenceIndex: number;
    reason: 'start' | 'template_broke_prefix' | 'compacted';
    /** With `start`: how the trajectory's turns are read. Absent in older logs, which are ReAct. */
    actionFormat?: TrajectoryFormat;
  };
  'generation.started': { stepNumber: number; attempt: number; promptTokens: number; maxTokens: number };
  'generation.completed': {
    stepNumber: number;
    text: string;
    finishReason: 'stop' | 'length' | 'eos';
    /** The server gave no token ids: the tokens are bytes of its text. Absent: it did. */
    approximate?: true;
    /** The last sampled token is the end-of-turn token; absent in older logs. */
    endTokenSampled?: boolean;
    /** The stop string that ended it, when one did. */
    stopString: string | null;
    weightVersion: string;
    logprobKind: LogprobKind;
    durationMs: number;
    queuedMs: number;
  };
  'permission.decided': {
    stepNumber: number;
    callIndex: number;
    tool: string;
    level: PermissionLevel;
    outcome: 'allow' | 'ask' | 'refuse';
    rule: string;
    reason: string;
  };
  'tool.started': { stepNumber: number; callIndex: number; tool: string; arguments: JsonObject; idempotent: boolean };
  'tool.completed': { stepNumber: number; result: ToolResult };
  'step.completed': {
    step_number: number;
    /** What the policy saw before the step: the observation of the step before, or the task. */
    perception: string;
    /** The thought. */
    reasoning: string;
    actions: ToolCall[];
    results: ToolResult[];
    /** Text appended to the context for the next turn ('' when the trajectory ended). */
    observation: string;
    reward: number;
    components: Record<string, number>;
    /** SHA-256 of the observation before the step. */
    stateKey: string;
    /** Set when the turn could not be parsed, or had neither call nor answer. */
    problem: string | null;
    answer: JsonObject | null;
  };
  'state.changed': { changes: JsonObject };
  'task.completed': {
    status: FinalTrajectoryStatus;
    reward: number | null;
    /** The end's share of the last step's reward, where that step was complete before the end was known (a full context). */
    lastStepBonus?: number;
    components: Record<string, number>;
    answer: JsonObject | null;
    /** Whether the answer is right in every respect that is scored; null where nothing says so. */
    success: boolean | null;
    /** Why it ended, in words: 'answer', 'round limit', 'context full', or the error's sentence. */
    reason: string;
    error: { message: string; stack: string | null } | null;
  };
}

export type EventType = keyof EventData;

/** An event as it is handed to the log. */
export type NewEvent = {
  [T in EventType]: { type: T; data: EventData[T]; tokens?: TokenChunk; weights?: WeightSpan[] };
}[EventType];

/** An event as it lies in the log. `seq` counts from 0 within its session. */
export type SessionEvent = NewEvent & { seq: number; atMs: number };
