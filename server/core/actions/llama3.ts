/**
 * `{"name": …, "parameters": …}` as Llama 3 models write it: where the turn begins to speak, or behind `<|python_tag|>`;
 * several are parted by a semicolon. JSON anywhere else is text.
 */
import { type ObjectEnd, skipBlanks } from './byte-text';
import { callGrammar } from './grammar';
import type { CallPart } from './parts';
import { type CallRun, splitThinking } from './thinking';
import { callSchema, type Dialect, toolCallFormat } from './tool-call-format';

const TAG = '<|python_tag|>';
const END_TOKENS = ['<|eot_id|>', '<|eom_id|>'];

const dialect: Dialect = {
  name: 'llama3',
  endTokens: END_TOKENS,
  stops: END_TOKENS,
  closingStop: null,
  callEnd: /^[^<]*\}/,
  oneCallPerMessage: true,
  thinkingApart: false,
  split: (text, { startsInThought }) =>
    splitThinking(text, startsInThought, {
      next: (all, from, objectEnd) => {
        const tag = all.indexOf(TAG, from);
        return tag === -1 ? null : { start: tag, calls: callsAt(all, tag, tag + TAG.length, objectEnd) };
      },
      first: (all, from, objectEnd) =>
        all[from] === '{' ? { start: from, calls: callsAt(all, from, from, objectEnd) } : null,
    }),
  write: (name, args) => `{"name": ${JSON.stringify(name)}, "parameters": ${args}}`,
  constraints: (skill, tools, startsInThought) => {
    const root = startsInThought ? 'thought "</think>\\n\\n" call' : 'call';
    const form = { before: (name: string) => `{"name": ${JSON.stringify(name)}, "parameters": `, after: '}' };
    return {
      grammar: callGrammar(root, skill, tools, [form]),
      jsonSchema: startsInThought ? null : callSchema(skill, tools, 'parameters'),
    };
  },
};

export const llama3 = toolCallFormat(dialect);

/** @param start of the run, its mark included; @param from where the first JSON begins */
function callsAt(text: string, start: number, from: number, objectEnd: ObjectEnd): CallRun['calls'] {
  const calls: CallPart[] = [];
  let at = start;
  let body = skipBlanks(text, from);
  do {
    const close = text[body] === '{' ? objectEnd(body) : -1;
    const end = close === -1 ? text.length : close;
    calls.push({ kind: 'call', start: at, end, bodyStart: body, bodyEnd: end, name: null, unclosed: null });
    at = end;
    body = skipBlanks(text, end);
    if (text[body] === ';') body = skipBlanks(text, body + 1);
    if (text.startsWith(TAG, body)) body = skipBlanks(text, body + TAG.length);
  } while (text[body] === '{');
  return calls;
}
