/**
 * Reads one sampled turn of ReAct text: `Thought:`, any number of `Action: {"tool": …, "args": …}`, `Answer: {json}`.
 *
 * Works on the bytes that were sampled, not on decoded text: every label and bracket is ASCII, so byte offsets are
 * exact even when a character is split over tokens or the bytes are no valid UTF-8. Only sampled bytes are ever
 * handed in: what a tool or task wrote can look like an action and is none.
 */
import type { ToolCall } from '../events';
import type { SegmentKind } from '../vocabulary';
import { decodeBytes, type ObjectEnd, objectEnds, skipBlanks, toByteString } from './byte-text';
import type { ParsedTurn } from './format';
import { type Cut, isObject, readObject } from './read-object';

export const STOP_OBSERVATION = 'Observation:';

type Label = 'Thought:' | 'Action:' | 'Answer:';
const LABELS: readonly Label[] = ['Thought:', 'Action:', 'Answer:'];
const KIND: Record<Label, SegmentKind> = { 'Thought:': 'thought', 'Action:': 'action', 'Answer:': 'answer' };

/**
 * @param bytes what was sampled, the stop string and end-of-turn token left out
 * @param cut 'length' when the token limit ended the turn, 'stop' when the stop string did, else null
 */
export function parseReact(bytes: Uint8Array, cut: Cut): ParsedTurn {
  const text = toByteString(bytes);
  const parsed: ParsedTurn = { thought: '', calls: [], answer: null, problem: null, segments: [] };
  const thoughts: string[] = [];
  const objectEnd = objectEnds(text);
  let at = 0;
  while (at < text.length || parsed.segments.length === 0) {
    const label = labelAt(text, at);
    const bodyStart = at + (label?.width ?? 0);
    const { end, open } =
      label && label.name !== 'Thought:'
        ? endOfJson(text, bodyStart, objectEnd)
        : { end: nextLabel(text, bodyStart), open: false };
    const cutHere = open && end >= text.length ? cut : null;
    parsed.segments.push({ kind: label ? KIND[label.name] : 'thought', start: at, end });
    const body = decodeBytes(bytes.subarray(bodyStart, end)).trim();
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

function readCall(index: number, body: string, cut: Cut): ToolCall {
  const broken = (error: string, tool = ''): ToolCall => ({ index, tool, arguments: null, raw: body, error });
  const read = readObject(body, 'Action', cut);
  if (typeof read === 'string') return broken(read);
  const { tool, args } = read;
  if (typeof tool !== 'string') return broken('The action has no "tool": write {"tool": "NAME", "args": {…}}.');
  if (!isObject(args))
    return broken(`The action for ${tool} has no "args" object: write {"tool": "${tool}", "args": {…}}.`, tool);
  return { index, tool, arguments: args, raw: body, error: null };
}

/** A label counts at the start of the turn or of a line, blanks before it allowed. */
function labelAt(text: string, at: number): { name: Label; width: number } | null {
  const start = skipBlanks(text, at);
  for (const name of LABELS) if (text.startsWith(name, start)) return { name, width: start - at + name.length };
  return null;
}

/** The start of the line with the next label, or the end of the text. A line break belongs to what it ends. */
function nextLabel(text: string, from: number): number {
  for (let at = text.indexOf('\n', from); at !== -1; ) {
    if (labelAt(text, at + 1)) return at + 1;
    // Every line break among these blanks leads to the same place, which is no label.
    at = text.indexOf('\n', skipBlanks(text, at + 1));
  }
  return text.length;
}

/**
 * The end of the JSON value that starts after `from`: past its closing brace and the blanks up to the next label.
 * A brace inside a string does not count. What follows the brace on the same line belongs to it, so that trailing
 * garbage is an error and never a second action.
 */
function endOfJson(text: string, from: number, objectEnd: ObjectEnd): { end: number; open: boolean } {
  let at = from;
  while (text[at] === ' ' || text[at] === '\t') at++;
  if (text[at] !== '{') return { end: nextLabel(text, from), open: at >= text.length };
  const close = objectEnd(at);
  if (close !== -1) return { end: nextLabel(text, close), open: false };
  // Never closed: a label on a later line still starts something new.
  return { end: nextLabel(text, from), open: true };
}
