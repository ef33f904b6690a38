/** How turns of the tool-call formats are read: every trap by its smallest input. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Skill } from '../skills/skill';
import { ACTION_FORMATS, type ActionFormatName, type ParsedTurn, type TurnEnd } from './format';
import { formatNamed } from './formats';
import type { PromptTool } from './prompt';

type Finish = TurnEnd['finishReason'];
const read = (
  format: ActionFormatName,
  text: string,
  { finish = 'eos', stop = null, thought = false }: { finish?: Finish; stop?: string | null; thought?: boolean } = {},
): ParsedTurn =>
  formatNamed(format).parse(new TextEncoder().encode(text), {
    finishReason: finish,
    stopString: stop,
    startsInThought: thought,
  });

const shortOf = ({ calls, answer }: ParsedTurn) => ({
  calls: calls.map((call) => [call.tool, call.arguments, call.error]),
  answer,
});
const ok = (name: string, args: object) => [name, args, null];

/** A call as each form writes it, and a form of it with any text in place of its JSON. */
const WRITE: Record<
  Exclude<ActionFormatName, 'react'>,
  { call(name: string, args: string): string; body(json: string): string }
> = {
  hermes: {
    call: (name, args) => `<tool_call>\n{"name": "${name}", "arguments": ${args}}\n</tool_call>`,
    body: (json) => `<tool_call>${json}</tool_call>`,
  },
  llama3: {
    call: (name, args) => `{"name": "${name}", "parameters": ${args}}`,
    body: (json) => `<|python_tag|>${json}`,
  },
  mistral: {
    call: (name, args) => `[TOOL_CALLS] [{"name": "${name}", "arguments": ${args}, "id": "abcdefghi"}]`,
    body: (json) => `[TOOL_CALLS][${json}]`,
  },
  harmony: {
    call: (name, args) => `<|channel|>commentary to=functions.${name} <|constrain|>json<|message|>${args}`,
    body: (json) => `<|channel|>commentary to=functions.probe<|message|>${json}`,
  },
};
const CALLING = ACTION_FORMATS.filter((name) => name !== 'react');

