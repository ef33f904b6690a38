/**
 * The form of a trajectory's turns: how sampled bytes are read, what the model is told first, what a turn may be held to,
 * and how the results of its calls go into the conversation. One implementation a form; see formats.ts.
 */
import type { ChatMessage, ToolCall, ToolResult } from '../events';
import type { Skill, Task } from '../skills/skill';
import type { JsonObject, SegmentKind } from '../vocabulary';
import type { PromptTool } from './prompt';

export const ACTION_FORMATS = ['react', 'hermes', 'llama3', 'mistral', 'harmony'] as const;
export type ActionFormatName = (typeof ACTION_FORMATS)[number];

/** What a trajectory's turns are read by, decided at its start and kept in its log. */
export interface TrajectoryFormat {
  name: ActionFormatName;
  /** The prompt ends inside a thinking block that the template opened. */
  startsInThought: boolean;
  /** What the trajectory may call. */
  tools: PromptTool[];
  /** Why `auto` came to ReAct, as a sentence; else null. */
  notice: string | null;
}

/** Of a log that names no form. */
export const REACT_TRAJECTORY: TrajectoryFormat = { name: 'react', startsInThought: false, tools: [], notice: null };

/** Half-open byte ranges that cover the turn from its first byte to its last. */
export interface Segment {
  kind: SegmentKind;
  start: number;
  end: number;
}

export interface ParsedTurn {
  thought: string;
  /** In the order they were written; one that could not be read has arguments null and says why in `error`. */
  calls: ToolCall[];
  answer: JsonObject | null;
  /** Why the turn has neither call nor answer, or why its answer could not be read. Null when all is well. */
  problem: string | null;
  segments: Segment[];
}

/** How a turn came to its end. */
export interface TurnEnd {
  finishReason: 'stop' | 'length' | 'eos';
  stopString: string | null;
  startsInThought: boolean;
}

/** A turn whose calls are answered. */
export interface AnsweredTurn extends TurnEnd {
  /** Of the whole assistant turn, the stop string and end-of-turn token left out. */
  text: string;
  stepNumber: number;
  results: readonly ToolResult[];
  problem: string | null;
  /** All of it as one text. */
  observation: string;
}

/** What a turn adds to the conversation. */
export interface Reply {
  /** The turn and the messages behind it, as templates take them. */
  messages: ChatMessage[];
  /**
   * The same with the results all behind the turn's end, to find what a template writes between a turn and the next:
   * differs from `messages` only where a template takes one call a message.
   */
  closing: ChatMessage[];
}

/** What a turn can be held to; null where the form cannot be said that way. */
export interface TurnConstraints {
  /** GBNF. */
  grammar: string | null;
  /** Only where a turn is JSON and nothing else. */
  jsonSchema: JsonObject | null;
}

export interface ActionFormat {
  readonly name: ActionFormatName;
  /** Texts that end a turn, each the other's equal: a template may write one where the model sampled another. */
  readonly endTokens: readonly string[];
  /** What a template writes behind a call's arguments that still belongs to the call. */
  readonly callEnd: RegExp;
  stopStrings(skill: Skill): string[];
  /** What the template is told; none where the prompt's text tells it. */
  offered(skill: Skill, tools: readonly PromptTool[]): PromptTool[];
  /** @param systemMessage false where the template does not keep one: its text then opens the task's message */
  openingMessages(skill: Skill, tools: readonly PromptTool[], task: Task, systemMessage: boolean): ChatMessage[];
  /** @param bytes what was sampled, the stop string and end-of-turn token left out */
  parse(bytes: Uint8Array, end: TurnEnd): ParsedTurn;
  /** Throws Invalid for a tool's schema that cannot be expressed. */
  constraints(skill: Skill, tools: readonly PromptTool[], startsInThought: boolean): TurnConstraints;
  /** The shortest turns that are of use, one a tool and the answer, without their end-of-turn token. */
  shortestTurns(skill: Skill, tools: readonly PromptTool[]): string[];
  /** What is written behind a turn that goes on, or null when messages follow it. */
  inTurn(stopString: string | null, observation: string): string | null;
  reply(turn: AnsweredTurn): Reply;
}
