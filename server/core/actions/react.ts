/**
 * Reads one sampled turn of ReAct text: `Thought:`, any number of `Action: {"tool": …, "args": …}`, `Answer: {json}`.
 *
 * Works on the bytes that were sampled, not on decoded text: every label and bracket is ASCII, so byte offsets are
 * exact even when a character is split over tokens or the bytes are no valid UTF-8. Only sampled bytes are ever
 * handed in: what a tool or task wrote can look like an action and is none.
 */
import type { ToolCall } from '../events';
import { MAX_JSON_DEPTH, nestsDeeperThan } from '../json-depth';
import type { Json, JsonObject, SegmentKind } from '../vocabulary';

export const STOP_OBSERVATION = 'Observation:';

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

type Label = 'Thought:' | 'Action:' | 'Answer:';
const LABELS: readonly Label[] = ['Thought:', 'Action:', 'Answer:'];
const KIND: Record<Label, SegmentKind> = { 'Thought:': 'thought', 'Action:': 'action', 'Answer:': 'answer' };

/**
 * @param bytes what was sampled, the stop string and end-of-turn token left out
 * @param cut 'length' when the token limit ended the turn, 'stop' when the stop string did, else null
 */
export function parseReact(bytes: Uint8Array, cut: 'length' | 'stop' | null): ParsedTurn {
  const text = toByteString(bytes);
  const parsed: ParsedTurn = { thought: '', calls: [], answer: null, problem: null, segments: [] };
  const thoughts: string[] = [];
  let at = 0;
  while (at < text.length || parsed.segments.length === 0) {
    const label = labelAt(text, at);
    const bodyStart = at + (label?.width ?? 0);
    const { end, open } =
      label && label.name !== 'Thought:'
        ? endOfJson(text, bodyStart)
        : { end: nextLabel(text, bodyStart), open: false };
    const cutHere = open && end >= text.length ? cut : null;
    parsed.segments.push({ kind: label ? KIND[label.name] : 'thought', start: at, end });
    const body = decode(bytes.subarray(bodyStart, end)).trim();
    if (!label || label.name === 'Thought:') {
      if (body) thoughts.push(body);
    } else if (label.name === 'Action:') {
      parsed.calls.push(readCall(parsed.calls.length, body, cutHere));
    } else if (parsed.answer === null) {
      const read = readObject(body, 'Answer', cutHere);
      if (typeof read === 'string') parsed.problem = read;
      else {
        parsed.answer = read;
        parsed.problem = null;
      }
    }
    at = end;
    if (text.length === 0) break;
  }
  parsed.thought = thoughts.join('\n');
  if (parsed.calls.length === 0 && parsed.answer === null && parsed.problem === null) {
    parsed.problem =
      cut === 'length'
        ? 'The turn was cut off by the token limit before an action or an answer was written.'
        : 'The turn holds neither an action nor an answer. Write a line `Action: {"tool": …, "args": …}` or `Answer: {…}`.';
  }
  return parsed;
}

function readCall(index: number, body: string, cut: 'length' | 'stop' | null): ToolCall {
  const broken = (error: string, tool = ''): ToolCall => ({ index, tool, arguments: null, raw: body, error });
  const read = readObject(body, 'Action', cut);
  if (typeof read === 'string') return broken(read);
  const { tool, args } = read;
  if (typeof tool !== 'string') return broken('The action has no "tool": write {"tool": "NAME", "args": {…}}.');
  if (!isObject(args))
    return broken(`The action for ${tool} has no "args" object: write {"tool": "${tool}", "args": {…}}.`, tool);
  return { index, tool, arguments: args, raw: body, error: null };
}

/** The object, or the sentence that says why there is none. */
function readObject(body: string, what: 'Action' | 'Answer', cut: 'length' | 'stop' | null): JsonObject | string {
  try {
    const value = JSON.parse(body) as Json;
    if (nestsDeeperThan(MAX_JSON_DEPTH, value))
      return `${what} nests lists or objects more than ${MAX_JSON_DEPTH} deep.`;
    return isObject(value) ? value : `${what} must be a JSON object in braces.`;
  } catch (error) {
    if (cut === 'length') return `${what} was truncated: the token limit cut its JSON off before it was complete.`;
    if (cut === 'stop') return `${what} was cut off by the stop string inside its JSON.`;
    return `${what} is not valid JSON (${error instanceof Error ? error.message : 'unreadable'}).`;
  }
}

function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A label counts at the start of the turn or of a line, blanks before it allowed. */
function labelAt(text: string, at: number): { name: Label; width: number } | null {
  let start = at;
  while (text[start] === ' ' || text[start] === '\t' || text[start] === '\n' || text[start] === '\r') start++;
  for (const name of LABELS) if (text.startsWith(name, start)) return { name, width: start - at + name.length };
  return null;
}

/** The start of the line with the next label, or the end of the text. A line break belongs to what it ends. */
function nextLabel(text: string, from: number): number {
  for (let at = text.indexOf('\n', from); at !== -1; at = text.indexOf('\n', at + 1)) {
    if (labelAt(text, at + 1)) return at + 1;
  }
  return text.length;
}

/**
 * The end of the JSON value that starts after `from`: past its closing brace and the blanks up to the next label.
 * A brace inside a string does not count. What follows the brace on the same line belongs to it, so that trailing
 * garbage is an error and never a second action.
 */
function endOfJson(text: string, from: number): { end: number; open: boolean } {
  let at = from;
  while (text[at] === ' ' || text[at] === '\t') at++;
  if (text[at] !== '{') return { end: nextLabel(text, from), open: at >= text.length };
  let depth = 0;
  let inString = false;
  for (; at < text.length; at++) {
    const c = text[at];
    if (inString) {
      if (c === '\\') at++;
      else if (c === '"') inString = false;
    } else if (c === '"') inString = true;
    else if (c === '{') depth++;
    else if (c === '}' && --depth === 0) return { end: nextLabel(text, at + 1), open: false };
  }
  // Never closed: a label on a later line still starts something new.
  return { end: nextLabel(text, from), open: true };
}

/** One character a byte. */
function toByteString(bytes: Uint8Array): string {
  let text = '';
  for (let i = 0; i < bytes.length; i += 8192) text += String.fromCharCode(...bytes.subarray(i, i + 8192));
  return text;
}

const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
function decode(bytes: Uint8Array): string {
  return decoder.decode(bytes);
}