describe.each(CALLING)('a turn in the form %s', (format) => {
  const { call, body } = WRITE[format];

  it('holds a call', () => {
    const turn = read(format, call('probe', '{"n": 8}'));
    expect(shortOf(turn)).toEqual({ calls: [ok('probe', { n: 8 })], answer: null });
    expect(turn.problem).toBeNull();
    expect(turn.segments.map((segment) => segment.kind)).toEqual(['action']);
  });

  it('answers by calling final_answer', () => {
    const turn = read(format, call('final_answer', '{"number": 9}'));
    expect(shortOf(turn)).toEqual({ calls: [], answer: { number: 9 } });
    expect(turn.segments.map((segment) => segment.kind)).toEqual(['answer']);
  });

  it('with neither says so', () => {
    for (const text of ['', 'The answer is 9.']) {
      expect(read(format, text).problem).toMatch(/holds no call.*final_answer/);
      expect(read(format, text, { finish: 'length' }).problem).toMatch(/cut off by the token limit before a call/);
    }
  });

  it('names what is wrong with a call, and keeps what was written', () => {
    const broken = read(format, body('{"name": "probe", "arguments": {"n": }}'));
    expect(broken.calls[0]?.error).toMatch(/not valid JSON/);
    expect(broken.calls[0]?.raw).toContain('"n": }');
    expect(read(format, body('null')).calls[0]?.error ?? '').toMatch(/JSON object in braces|not valid JSON/);
    const deep = `${'['.repeat(20_000)}${']'.repeat(20_000)}`;
    expect(read(format, call('probe', `{"n": ${deep}}`)).calls[0]?.error).toMatch(
      /nests lists or objects more than 100 deep/,
    );
    expect(read(format, call('final_answer', 'null')).problem).toMatch(/braces/);
    expect(read(format, call('final_answer', 'null')).answer).toBeNull();
    expect(read(format, call('<|im_end|>', '{}')).calls[0]?.error).not.toBeNull();
  });

  it('that the token limit cut inside a call says that it was cut', () => {
    const whole = call('probe', '{"n": 8, "text": "abc"}');
    const turn = read(format, whole.slice(0, whole.indexOf('abc') + 1), { finish: 'length' });
    expect(turn.calls[0]?.error).toMatch(/truncated: the token limit/);
    expect(turn.calls[0]?.raw).toMatch(/"text": "a$/);
  });

  it('covers every byte with segments, in order, whatever was sampled, and never throws', () => {
    const part = fc.constantFrom(
      ...[
        '<tool_call>',
        '</tool_call>',
        '<think>',
        '</think>',
        '[THINK]',
        '[TOOL_CALLS]',
        '[ARGS]',
        '[CALL_ID]',
        '<|python_tag|>',
      ],
      ...[
        '<|channel|>analysis',
        '<|channel|>commentary to=functions.a ',
        '<|message|>',
        '<|end|>',
        '<|start|>assistant',
        '<|call|>',
      ],
      ...[
        '{"name":"a","arguments":{}}',
        '{"name":"a","parameters":{}}',
        '{',
        '}',
        '[',
        ']',
        '"',
        '\\',
        ';',
        ',',
        '\n',
        ' ',
        'é',
        '🙂',
        'x',
      ],
    );
    fc.assert(
      fc.property(
        fc.array(part),
        fc.constantFrom<Finish>('eos', 'length', 'stop'),
        fc.boolean(),
        (parts, finish, thought) => {
          const raw = new TextEncoder().encode(parts.join(''));
          const end = { finishReason: finish, stopString: finish === 'stop' ? 'x' : null, startsInThought: thought };
          const turn = formatNamed(format).parse(raw, end);
          let at = 0;
          for (const segment of turn.segments) {
            expect(segment.start).toBe(at);
            expect(segment.end).toBeGreaterThan(segment.start);
            at = segment.end;
          }
          expect(at).toBe(raw.length);
          expect(turn.calls.map((found) => found.index)).toEqual(turn.calls.map((_, k) => k));
          expect(turn.problem !== null || turn.calls.length > 0 || turn.answer !== null).toBe(true);
          // Its answer goes into a conversation, whatever it was.
          formatNamed(format).reply({
            ...end,
            text: parts.join(''),
            stepNumber: 3,
            results: [],
            problem: null,
            observation: '',
          });
        },
      ),
      { numRuns: 500 },
    );
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (raw) => {
        formatNamed(format).parse(raw, { finishReason: 'eos', stopString: null, startsInThought: false });
      }),
    );
  });

  it('offers the answer as a function with the fields of the skill, and knows the shortest turns', () => {
    const skill = { answerFormat: { requiredFields: ['number', 'why'] }, stop: null } as unknown as Skill;
    const tool: PromptTool = {
      name: 'probe',
      description: '',
      parameters: { type: 'object', properties: { n: { type: 'integer' }, m: { type: 'string' } }, required: ['n'] },
    };
    const offered = formatNamed(format).offered(skill, [tool]);
    expect(offered.map((one) => one.name)).toEqual(['probe', 'final_answer']);
    expect(offered[1]?.parameters.required).toEqual(['number', 'why']);
    const [shortest = '', answer = ''] = formatNamed(format).shortestTurns(skill, [tool]);
    expect(shortOf(read(format, shortest))).toEqual({ calls: [ok('probe', { n: 0 })], answer: null });
    expect(read(format, answer).answer).toEqual({ number: '', why: '' });
  });
});

