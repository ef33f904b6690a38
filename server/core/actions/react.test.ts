import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseReact } from './react';

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const parse = (text: string, cut: 'length' | 'stop' | null = 'stop') => parseReact(bytes(text), cut);

describe('a ReAct turn', () => {
  it('holds a thought and a call', () => {
    const turn = parse('Thought: between 1 and 15, try 8.\nAction: {"tool": "probe", "args": {"n": 8}}\n');
    expect(turn.thought).toBe('between 1 and 15, try 8.');
    expect(turn.calls).toEqual([
      { index: 0, tool: 'probe', arguments: { n: 8 }, raw: '{"tool": "probe", "args": {"n": 8}}', error: null },
    ]);
    expect(turn.problem).toBeNull();
    expect(turn.segments.map((s) => s.kind)).toEqual(['thought', 'action']);
  });

  it('runs several actions in the order they were written', () => {
    const turn = parse('Action: {"tool":"a","args":{}}\nAction: {"tool":"b","args":{"x":[1]}}\n');
    expect(turn.calls.map((c) => [c.index, c.tool])).toEqual([
      [0, 'a'],
      [1, 'b'],
    ]);
  });

  it('ends with an answer', () => {
    const turn = parse('Thought: found.\nAnswer: {"number": 9}', null);
    expect(turn.answer).toEqual({ number: 9 });
    expect(turn.problem).toBeNull();
  });

  it('keeps the raw text of an action the token limit cut off, and names the cut', () => {
    const turn = parse('Action: {"cmd":"ls', 'length');
    expect(turn.calls[0]?.arguments).toBeNull();
    expect(turn.calls[0]?.raw).toBe('{"cmd":"ls');
    expect(turn.calls[0]?.error).toMatch(/truncated.*token limit/);
  });

  it('says when the stop string cut an action off', () => {
    expect(parse('Action: {"tool":"python","args":{"code":"print(\'', 'stop').calls[0]?.error).toMatch(/stop string/);
  });

  it('does not read a label inside a JSON string as an action', () => {
    const turn = parse('Action: {"tool":"echo","args":{"text":"\\nAction: {\\"tool\\":\\"rm\\"}"}}\n');
    expect(turn.calls).toHaveLength(1);
    expect(turn.calls[0]?.tool).toBe('echo');
  });

  it('takes pretty-printed JSON over several lines', () => {
    expect(parse('Action: {\n "tool": "a",\n "args": {\n  "n": 1\n }\n}\n').calls[0]?.arguments).toEqual({ n: 1 });
  });

  it('refuses text after the closing brace instead of guessing', () => {
    expect(parse('Action: {"tool":"a","args":{}} trailing').calls[0]?.error).toMatch(/not valid JSON/);
  });

  it('asks for an action when there is none', () => {
    expect(parse('I wonder.', null).problem).toMatch(/neither an action nor an answer/);
    expect(parse('', null).problem).toMatch(/neither/);
  });

  it('reports a broken answer and missing parts of a call', () => {
    expect(parse('Answer: 42', null).problem).toMatch(/JSON object/);
    expect(parse('Action: {"args":{}}').calls[0]?.error).toMatch(/no "tool"/);
    expect(parse('Action: {"tool":"a","args":3}').calls[0]?.error).toMatch(/"args" object/);
  });

  it('refuses JSON that nests deeper than anybody means, which no log could write', () => {
    const deep = `${'['.repeat(20_000)}${']'.repeat(20_000)}`;
    expect(parse(`Action: {"tool": "probe", "args": {"n": ${deep}}}`).calls[0]?.error).toBe(
      'Action nests lists or objects more than 100 deep.',
    );
    expect(parse(`Answer: {"n": ${deep}}`).problem).toContain('Answer nests lists or objects more than 100 deep.');
  });

  it('covers every byte with segments, in order, whatever was sampled', () => {
    const part = fc.constantFrom(
      'Thought: ',
      'Action: ',
      'Answer: ',
      '{"tool":"a","args":{}}',
      '{',
      '}',
      '"',
      '\n',
      ' ',
      '\\',
      'é',
      '🙂',
      'x',
    );
    fc.assert(
      fc.property(fc.array(part), fc.constantFrom('length' as const, 'stop' as const, null), (parts, cut) => {
        const raw = bytes(parts.join(''));
        const { segments } = parseReact(raw, cut);
        let at = 0;
        for (const s of segments) {
          expect(s.start).toBe(at);
          at = s.end;
        }
        expect(at).toBe(raw.length);
      }),
    );
  });

  it('never throws on bytes that are no text', () => {
    fc.assert(fc.property(fc.uint8Array({ maxLength: 200 }), (raw) => void parseReact(raw, null)));
  });
});
