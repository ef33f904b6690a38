/**
 * The environment an agent acts in, with the shape of Gym: reset, step, close.
 * An environment keeps no history of its own that is not in the log: what happened before comes with each action,
 * so that a trajectory can go on in another process.
 */
import type { ActionFormat, ParsedTurn } from '../core/actions/format';
import type { PromptTool } from '../core/actions/prompt';
import type { AuditRecord } from '../core/audit';
import type { ChatMessage, EventData, NewEvent, ToolResult } from '../core/events';
import type { JsonObject } from '../core/vocabulary';

/** Where an environment writes what it is about to do before it does it. */
export interface Journal {
  append(events: NewEvent[], audit: AuditRecord[]): Promise<void>;
  saveOutput(content: Uint8Array): Promise<string>;
}

export interface EnvAction {
  turn: ParsedTurn;
  stepNumber: number;
  /** The steps before this one. */
  history: readonly EventData['step.completed'][];
  /** Calls of this turn that the log already answers, or shows as started, after a crash. */
  resumed: { results: ReadonlyMap<number, ToolResult>; started: ReadonlySet<number> };
  /** True when no further turn is allowed after this one. */
  lastRound: boolean;
  journal: Journal;
  /** Cuts text for the model to the skill's limit; see harness/truncate. */
  truncate: (text: string) => Promise<{ text: string; truncated: ToolResult['truncated'] }>;
  signal: AbortSignal;
}

/** What a whole trajectory earned. */
export interface Outcome {
  reward: number;
  /** Of every scorer, also the step scorers' means. */
  components: Record<string, number>;
  success: boolean | null;
  /** The end's share of `reward`, which belongs to the last step. */
  lastStepBonus: number;
}

export interface EnvStep {
  /** What the model reads next, '' when there is no next turn. */
  observation: string;
  /** This step's reward, the end's share included when it is the last. */
  reward: number;
  /** The task ended by itself: there is an answer. */
  terminated: boolean;
  /** It was ended: by the round limit. */
  truncated: boolean;
  info: {
    results: ToolResult[];
    components: Record<string, number>;
    problem: string | null;
    answer: JsonObject | null;
    /** Set with terminated or truncated. */
    total: Outcome | null;
  };
}

/** The form of the turns to come, which the first messages explain or leave to the chat template. */
export interface TurnForm {
  format: ActionFormat;
  /** The template keeps a system message where it is. */
  systemMessage: boolean;
}

export interface AgentEnv {
  reset(
    seed: number,
    form: TurnForm,
  ): Promise<{ messages: ChatMessage[]; info: { tools: PromptTool[]; sampleId: string } }>;
  step(action: EnvAction): Promise<EnvStep>;
  /** What the steps so far earn when the trajectory ends without an answer. */
  outcome(history: readonly EventData['step.completed'][], signal: AbortSignal): Promise<Outcome>;
  close(): Promise<void>;
}