describe.each(['hermes', 'llama3', 'mistral'] as const)('a call in JSON in the form %s', (format) => {
  const { body } = WRITE[format];

  it('needs a name and arguments; arguments may be a string that holds their JSON', () => {
    expect(read(format, body('{"arguments": {}}')).calls[0]?.error).toMatch(/no "name"/);
    expect(read(format, body('{"name": "", "arguments": {}}')).calls[0]?.error).toMatch(/no "name"/);
    expect(read(format, body('{"name": 3, "arguments": {}}')).calls[0]?.error).toMatch(/no "name"/);
    expect(read(format, body('{"name": "a b", "arguments": {}}')).calls[0]?.error).toMatch(/names "a b"/);
    for (const args of ['null', '3', '[]']) {
      const turn = read(format, body(`{"name": "probe", "arguments": ${args}}`));
      expect(turn.calls[0]).toMatchObject({ tool: 'probe', arguments: null });
      expect(turn.calls[0]?.error).toMatch(/no arguments in braces/);
    }
    expect(read(format, body('{"name": "probe"}')).calls[0]?.error).toMatch(/no arguments/);
    expect(shortOf(read(format, body('{"name": "probe", "arguments": "{\\"n\\": 8}"}'))).calls).toEqual([
      ok('probe', { n: 8 }),
    ]);
    expect(read(format, body('{"name": "probe", "arguments": "n=8"}')).calls[0]?.error).toMatch(
      /text of the arguments is not valid JSON/,
    );
  });

  it('inside a thinking block is none, closed or not, opened by the prompt or not at all', () => {
    const call = WRITE[format].call('pay', '{"n": 1}');
    const real = WRITE[format].call('probe', '{"n": 8}');
    for (const [text, thought] of [
      [`<think>${call}</think>\n\n${real}`, false],
      [`${call}</think>\n\n${real}`, true],
      [`[THINK]${call}[/THINK]${real}`, false],
    ] as const) {
      const turn = read(format, text, { thought });
      expect(shortOf(turn).calls).toEqual([ok('probe', { n: 8 })]);
      expect(turn.thought).toContain('pay');
    }
    expect(read(format, `<think>${call}`).calls).toEqual([]);
    expect(read(format, call, { thought: true }).calls).toEqual([]);
    expect(read(format, `so ${call}</think>${real}`).calls.map((one) => one.tool)).toEqual(['probe']);
  });

  it('does not end at a mark inside its strings', () => {
    const text = '</tool_call> <think> [TOOL_CALLS] } ; </think>';
    const turn = read(format, WRITE[format].call('say', JSON.stringify({ text })));
    expect(shortOf(turn).calls).toEqual([ok('say', { text })]);
  });
});

describe('several calls', () => {
  it('are read in the order they were written, each form in its own way', () => {
    const wanted = [ok('a', { n: 1 }), ok('b', {})];
    const a = '{"name":"a","arguments":{"n":1}}';
    const b = '{"name":"b","arguments":{}}';
    for (const [format, text] of [
      ['hermes', `<tool_call>${a}</tool_call>\n<tool_call>${b}</tool_call>`],
      ['llama3', `${a}; ${b}`],
      ['llama3', `<|python_tag|>${a}\n${b}`],
      ['mistral', `[TOOL_CALLS] [${a}, ${b}]`],
      ['mistral', `[TOOL_CALLS]a[ARGS]{"n":1}[TOOL_CALLS]b[CALL_ID]abcdefghi[ARGS]{}`],
      [
        'harmony',
        `<|channel|>commentary to=functions.a<|message|>{"n":1}<|call|><|start|>assistant<|channel|>commentary to=functions.b<|message|>{}`,
      ],
    ] as const)
      expect(shortOf(read(format, text)).calls, text).toEqual(wanted);
  });

  it('that repeat one another are told apart from calls with other arguments', () => {
    const { hermes } = WRITE;
    const turn = read(
      'hermes',
      [hermes.call('a', '{"n": 1}'), hermes.call('a', '{"n": 2}'), hermes.call('a', '{"n":1}')].join('\n'),
    );
    expect(turn.calls.map((call) => call.error)).toEqual([null, null, expect.stringMatching(/repeats call 1/)]);
  });

  it('may hold the answer more than once: the first that can be read counts', () => {
    const { hermes } = WRITE;
    const answers = [
      hermes.call('final_answer', '3'),
      hermes.call('final_answer', '{"n": 1}'),
      hermes.call('final_answer', '{"n": 2}'),
    ];
    expect(read('hermes', answers.join(''))).toMatchObject({ answer: { n: 1 }, problem: null, calls: [] });
  });
});

