import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ToolCall, ToolResult } from '../events';
import { parseSkill } from '../skills/parse';
import type { Skill, Task } from '../skills/skill';
import { type Json, type JsonObject, TOOL_STATUSES } from '../vocabulary';
import { SCORER_NAMES } from './registry';
import { effectiveWeights, scoreEnd, scoreStep, scoringProblem } from './score';
import { textOf, wordF1, wordsOf } from './words';

function skillWith(weights: Record<string, number>, more = ''): Skill {
  const yaml = `skill_name: s
available_tools: [probe, lookup]
max_rounds: 5
answer_format: {required_fields: [ec, name]}
reward_weights: ${JSON.stringify(weights)}
${more}`;
  return parseSkill(yaml, { tools: ['probe', 'lookup'], scorers: SCORER_NAMES });
}

const task = (answer: Json, metadata: JsonObject = {}): Task => ({
  taskId: 'k1',
  prompt: 'p',
  answer,
  metadata,
  skill: null,
});

function call(index: number, tool = 'lookup', args: JsonObject | null = {}, error: string | null = null): ToolCall {
  return { index, tool, arguments: args, raw: '', error };
}
function result(
  callIndex: number,
  status: ToolResult['status'] = 'success',
  value: Json = null,
  tool = 'lookup',
): ToolResult {
  return {
    callIndex,
    tool,
    status,
    observation: typeof value === 'string' ? value : '',
    value,
    error: null,
    durationMs: 1,
    sandboxLevel: null,
    truncated: null,
  };
}

const endOf = (skill: Skill, reference: Json, answer: JsonObject | null) =>
  scoreEnd({ skill, task: task(reference), answer, steps: [] });

describe('words', () => {
  it('are lower case, with . and - kept inside and dropped at the ends', () => {
    expect(wordsOf('EC 1.1.1.-, Alpha-Keto... (x)')).toEqual(['ec', '1.1.1', 'alpha-keto', 'x']);
    expect(wordsOf('0.5 é e\u0301')).toEqual(['0.5', 'é', 'é']);
    expect(wordsOf('日本 GPU4')).toEqual(['日', '本', 'gpu4']);
  });

  it('overlap as a multiset', () => {
    expect(wordF1('a a b', 'a b b')).toBeCloseTo(2 / 3, 12);
    expect(wordF1('a a a a', 'a')).toBeCloseTo(2 / 5, 12);
    expect(wordF1('D-Glucose', 'd-glucose')).toBe(1);
    expect(wordF1('glucose', '')).toBe(0);
    expect(wordF1('+', '+')).toBe(1);
    expect(wordF1('+', '-')).toBe(0);
  });

  it('give an F1 that is symmetric, within 0..1, and 1 for equal texts', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), fc.string({ unit: 'binary' }), (a, b) => {
        expect(wordF1(a, b)).toBe(wordF1(b, a));
        expect(wordF1(a, b)).toBeGreaterThanOrEqual(0);
        expect(wordF1(a, b)).toBeLessThanOrEqual(1);
        expect(wordF1(a, a)).toBe(1);
      }),
    );
  });

  it('come from numbers, lists and objects too', () => {
    expect([textOf(4), textOf(true), textOf(['a', 2]), textOf({ x: ['a'], y: 'b' }), textOf(null), textOf([])]).toEqual(
      ['4', 'true', 'a 2', 'a b', null, ''],
    );
  });
});

