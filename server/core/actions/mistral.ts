/**
 * Mistral models: `[TOOL_CALLS][{"name": …, "arguments": …}, …]`, and the newer `[TOOL_CALLS]name[ARGS]{…}` with, in some,
 * `[CALL_ID]id` between.
 */
import { type ObjectEnd, skipBlanks } from './byte-text';
import { callGrammar } from './grammar';
import type { CallPart } from './parts';
import { type CallRun, splitThinking } from './thinking';
import { type Dialect, toolCallFormat } from './tool-call-format';

const MARK = '[TOOL_CALLS]';
const NAMED = /([^[\s{]*)\s*(?:\[CALL_ID\][^[\s{]*\s*)?(?:\[ARGS\]\s*)?/y;

const dialect: Dialect = {
  name: 'mistral',
  endTokens: ['</s>'],
  stops: [],
  closingStop: null,
  callEnd: /^(?:[^\][<{]*\}\s*\])?/,
  oneCallPerMessage: false,
  thinkingApart: false,
  split: (text, { startsInThought }) =>
    splitThinking(text, startsInThought, {
      next: (all, from, objectEnd) => {
        const start = all.indexOf(MARK, from);
        return start === -1 ? null : { start, calls: callsAt(all, start, objectEnd) };
      },
    }),
  write: (name, args) => `${MARK}${name}[ARGS]${args}`,
  constraints: (skill, tools, startsInThought) => {
    const root = `${startsInThought ? 'thought "</think>\\n\\n" ' : ''}"${MARK}" call`;
    const listed = { before: (name: string) => ` [{"name": ${JSON.stringify(name)}, "arguments": `, after: '}]' };
    const named = { before: (name: string) => `${name}[ARGS]`, after: '' };
    return { grammar: callGrammar(root, skill, tools, [listed, named]), jsonSchema: null };
  },
};

export const mistral = toolCallFormat(dialect);

function callsAt(text: string, start: number, objectEnd: ObjectEnd): CallRun['calls'] {
  let from = skipBlanks(text, start + MARK.length);
  // A stutter: the mark twice, one call.
  while (text.startsWith(MARK, from)) from = skipBlanks(text, from + MARK.length);
  const listed = text[from] === '{' || (text[from] === '[' && !/^\[(ARGS|CALL_ID)\]/.test(text.slice(from, from + 9)));
  return listed ? listedCalls(text, start, from, objectEnd) : [namedCall(text, start, from, objectEnd)];
}

function listedCalls(text: string, start: number, from: number, objectEnd: ObjectEnd): CallPart[] {
  const calls: CallPart[] = [];
  let at = start;
  let body = text[from] === '[' ? skipBlanks(text, from + 1) : from;
  do {
    const close = text[body] === '{' ? objectEnd(body) : -1;
    const end = close === -1 ? nextMark(text, body) : close;
    calls.push({ kind: 'call', start: at, end, bodyStart: body, bodyEnd: end, name: null, unclosed: null });
    at = end;
    body = skipBlanks(text, end);
    if (text[body] === ',') body = skipBlanks(text, body + 1);
  } while (text[body] === '{');
  const last = calls.at(-1);
  if (last && text[body] === ']') last.end = body + 1;
  return calls;
}

function namedCall(text: string, start: number, from: number, objectEnd: ObjectEnd): CallPart {
  NAMED.lastIndex = from;
  const [head = '', name = ''] = NAMED.exec(text) ?? [];
  const body = from + head.length;
  const close = text[body] === '{' ? objectEnd(body) : -1;
  const end = close === -1 ? nextMark(text, body) : close;
  return { kind: 'call', start, end, bodyStart: body, bodyEnd: end, name, unclosed: null };
}

function nextMark(text: string, from: number): number {
  const next = text.indexOf(MARK, from);
  return next === -1 ? text.length : next;
}
