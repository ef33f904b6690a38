import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { turnGrammar } from '../../core/actions/grammar';
import type { PromptTool } from '../../core/actions/prompt';
import type { Skill } from '../../core/skills/skill';
import type { Constraint } from '../backend';
import { checkConstraint } from './constraint-check';
import { parseGbnf } from './gbnf';
import { matchGrammar } from './grammar-match';
import { readPartialJson } from './partial-json';

const encode = (text: string) => new TextEncoder().encode(text);
const whole = (constraint: Constraint, text: string) => checkConstraint(constraint, encode(text), false);
const cut = (constraint: Constraint, text: string) => checkConstraint(constraint, encode(text), true);

/** Every beginning of a text that fits is fine when it was cut; the whole of it also when it was not. */
function expectFits(constraint: Constraint, text: string): void {
  expect(whole(constraint, text)).toBe('fits');
  for (let end = 0; end <= text.length; end++)
    expect([cut(constraint, text.slice(0, end)), end]).toEqual(['fits', end]);
  expect(whole(constraint, text.slice(0, -1))).toBe('broken');
}

describe('a choice', () => {
  const constraint: Constraint = { kind: 'choice', choices: ['zqx', 'zebra'] };
  it('is one of its texts', () => {
    expectFits(constraint, 'zqx');
    for (const text of ['zqxx', 'Sure!', 'qx'])
      expect([cut(constraint, text), whole(constraint, text)]).toEqual(['broken', 'broken']);
  });
});

describe('a regular expression', () => {
  it('holds from end to end, and its beginnings when cut', () => {
    expectFits({ kind: 'regex', pattern: '(?:up|down) \\d{2,3}[^a-z]+x' }, 'down 123 🌊x');
    expectFits({ kind: 'regex', pattern: '^yes\\.$' }, 'yes.');
    expect(cut({ kind: 'regex', pattern: 'a\\B' }, 'a')).toBe('broken');
    const constraint: Constraint = { kind: 'regex', pattern: '\\d+' };
    for (const text of ['a', '12a', ' 12', '12\n']) expect(cut(constraint, text)).toBe('broken');
  });
  it('says nothing of a pattern that RE2 does not have', () => {
    expect(whole({ kind: 'regex', pattern: '(a)\\1' }, 'b')).toBe('unknown');
  });
});

describe('a JSON Schema', () => {
  const schema = {
    type: 'object',
    properties: {
      move: { enum: ['up', 'down'] },
      far: { type: 'boolean' },
      path: { type: 'array', items: { type: 'number' }, minItems: 2 },
    },
    required: ['move', 'far', 'path'],
    additionalProperties: false,
  };
  const constraint: Constraint = { kind: 'json_schema', schema };
  it('holds for the whole, and for what can still become one', () => {
    expectFits(constraint, '{"move": "up", "far": true, "path": [1.5, -2e3]}');
    for (const text of [
      'Sure! Here',
      '[1',
      '{"move": "left"',
      '{"far": 1,',
      '{"other": 1, ',
      '{"move": "up"} and',
      '{move',
    ])
      expect([text, cut(constraint, text)]).toEqual([text, 'broken']);
  });
  it('waits for the rest where a branch may still fit', () => {
    const branches: Constraint = { kind: 'json_schema', schema: { anyOf: [schema, { type: 'null' }] } };
    expectFits(branches, '{"move": "up", "far": true, "path": [1, 2]}');
    expect(cut(branches, 'nul')).toBe('fits');
    expect(whole(branches, 'false')).toBe('broken');
  });
  it('says nothing of a schema that is none', () => {
    expect(whole({ kind: 'json_schema', schema: { type: 'thing' } }, '{}')).toBe('unknown');
  });
  it('reads any JSON that is cut anywhere', () => {
    fc.assert(
      fc.property(fc.json(), fc.nat(), (text, at) => {
        const state = readPartialJson(text.slice(0, at % (text.length + 1))).state;
        expect(state).not.toBe('broken');
      }),
    );
    expect(readPartialJson('['.repeat(100_000)).state).toBe('broken');
  });
});

describe('a grammar', () => {
  const tools: PromptTool[] = [
    {
      name: 'find',
      description: '',
      parameters: {
        type: 'object',
        properties: { query: { type: 'string' }, pages: { type: 'array', items: { type: 'integer' } } },
        required: ['query', 'pages'],
      },
    },
  ];
  const grammar = turnGrammar({ answerFormat: { requiredFields: ['city'] } } as Skill, tools);
  const turn: Constraint = { kind: 'grammar', grammar };

  it('of a turn holds for calls and answers', () => {
    expectFits(
      turn,
      'Thought: look\nAction: {"tool": "find", "args": {"query": "a \\"b\\"", "pages": [1, -20]}}\nObservation:',
    );
    expectFits(turn, 'Thought: 京都 it is\nAnswer: {"city": "京都"}');
    for (const text of [
      'Hello',
      'Thought: a\nAction: {"tool": "other"',
      `Thought: ${'x'.repeat(161)}`,
      'Thought: a\nAnswer: {"city": 01',
    ])
      expect([text, cut(turn, text)]).toEqual([text, 'broken']);
  });

  it('of a verdict holds for scores', () => {
    const verdict: Constraint = {
      kind: 'grammar',
      grammar: 'root ::= "{\\"score\\": " ( "0." [0-9] [0-9]? | "1.0" | "0" | "1" ) "}"\n',
    };
    expectFits(verdict, '{"score": 0.75}');
    expect(cut(verdict, '{"score": 2')).toBe('broken');
  });

  it('is followed through rules that call each other, comments, escapes and counts', () => {
    const nested = parseGbnf(`# brackets
      root ::= pair{2,} # at least two
      pair ::= "(" ( pair | [\\x41-\\u0043] | . "!" )? ")" |
        "\\U0001F30A"`);
    for (const [text, match] of [
      ['()()', 'whole'],
      ['(((B)))🌊', 'whole'],
      ['(((B))', 'prefix'],
      ['(é!)()()', 'whole'],
      ['()', 'prefix'],
      ['(D)', 'none'],
    ])
      expect([text, matchGrammar(nested, text as string)]).toEqual([text, match]);
  });

  it('says nothing of one that is left recursive, broken or lacks a rule', () => {
    for (const text of ['root ::= root "a"', 'root ::= (', 'root ::= other', 'start ::= "a"', ''])
      expect(whole({ kind: 'grammar', grammar: text }, 'b')).toBe('unknown');
  });

  it('takes time in proportion to the text', () => {
    const long = parseGbnf('root ::= ( [a-z]* | [a-y]* "." | ("a" | "b")* ){0,50}');
    expect(matchGrammar(long, 'ab'.repeat(1_000))).toBe('whole');
  });

  it('counts characters, not bytes, and leaves out one that was cut', () => {
    const wave: Constraint = { kind: 'grammar', grammar: 'root ::= [🌀-🌿]{2} "b"' };
    const bytes = encode('🌊🌊');
    for (let end = 0; end <= bytes.length; end++)
      expect(checkConstraint(wave, bytes.subarray(0, end), true)).toBe('fits');
    expect(cut(wave, '🌊🌊🌊')).toBe('broken');
  });
});
