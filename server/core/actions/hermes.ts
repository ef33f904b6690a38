/** ChatML with `<tool_call>{"name": …, "arguments": …}</tool_call>`, as Qwen and Hermes models write it. */
import { type ObjectEnd, skipBlanks } from './byte-text';
import { callGrammar } from './grammar';
import type { CallPart } from './parts';
import { type CallRun, splitThinking } from './thinking';
import { type Dialect, toolCallFormat } from './tool-call-format';

const OPEN = '<tool_call>';
const CLOSE = '</tool_call>';

const dialect: Dialect = {
  name: 'hermes',
  endTokens: ['<|im_end|>'],
  stops: [],
  closingStop: CLOSE,
  callEnd: /^[^<]*<\/tool_call>/,
  oneCallPerMessage: false,
  thinkingApart: false,
  split: (text, { startsInThought, stopString }) =>
    splitThinking(text, startsInThought, {
      next: (all, from, objectEnd) => nextCall(all, from, objectEnd, stopString === CLOSE),
    }),
  write: (name, args) => `${OPEN}\n{"name": ${JSON.stringify(name)}, "arguments": ${args}}\n${CLOSE}`,
  constraints: (skill, tools, startsInThought) => {
    const call = `"${OPEN}\\n" call "\\n${CLOSE}"`;
    const root = startsInThought
      ? `thought "</think>\\n\\n" ${call}`
      : `( "<think>\\n" thought "\\n</think>\\n\\n" | say "\\n" )? ${call}`;
    const form = { before: (name: string) => `{"name": ${JSON.stringify(name)}, "arguments": `, after: '}' };
    return { grammar: callGrammar(root, skill, tools, [form]), jsonSchema: null };
  },
};

export const hermes = toolCallFormat(dialect);

function nextCall(text: string, from: number, objectEnd: ObjectEnd, stopCloses: boolean): CallRun | null {
  const start = text.indexOf(OPEN, from);
  if (start === -1) return null;
  let body = skipBlanks(text, start + OPEN.length);
  // A stutter: the mark twice, one call.
  while (text.startsWith(OPEN, body)) body = skipBlanks(text, body + OPEN.length);
  const place = endOfCall(text, body, objectEnd);
  const closed = place.closed || (stopCloses && place.end === text.length);
  const call: CallPart = {
    kind: 'call',
    start,
    end: place.end,
    bodyStart: body,
    bodyEnd: place.bodyEnd,
    name: null,
    unclosed: closed ? null : `The call was not closed: write ${CLOSE} behind its JSON.`,
  };
  return { start, calls: [call] };
}

/** A mark inside a string of the call's JSON does not end it; when the JSON is broken, the next mark does. */
function endOfCall(
  text: string,
  body: number,
  objectEnd: ObjectEnd,
): { bodyEnd: number; end: number; closed: boolean } {
  const close = text[body] === '{' ? objectEnd(body) : -1;
  let bodyEnd = close === -1 ? -1 : skipBlanks(text, close);
  if (bodyEnd === -1 || !text.startsWith(CLOSE, bodyEnd)) {
    const from = close === -1 ? body : close;
    const opening = text.indexOf(OPEN, from);
    const until = opening === -1 ? text.length : opening;
    const closing = text.slice(from, until).indexOf(CLOSE);
    if (closing === -1) return { bodyEnd: until, end: until, closed: false };
    bodyEnd = from + closing;
  }
  let end = bodyEnd + CLOSE.length;
  for (let again = skipBlanks(text, end); text.startsWith(CLOSE, again); again = skipBlanks(text, end))
    end = again + CLOSE.length;
  return { bodyEnd, end, closed: true };
}