describe('answer scorers', () => {
  const f1 = skillWith({ answer_f1: 1 }, 'audit_rules: [{field: ec, pattern: "^\\\\d+(\\\\.\\\\d+){3}$"}]');

  it('take the mean of word F1 over the required fields', () => {
    expect(
      endOf(f1, { ec: '1.1.1.1', name: 'alcohol dehydrogenase' }, { ec: '1.1.1.1', name: 'dehydrogenase', extra: 'x' })
        .reward,
    ).toBeCloseTo((1 + 2 / 3) / 2, 12);
  });

  it('give 0 to a missing field and to one that breaks an audit rule', () => {
    const reference = { ec: '1.1.1.1', name: 'a' };
    expect(endOf(f1, reference, { name: 'a' }).reward).toBe(0.5);
    expect(endOf(f1, reference, { ec: null, name: 'a' }).reward).toBe(0.5);
    expect(endOf(f1, { ec: 'EC 1.1.1.1', name: 'a' }, { ec: 'EC 1.1.1.1', name: 'a' }).reward).toBe(0.5);
    expect(endOf(f1, reference, { ec: ['1.1.1.1', 'EC'], name: 'a' }).reward).toBe(0.5);
    expect(endOf(f1, { ec: ['1.1.1.1', '2.1.1.1'], name: 'a' }, { ec: ['2.1.1.1', '1.1.1.1'], name: 'a' }).reward).toBe(
      1,
    );
    expect(endOf(f1, reference, null)).toMatchObject({ reward: 0, success: false });
    expect(endOf(f1, reference, JSON.parse('{"__proto__":{"name":"a"},"ec":"1.1.1.1"}') as JsonObject).reward).toBe(
      0.5,
    );
  });

  it('compare exactly, as numbers, or by pattern', () => {
    expect(endOf(skillWith({ exact: 1 }), { ec: 'A', name: 'b c' }, { ec: 'a', name: ' b c ' }).reward).toBe(0.5);
    const numeric = skillWith({ numeric: 1 });
    expect(endOf(numeric, { ec: 1000, name: '0' }, { ec: '1e3', name: 1e-7 })).toMatchObject({
      reward: 1,
      success: true,
    });
    expect(endOf(numeric, { ec: 1000, name: '0' }, { ec: 1000.1, name: 'zero' }).reward).toBe(0);
    expect(endOf(skillWith({ regex: 1 }), { ec: '^1\\.', name: 'x|y' }, { ec: '1.2', name: 'say y' }).reward).toBe(1);
  });

  it('say which task they cannot score instead of giving 0', () => {
    expect(scoringProblem(f1, task(null))).toBe('Task k1 has no reference answer; the scorer answer_f1 needs it.');
    expect(scoringProblem(f1, task({ ec: '1' }))).toMatch(/without name/);
    expect(scoringProblem(skillWith({ numeric: 1 }), task({ ec: 'one', name: 1 }))).toMatch(/no number \(ec\)/);
    expect(scoringProblem(skillWith({ regex: 1 }), task({ ec: '(', name: 1 }))).toMatch(/no pattern \(ec\)/);
    expect(scoringProblem(f1, task({ ec: '1', name: 'x' }))).toBeNull();
    expect(() => endOf(f1, null, { ec: '1', name: 'x' })).toThrow(/k1 has no reference answer/);
  });
});

describe('tool_accuracy', () => {
  const skill = skillWith({ tool_accuracy: 1 });
  const step = (calls: ToolCall[], results: ToolResult[]) =>
    scoreStep({ skill, task: task(null), calls, results, history: [] });

  it('is the share of a step’s calls that parsed, were allowed and succeeded', () => {
    expect(
      step(
        [call(0), call(1), call(2, 'lookup', null, 'not JSON'), call(3, 'other')],
        [result(0), result(1, 'error'), result(2), result(3)],
      ).reward,
    ).toBe(0.25);
    for (const status of TOOL_STATUSES)
      expect(step([call(0)], [result(0, status)]).reward).toBe(status === 'success' ? 1 : 0);
    expect(step([call(0)], []).reward).toBe(0);
  });

  it('is 0 in a step without a call, which does not pull the mean down', () => {
    const none = step([], []);
    expect(none).toEqual({ reward: 0, components: {} });
    const end = scoreEnd({
      skill,
      task: task(null),
      answer: null,
      steps: [{ components: { tool_accuracy: 1 } }, none],
    });
    expect(end).toMatchObject({ reward: 1, lastStepBonus: 0, success: null });
  });

  it('is 0 for a trajectory without a call', () => {
    expect(scoreEnd({ skill, task: task(null), answer: {}, steps: [{ components: {} }] }).reward).toBe(0);
  });
});

