/** What the models' own tool-call formats have in common; a dialect says how its calls are written. */
import type { ChatMessage } from '../events';
import type { Skill } from '../skills/skill';
import type { JsonObject } from '../vocabulary';
import { toByteString } from './byte-text';
import { finalAnswerTool } from './final-answer';
import type { ActionFormat, ActionFormatName, AnsweredTurn, Reply, TurnConstraints, TurnEnd } from './format';
import { type ParsedCallTurn, type Part, readParts } from './parts';
import { callInstructions, type PromptTool, taskMessages } from './prompt';
import { shortestValue } from './shortest';

export interface Dialect {
  name: Exclude<ActionFormatName, 'react'>;
  endTokens: readonly string[];
  /** End tokens that an engine may not know as such, so it is told to stop there. */
  stops: readonly string[];
  /** A stop string that ends a call as well: its text is then missing from the turn, and nothing else is. */
  closingStop: string | null;
  callEnd: RegExp;
  /** Where the templates take one call a message. */
  oneCallPerMessage: boolean;
  /** The template wants thinking beside the content, not in it. */
  thinkingApart: boolean;
  /** Covers the turn, in order. `text` has a character a byte. */
  split(text: string, end: TurnEnd): Part[];
  /** A whole call. */
  write(name: string, args: string): string;
  constraints(skill: Skill, tools: readonly PromptTool[], startsInThought: boolean): TurnConstraints;
}

export function toolCallFormat(dialect: Dialect): ActionFormat {
  const parse = (bytes: Uint8Array, end: TurnEnd): ParsedCallTurn => {
    const { stopString } = end;
    const closed =
      stopString !== null && (stopString === dialect.closingStop || dialect.endTokens.includes(stopString));
    return readParts(bytes, dialect.split(toByteString(bytes), end), end, closed);
  };
  return {
    name: dialect.name,
    endTokens: dialect.endTokens,
    callEnd: dialect.callEnd,
    stopStrings: (skill) => [...new Set([...(skill.stop ?? []), ...dialect.stops])],
    offered: (skill, tools) => [...tools, finalAnswerTool(skill)],
    openingMessages: (skill, tools, task, systemMessage) =>
      taskMessages(callInstructions(skill, tools), task, systemMessage),
    parse,
    constraints: dialect.constraints,
    shortestTurns: (skill, tools) =>
      [...tools, finalAnswerTool(skill)].map((tool) =>
        dialect.write(tool.name, JSON.stringify(shortestValue(tool.parameters))),
      ),
    inTurn: () => null,
    reply: (turn) => replyTo(dialect, parse(new TextEncoder().encode(turn.text), turn), turn),
  };
}

function replyTo(dialect: Dialect, parsed: ParsedCallTurn, turn: AnsweredTurn): Reply {
  if (parsed.written.length === 0) {
    const messages: ChatMessage[] = [spoken(dialect, parsed, turn), { role: 'user', content: turn.observation }];
    return { messages, closing: messages };
  }
  const calls = parsed.written.map((call, k) => ({
    id: callId(turn.stepNumber, k),
    type: 'function' as const,
    function: { name: call.name, arguments: call.arguments },
  }));
  const results = parsed.written.map(
    ({ name, callIndex }, k): ChatMessage => ({
      role: 'tool',
      content:
        turn.results.find((result) => result.callIndex === callIndex)?.observation ??
        `error: ${turn.problem ?? 'no result'}`,
      name,
      tool_call_id: callId(turn.stepNumber, k),
    }),
  );
  const said = spoken(dialect, parsed, turn);
  if (!dialect.oneCallPerMessage || calls.length === 1) {
    const messages = [{ ...said, tool_calls: calls }, ...results];
    return { messages, closing: messages };
  }
  const silent: ChatMessage = { role: 'assistant', content: '' };
  return {
    messages: calls.flatMap((call, k) => [
      { ...(k === 0 ? said : silent), tool_calls: [call] },
      results[k] as ChatMessage,
    ]),
    closing: [{ ...said, tool_calls: calls.slice(-1) }, ...results],
  };
}

/** The turn without its calls. */
function spoken(dialect: Dialect, parsed: ParsedCallTurn, end: TurnEnd): ChatMessage {
  const calls = parsed.written.length > 0;
  if (dialect.thinkingApart) {
    const { thinking, content } = parsed;
    // Beside calls such a template takes one of the two.
    if (calls) return withThinking([thinking, content].filter(Boolean).join('\n'), '');
    return withThinking(thinking, content);
  }
  const content = (end.startsInThought ? '<think>\n' : '') + parsed.uncalled;
  return { role: 'assistant', content: calls ? content.trim() : content };
}

function withThinking(thinking: string, content: string): ChatMessage {
  return { role: 'assistant', content, ...(thinking ? { thinking } : {}) };
}

/** Nine letters and digits: what the strictest template takes. */
function callId(stepNumber: number, position: number): string {
  return `c${stepNumber.toString(36).padStart(5, '0')}${position.toString(36).padStart(3, '0')}`;
}

/** Turns that are one JSON object, as JSON Schema. */
export function callSchema(skill: Skill, tools: readonly PromptTool[], argumentsKey: string): JsonObject {
  return {
    anyOf: [...tools, finalAnswerTool(skill)].map(({ name, parameters }) => ({
      type: 'object',
      properties: { name: { enum: [name] }, [argumentsKey]: parameters },
      required: ['name', argumentsKey],
      additionalProperties: false,
    })),
  };
}