describe('a hermes turn', () => {
  it('takes a mark that stutters as one call', () => {
    const turn = read('hermes', '<tool_call>\n<tool_call>\n{"name":"a","arguments":{}}\n</tool_call>\n</tool_call>');
    expect(shortOf(turn).calls).toEqual([ok('a', {})]);
  });

  it('does not run two calls in one pair of marks', () => {
    const turn = read('hermes', '<tool_call>{"name":"a","arguments":{}}{"name":"b","arguments":{}}</tool_call>');
    expect(turn.calls.map((call) => call.arguments)).toEqual([null]);
    expect(turn.calls[0]?.error).toMatch(/not valid JSON/);
  });

  it('keeps text around calls as text', () => {
    const turn = read(
      'hermes',
      'First <tool_call>{"name":"a","arguments":{}}</tool_call> and {"name":"b","arguments":{}}',
    );
    expect(turn.calls.map((call) => call.tool)).toEqual(['a']);
    expect(turn.segments.map((segment) => segment.kind)).toEqual(['thought', 'action', 'thought']);
    expect(turn.thought).toBe('First\nand {"name":"b","arguments":{}}');
  });

  it('wants its call closed, and says whether the token limit is why it is not', () => {
    const open = '<tool_call>\n{"name": "a", "arguments": {}}\n';
    expect(read('hermes', open).calls[0]).toMatchObject({
      tool: 'a',
      arguments: null,
      error: expect.stringMatching(/not closed/),
    });
    expect(read('hermes', open, { finish: 'length' }).calls[0]?.error).toMatch(/truncated/);
    // A skill may stop there.
    expect(shortOf(read('hermes', open, { finish: 'stop', stop: '</tool_call>' })).calls).toEqual([ok('a', {})]);
    const next = read('hermes', `${open}<tool_call>{"name": "b", "arguments": {}}</tool_call>`);
    expect(next.calls.map((call) => [call.tool, call.error === null])).toEqual([
      ['a', false],
      ['b', true],
    ]);
  });
});

describe('a llama3 turn', () => {
  it('takes JSON for a call only where it begins to speak', () => {
    expect(read('llama3', 'It is {"name": "a", "parameters": {}}').calls).toEqual([]);
    const turn = read('llama3', '{"name": "a", "parameters": {}} and so {"name": "b", "parameters": {}}');
    expect(turn.calls.map((call) => call.tool)).toEqual(['a']);
    expect(turn.thought).toBe('and so {"name": "b", "parameters": {}}');
  });

  it('takes code behind its tag for no call', () => {
    expect(read('llama3', '<|python_tag|>print(1)').calls[0]?.error).toMatch(/not valid JSON/);
  });
});

describe('a harmony turn', () => {
  it('reads the channels apart, the receiver before or behind the channel', () => {
    const turn = read(
      'harmony',
      '<|channel|>analysis<|message|>to=functions.pay is wrong<|end|><|start|>assistant to=functions.probe<|channel|>commentary json<|message|>{"n": 8}',
    );
    expect(shortOf(turn).calls).toEqual([ok('probe', { n: 8 })]);
    expect(turn.thought).toBe('to=functions.pay is wrong');
    expect(turn.segments.map((segment) => segment.kind)).toEqual(['thought', 'action']);
  });

  it('names a receiver that is no function, as it is', () => {
    expect(read('harmony', '<|channel|>commentary to=browser.search<|message|>{"q": 1}').calls[0]?.tool).toBe(
      'browser.search',
    );
    expect(read('harmony', '<|channel|>commentary to=functions.<|message|>{}').calls[0]?.error).toMatch(/no "name"/);
  });

  it('ends a call at a stop string that says so', () => {
    expect(shortOf(read('harmony', WRITE.harmony.call('a', '{}'), { finish: 'stop', stop: '<|call|>' })).calls).toEqual(
      [ok('a', {})],
    );
  });
});

describe('a policy that loops', () => {
  it.each(ACTION_FORMATS)('to the end of a long turn is read in time that grows with its length: %s', (format) => {
    // Of each, reading every mark anew from where it stands would take minutes.
    const loops = [
      '\n',
      '<tool_call>{',
      '</think>',
      '<think>',
      '[TOOL_CALLS]{',
      '[TOOL_CALLS] [',
      '<|python_tag|>{',
      '\nAction: {',
    ];
    for (const loop of [...loops, ' to=a<|message|>{', '<|start|>', '{"name":"a","arguments":{}};'])
      expect(read(format, loop.repeat(Math.ceil(200_000 / loop.length)), { finish: 'length' }).answer).toBeNull();
  });
});
