/** A turn of a tool-call format cut into parts, and what they say together. */
import type { ToolCall } from '../events';
import type { JsonObject } from '../vocabulary';
import { decodeBytes } from './byte-text';
import { FINAL_ANSWER } from './final-answer';
import type { ParsedTurn, TurnEnd } from './format';
import { type Cut, isObject, readObject } from './read-object';

/** Half-open ranges of the turn; `body` is what it says without its marks. */
interface PartPlace {
  start: number;
  end: number;
  bodyStart: number;
  bodyEnd: number;
}

export interface CallPart extends PartPlace {
  kind: 'call';
  /** Named outside of its JSON, which then is the arguments alone; else null. */
  name: string | null;
  /** The mark that ends it is missing, as a sentence; null when all is well. */
  unclosed: string | null;
}

/** Together they cover the turn, in order. */
export type Part = (PartPlace & { kind: 'thought' | 'text' }) | CallPart;

/** A call as it was written, the final answer's included. */
export interface WrittenCall {
  name: string;
  arguments: JsonObject;
  /** Position among the calls to be answered; null for a final answer. */
  callIndex: number | null;
}

export interface ParsedCallTurn extends ParsedTurn {
  /** What was said in thinking blocks, and outside of them and of calls. */
  thinking: string;
  content: string;
  /** The text of all that is no call, marks included. */
  uncalled: string;
  written: WrittenCall[];
}

/** What a function may be called; anything else cannot be put into a template. */
const NAME = /^[\w.:-]{1,128}$/;
/** The name that a call without a usable one has in the conversation. */
const UNREADABLE = 'unreadable_call';

export function readParts(
  bytes: Uint8Array,
  parts: readonly Part[],
  end: TurnEnd,
  closesCalls: boolean,
): ParsedCallTurn {
  const turn: ParsedCallTurn = {
    thought: '',
    calls: [],
    answer: null,
    problem: null,
    segments: [],
    thinking: '',
    content: '',
    uncalled: '',
    written: [],
  };
  const said: Record<'thought' | 'text', string[]> = { thought: [], text: [] };
  const thoughts: string[] = [];
  /** Where each call was written first. */
  const first = new Map<string, number>();
  const cutOf = (part: Part): Cut =>
    part.end < bytes.length || end.finishReason === 'eos' || closesCalls ? null : end.finishReason;
  for (const part of parts) {
    const body = decodeBytes(bytes.subarray(part.bodyStart, part.bodyEnd)).trim();
    if (part.kind !== 'call') {
      turn.segments.push({ kind: 'thought', start: part.start, end: part.end });
      turn.uncalled += decodeBytes(bytes.subarray(part.start, part.end));
      if (!body) continue;
      said[part.kind].push(body);
      thoughts.push(body);
      continue;
    }
    const read = readCall(part, body, cutOf(part));
    const isAnswer = read.tool === FINAL_ANSWER;
    turn.segments.push({ kind: isAnswer ? 'answer' : 'action', start: part.start, end: part.end });
    const name = NAME.test(read.tool) ? read.tool : UNREADABLE;
    const args = read.arguments ?? { unreadable: body };
    turn.written.push({ name, arguments: args, callIndex: isAnswer ? null : turn.calls.length });
    if (!isAnswer)
      turn.calls.push({ ...orRepeated(read, first, turn.calls.length), index: turn.calls.length, raw: body });
    else if (turn.answer === null) {
      turn.answer = read.error === null ? read.arguments : null;
      turn.problem = read.error;
    }
  }
  turn.thought = thoughts.join('\n');
  turn.thinking = said.thought.join('\n');
  turn.content = said.text.join('\n');
  if (turn.written.length === 0)
    turn.problem =
      end.finishReason === 'length'
        ? 'The turn was cut off by the token limit before a call was written.'
        : `The turn holds no call. Call a function; call ${FINAL_ANSWER} to give the answer.`;
  return turn;
}

type ReadCall = Pick<ToolCall, 'tool' | 'arguments' | 'error'>;

function readCall(part: CallPart, body: string, cut: Cut): ReadCall {
  const broken = (error: string, tool = part.name ?? ''): ReadCall => ({ tool, arguments: null, error });
  const read = readObject(body, 'The call', cut);
  if (typeof read === 'string') return broken(read);
  const name = part.name ?? read.name;
  if (typeof name !== 'string' || name === '')
    return broken('The call has no "name": write the name of the function and its arguments.');
  if (!NAME.test(name))
    return broken(`The call names ${JSON.stringify(name.slice(0, 80))}, which no function is called.`);
  if (part.unclosed !== null)
    return broken(cut === 'length' ? `The call was truncated: ${CUT_BEFORE_END}` : part.unclosed, name);
  const args = part.name !== null ? read : argumentsOf(read);
  if (typeof args === 'string') return broken(args, name);
  return { tool: name, arguments: args, error: null };
}

const CUT_BEFORE_END = 'the token limit cut it off before its end.';

/** The arguments' object; some models write them as a string that holds the JSON, some call them parameters. */
function argumentsOf(call: JsonObject): JsonObject | string {
  const given = Object.hasOwn(call, 'arguments') ? call.arguments : call.parameters;
  if (typeof given === 'string') return readObject(given, 'The text of the arguments', null);
  if (isObject(given)) return given;
  return 'The call has no arguments in braces: write {} where the function takes none.';
}

/** A model that stutters writes a call twice: the second time is answered and not run. */
function orRepeated(call: ReadCall, first: Map<string, number>, index: number): ReadCall {
  if (call.error !== null) return call;
  const key = JSON.stringify([call.tool, call.arguments]);
  const same = first.get(key);
  if (same === undefined) {
    first.set(key, index);
    return call;
  }
  return { ...call, error: `The call repeats call ${same + 1} of this turn word for word and was not run again.` };
}