describe('search_progress', () => {
  const skill = skillWith({ search_progress: 1 });
  const game = task(null, { secret: 10, low: 1, high: 16 });
  const probe = (n: Json, hint: string | null, index = 0) => ({
    call: call(index, 'probe', { n }),
    result: result(index, hint === null ? 'error' : 'success', hint, 'probe'),
  });

  function play(...steps: ReturnType<typeof probe>[][]) {
    const history: { actions: ToolCall[]; results: ToolResult[]; components: Record<string, number> }[] = [];
    return steps.map((parts) => {
      const actions = parts.map((p) => p.call);
      const results = parts.map((p) => p.result);
      const { reward, components } = scoreStep({ skill, task: game, calls: actions, results, history });
      history.push({ actions, results, components });
      return reward;
    });
  }

  it('is the share of the interval that a probe rules out', () => {
    expect(play([probe(8, 'higher')], [probe(12, 'lower')], [probe(10, 'found')])).toEqual([0.5, 1 - 3 / 8, 1]);
    expect(play([probe(16, 'lower')])).toEqual([1 - 15 / 16]);
  });

  it('is 0 outside the interval, for a failed call and for another value', () => {
    expect(
      play(
        [probe(8, 'higher')],
        [probe(8, 'higher')],
        [probe(17, 'lower')],
        [probe(9, null)],
        [probe('9', 'higher')],
        [probe(12, 'lower')],
      ),
    ).toEqual([0.5, 0, 0, 0, 0, 1 - 3 / 8]);
  });

  it('is the mean over the calls of a step, each knowing the ones before', () => {
    expect(play([probe(8, 'higher', 0), probe(12, 'lower', 1)])).toEqual([(0.5 + 1 - 3 / 8) / 2]);
  });

  it('names the task whose interval is unknown', () => {
    expect(() =>
      scoreStep({ skill, task: task(null, { low: 1 }), calls: [call(0)], results: [], history: [] }),
    ).toThrow(/Task k1 has no whole numbers metadata.low/);
  });
});

describe('the reward of a trajectory', () => {
  const skill = skillWith({ tool_accuracy: 0.3, answer_f1: 0.4, reasoning_quality: 0.3 });
  const reference = { ec: '1', name: 'x' };
  const steps: { components: Record<string, number> }[] = [
    { components: { tool_accuracy: 1 } },
    { components: { tool_accuracy: 0.5 } },
    { components: {} },
  ];

  it('adds the end’s share to the last step, and takes the mean of the steps', () => {
    const end = scoreEnd({
      skill,
      task: task(reference),
      answer: { ec: '1', name: 'y' },
      steps,
      judge: true,
      reasoningQuality: 0.5,
    });
    expect(end.lastStepBonus).toBeCloseTo(0.4 * 0.5 + 0.3 * 0.5, 12);
    expect(end.reward).toBeCloseTo(0.3 * 0.75 + 0.35, 12);
    expect(end.components).toEqual({ tool_accuracy: 0.75, answer_f1: 0.5, reasoning_quality: 0.5 });
    expect(end.success).toBe(false);
  });

  it('scales the other weights without a judge and says so', () => {
    const { notice, weights } = effectiveWeights(skill, false);
    expect(notice).toBe(
      'reasoning_quality (weight 0.3) is left out: this run has no judge. The other weights are scaled to sum to 1.',
    );
    expect(weights.map(({ scorer, weight }) => [scorer.name, weight])).toEqual([
      ['tool_accuracy', 0.3 / 0.7],
      ['answer_f1', 0.4 / 0.7],
    ]);
    const end = scoreEnd({
      skill,
      task: task(reference),
      answer: reference,
      steps: [{ components: { tool_accuracy: 1 } }],
    });
    expect(end.reward).toBeCloseTo(1, 12);
    expect(end.success).toBe(true);
    const step = scoreStep({ skill, task: task(reference), calls: [call(0)], results: [result(0)], history: [] });
    expect(step.reward).toBeCloseTo(0.3 / 0.7, 12);
    expect(effectiveWeights(skill, true).notice).toBeNull();
  });

  it('refuses a skill that only a judge could score, and a verdict that is none', () => {
    expect(() => effectiveWeights(skillWith({ reasoning_quality: 1 }), false)).toThrow(/needs a judge/);
    for (const reasoningQuality of [undefined, Number.NaN, 1.5])
      expect(() =>
        scoreEnd({ skill, task: task(reference), answer: null, steps, judge: true, reasoningQuality }),
      ).toThrow(/verdict/);
  });

  it('is the sum of the step rewards when there is one step with calls, and stays within 0..1', () => {
    const score = fc.double({ min: 0, max: 1, noNaN: true });
    fc.assert(
      fc.property(score, score, (accuracy, verdict) => {
        const one = [{ components: { tool_accuracy: accuracy } }];
        const end = scoreEnd({
          skill,
          task: task(reference),
          answer: reference,
          steps: one,
          judge: true,
          reasoningQuality: verdict,
        });
        expect(end.reward).toBeCloseTo(0.3 * accuracy + end.lastStepBonus, 12);
        expect(end.reward).toBeLessThanOrEqual(1 + 1e-12);
      }),
    );
  });
});
