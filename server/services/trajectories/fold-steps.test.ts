import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { foldSteps, type StoredEvent } from './fold-steps';

const result = {
  callIndex: 0,
  tool: 'probe',
  status: 'success',
  observation: '<img src=x onerror=alert(1)>',
  value: 'higher',
  error: null,
  durationMs: 3,
  sandboxLevel: 'wasm',
  truncated: { keptBytes: 10, totalBytes: 99, outputId: 'out_1' },
};
const action = { index: 0, tool: 'probe', arguments: { n: 8 }, raw: '{"tool":"probe","args":{"n":8}}' };
const turn: StoredEvent[] = [
  { type: 'prompt.rendered', data: { messages: [], tools: [], sequenceIndex: 0, reason: 'start' } },
  { type: 'generation.started', data: { stepNumber: 0, attempt: 1, promptTokens: 5, maxTokens: 50 } },
  {
    type: 'generation.completed',
    data: { stepNumber: 0, text: 'Thought: halve it\nAction: {"tool":"probe","args":{"n":8}}\n', finishReason: 'stop' },
  },
  {
    type: 'permission.decided',
    data: {
      stepNumber: 0,
      callIndex: 0,
      tool: 'probe',
      level: 'full_trust',
      outcome: 'allow',
      rule: 'tool://probe',
      reason: '',
    },
  },
  { type: 'tool.started', data: { stepNumber: 0, callIndex: 0, tool: 'probe', arguments: { n: 8 }, idempotent: true } },
  { type: 'tool.completed', data: { stepNumber: 0, result } },
];
const completed: StoredEvent = {
  type: 'step.completed',
  data: {
    step_number: 0,
    perception: 'Find it.',
    reasoning: 'halve it',
    actions: [action],
    results: [result],
    observation: 'higher',
    reward: 0.5,
    components: { search_progress: 0.5 },
    stateKey: 'x',
    problem: null,
    answer: null,
  },
};

describe('the steps of a log', () => {
  it('reads a turn whose step is not complete in the form that its prompt names', () => {
    const text = '<tool_call>\n{"name": "probe", "arguments": {"n": 8}}\n</tool_call>';
    const actionFormat = { name: 'hermes', startsInThought: false, tools: [], notice: null };
    const log: StoredEvent[] = [
      { type: 'prompt.rendered', data: { messages: [], tools: [], sequenceIndex: 0, reason: 'start', actionFormat } },
      { type: 'prompt.rendered', data: { messages: [], tools: [], sequenceIndex: 1, reason: 'template_broke_prefix' } },
      { type: 'generation.completed', data: { stepNumber: 0, text, finishReason: 'eos', stopString: null } },
    ];
    expect(foldSteps(log, null)[0]?.actions).toMatchObject([{ tool: 'probe', arguments: { n: 8 } }]);
    expect(foldSteps(log.slice(1), null)[0]?.actions).toEqual([]);
  });

  it('gives the last complete step what the end brought to it, whatever else the log holds', () => {
    const step = (step_number: number, reward: unknown): StoredEvent => ({
      type: 'step.completed',
      data: { step_number, reward },
    });
    const end = (lastStepBonus?: unknown): StoredEvent => ({ type: 'task.completed', data: { lastStepBonus } });
    const rewards = (...events: StoredEvent[]) => foldSteps(events, null).map((view) => view.reward);
    expect(rewards(step(0, 0.5), step(1, 0.5), end(0.25))).toEqual([0.5, 0.75]);
    expect(rewards(step(0, 0.5), end())).toEqual([0.5]);
    expect(rewards(step(0, 0.5), end('much'))).toEqual([0.5]);
    expect(rewards(step(0, null), end(0.25))).toEqual([null]);
    expect(rewards(end(0.25))).toEqual([]);
  });

  it('shows a running step as far as it has come', () => {
    const [step] = foldSteps(turn, null);
    expect(step?.thought).toBe('halve it');
    expect(step?.actions[0]).toMatchObject({ tool: 'probe', arguments: { n: 8 } });
    expect(step?.results[0]).toMatchObject({ observation: result.observation, permission: { rule: 'tool://probe' } });
    expect(step?.reward).toBeNull();
  });

  it('shows a completed step with its reward, its advantage and where the whole output lies', () => {
    const [step] = foldSteps([...turn, completed], [1.5]);
    expect(step).toMatchObject({ reward: 0.5, advantage: 1.5, components: { search_progress: 0.5 } });
    expect(step?.results).toHaveLength(1);
    expect(step?.results[0]?.truncated).toEqual({ keptBytes: 10, totalBytes: 99, outputId: 'out_1' });
  });

  it('never throws, whatever an event holds', () => {
    const type = fc.constantFrom(
      'generation.completed',
      'permission.decided',
      'tool.completed',
      'step.completed',
      'odd',
    );
    const field = fc.constantFrom(
      'stepNumber',
      'step_number',
      'text',
      'result',
      'results',
      'actions',
      'callIndex',
      'answer',
    );
    const data = fc.oneof(fc.jsonValue(), fc.dictionary(field, fc.oneof(fc.nat(3), fc.jsonValue())));
    fc.assert(
      fc.property(fc.array(fc.record({ type, data })), fc.option(fc.array(fc.double())), (events, advantages) => {
        for (const step of foldSteps(events, advantages)) expect(Number.isSafeInteger(step.stepNumber)).toBe(true);
      }),
    );
  });
});
