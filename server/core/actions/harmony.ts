/**
 * gpt-oss: a turn is a row of messages `<|start|>assistant<|channel|>NAME<|message|>…<|end|>`. The analysis channel is
 * thinking; a message to `functions.NAME` is a call, its body the arguments, and ends the turn with `<|call|>`.
 */
import { type ObjectEnd, objectEnds, skipBlanks } from './byte-text';
import type { Part } from './parts';
import { type Dialect, toolCallFormat } from './tool-call-format';

const MESSAGE = '<|message|>';
const START = '<|start|>';
const ENDS = ['<|end|>', '<|call|>', '<|return|>', START];
const FUNCTIONS = 'functions.';

const dialect: Dialect = {
  name: 'harmony',
  endTokens: ['<|call|>', '<|return|>', '<|end|>'],
  // Not `<|end|>`: it ends a message within the turn.
  stops: ['<|call|>', '<|return|>'],
  closingStop: null,
  callEnd: /^/,
  oneCallPerMessage: true,
  thinkingApart: true,
  split,
  write: (name, args) => `<|channel|>commentary to=${FUNCTIONS}${name} <|constrain|>json${MESSAGE}${args}`,
  // Its marks are control tokens between free text, which no kind of constraint can name.
  constraints: () => ({ grammar: null, jsonSchema: null }),
};

export const harmony = toolCallFormat(dialect);

function split(text: string): Part[] {
  const parts: Part[] = [];
  const objectEnd = objectEnds(text);
  for (let start = 0; start < text.length; ) {
    const message = text.indexOf(MESSAGE, start);
    const headEnd = message === -1 ? text.length : message;
    const head = text.slice(start, headEnd);
    const bodyStart = message === -1 ? headEnd : headEnd + MESSAGE.length;
    const to = /(?:^|[\s>])to=([^\s<]*)/.exec(head)?.[1];
    if (to !== undefined) {
      const { bodyEnd, end } = endOfCall(text, bodyStart, objectEnd);
      const name = to.startsWith(FUNCTIONS) ? to.slice(FUNCTIONS.length) : to;
      parts.push({ kind: 'call', start, end, bodyStart, bodyEnd, name, unclosed: null });
      start = end;
      continue;
    }
    const { bodyEnd, end } = endOfMessage(text, bodyStart);
    // Without a channel and a body mark it is no message but plain text.
    const plain = message === -1 && !head.includes('<|channel|>');
    const kind = head.includes('<|channel|>analysis') ? 'thought' : 'text';
    parts.push({ kind, start, end, bodyStart: plain ? start : bodyStart, bodyEnd });
    start = end;
  }
  return parts;
}

/** A mark inside a string of the arguments does not end them. */
function endOfCall(text: string, bodyStart: number, objectEnd: ObjectEnd): { bodyEnd: number; end: number } {
  const body = skipBlanks(text, bodyStart);
  const close = text[body] === '{' ? objectEnd(body) : -1;
  return endOfMessage(text, close === -1 ? bodyStart : close);
}

function endOfMessage(text: string, from: number): { bodyEnd: number; end: number } {
  let found = { bodyEnd: text.length, end: text.length };
  for (const mark of ENDS) {
    const at = text.indexOf(mark, from);
    // The start of the next message belongs to that one.
    if (at !== -1 && at < found.bodyEnd) found = { bodyEnd: at, end: mark === START ? at : at + mark.length };
  }
  return found;
}
