/** The one way of a tool call, with the real environment and harness around it. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { SCORER_NAMES } from '../core/rewards/registry';
import type { Skill } from '../core/skills/skill';
import { MemoryStore } from '../harness/memory-store';
import type { SandboxPool } from '../sandbox/sandbox';
import { openPool, runsHere } from '../sandbox/testing';
import { ProbeTool } from '../tools/probe';
import { PythonTool } from '../tools/python';
import { answer, call, eventsOf, sure, testEngine, testSkill } from './testing/rollouts';
import { TestTool, TestTools } from './testing/test-tools';

const promptText = (ids: Int32Array): string => new TextDecoder().decode(Uint8Array.from(ids.filter((id) => id < 256)));
const once = (text: string) => testEngine(({ turn }) => (turn === 0 ? text : answer(8)));

describe('a turn of the model', () => {
  it('whose action the token limit cut off is answered with an error that names the truncation', async () => {
    const { one } = testEngine(({ turn }) =>
      turn === 0 ? { text: call('double', { n: 4 }), mostTokens: 20 } : answer(8),
    );
    const { end, session, events } = await one();
    expect(end.status).toBe('completed');
    const [step] = session.state.steps;
    expect(step?.actions[0]).toMatchObject({ arguments: null, raw: '{"tool":"dou' });
    expect(step?.results[0]).toMatchObject({ status: 'error' });
    expect(step?.observation).toMatch(/truncated: the token limit/);
    expect(eventsOf(events, 'generation.completed')[0]?.data.finishReason).toBe('length');
  });

  it('that is always cut off ends the trajectory truncated, not failed', async () => {
    const { one } = testEngine(() => ({ text: call('double', { n: 4 }), mostTokens: 20 }));
    const { end, session } = await one({ skill: testSkill({ maxRounds: 3 }) });
    expect(end).toMatchObject({ status: 'truncated', reason: 'round limit', reward: 0 });
    expect(session.state.steps).toHaveLength(3);
  });

  it('with several actions has one result each, in the order they were written', async () => {
    const action = (n: number) => `Action: {"tool":"double","args":{"n":${n}}}\n`;
    const { one, tools, backend } = once(
      `${action(3)}${action(1)}Action: {"tool":"rm","args":{}}\n${action(2)}Observation:`,
    );
    const { session } = await one();
    expect(tools.double.ran).toEqual([{ n: 3 }, { n: 1 }, { n: 2 }]);
    const [step] = session.state.steps;
    expect(step?.results.map((r) => [r.callIndex, r.tool, r.status])).toEqual([
      [0, 'double', 'success'],
      [1, 'double', 'success'],
      [2, 'rm', 'error'],
      [3, 'double', 'success'],
    ]);
    expect(promptText(sure(backend.requests[1]).promptIds)).toContain(
      'Observation: [1] double: 6\n[2] double: 2\n[3] rm: error: There is no tool "rm".',
    );
  });

  it('that calls an unknown tool is told which there are', async () => {
    const { one } = once(call('shell', { cmd: 'ls' }));
    const { session } = await one();
    expect(session.state.steps[0]?.observation).toBe(
      'error: There is no tool "shell". Available: crash, double, hang, pay, say, tell.',
    );
  });

  it('of a tool that throws while it is looked at fails alone: nothing runs, and the trajectory goes on', async () => {
    const { one, tools } = once(call('double', { n: 1 }));
    tools.double.validate = () => {
      throw new Error('no schema');
    };
    const { session } = await one();
    expect(tools.double.ran).toEqual([]);
    expect(session.state.steps[0]?.observation).toBe('error: double met a fault of its own: no schema');
    expect(session.state.end?.status).not.toBe('failed');
  });

  it('that calls a tool its skill does not name is refused, though the tool exists', async () => {
    const { one, tools } = once(call('pay', { n: 1 }));
    const { session } = await one({ skill: testSkill({ availableTools: ['double'] }) });
    expect(tools.pay.ran).toEqual([]);
    expect(session.state.steps[0]?.observation).toBe('error: There is no tool "pay". Available: double.');
  });

  it('with an argument of the wrong type is told the path and the type, and nothing is coerced', async () => {
    const { one, tools, store } = once(call('double', { n: '5' }));
    const { session } = await one();
    expect(tools.double.ran).toEqual([]);
    expect(session.state.steps[0]?.observation).toBe('error: argument n: expected integer, got string "5"');
    expect(store.audit.map((a) => a.actionType)).toEqual(['tool_execution_error']);
  });

  it('with neither action nor answer is told what is missing', async () => {
    const { one, backend } = once('I wonder.');
    const { session } = await one();
    expect(session.state.steps[0]).toMatchObject({ results: [], answer: null, reward: 0 });
    expect(session.state.steps[0]?.problem).toMatch(/neither an action nor an answer/);
    expect(promptText(sure(backend.requests[1]).promptIds)).toMatch(/user\nObservation: error: .*neither an action/);
  });

  it('with an action and an answer that cannot be read has its result and hears of the answer', async () => {
    const { one, tools } = once('Action: {"tool":"double","args":{"n":4}}\nAnswer: eight');
    const { session } = await one();
    expect(tools.double.ran).toHaveLength(1);
    expect(session.state.steps[0]?.observation).toMatch(/^8\nerror: Answer is not valid JSON/);
    expect(session.state.steps[0]?.problem).toMatch(/^Answer/);
  });

  it('of the last allowed round that ends on a call is answered before the trajectory is truncated', async () => {
    const { one, tools } = testEngine(() => call('double', { n: 4 }));
    const { end, session, events } = await one({ skill: testSkill({ maxRounds: 2 }) });
    expect(end).toMatchObject({ status: 'truncated', reason: 'round limit' });
    expect(tools.double.ran).toHaveLength(2);
    for (const step of session.state.steps) expect(step.results).toHaveLength(step.actions.length);
    expect(eventsOf(events, 'tool.started')).toHaveLength(eventsOf(events, 'tool.completed').length);
    // Nothing reads on after the last turn.
    expect(session.state.steps.at(-1)?.observation).toBe('');
    expect(session.state.sequences[0]?.finish().mask.at(-1)).toBe(1);
  });
});

describe('a tool', () => {
  it('that never comes back ends as a timeout within the limit of the call, and is told to stop', async () => {
    const { one, tools } = once(call('hang', { n: 1 }));
    const seen: string[] = [];
    const { session, end } = await one({
      callLimitMs: 50,
      observe: ({ tool, status }) => seen.push(`${tool} ${status}`),
    });
    expect(end.status).toBe('completed');
    expect(session.state.steps[0]?.results[0]).toMatchObject({ status: 'timeout', sandboxLevel: null });
    expect(session.state.steps[0]?.observation).toMatch(/hang did not finish within 0.05 s and was stopped/);
    expect(tools.stopped).toBe(1);
    expect(seen).toEqual(['hang timeout']);
  });

  it('that throws is an error result, and the trajectory goes on', async () => {
    const { one, store } = once(call('crash', { n: 1 }));
    const { session, end } = await one();
    expect(end.status).toBe('completed');
    expect(session.state.steps[0]?.results[0]).toMatchObject({ status: 'error', error: 'the tool broke' });
    expect(store.audit.map((a) => [a.actionType, a.status])).toEqual([
      ['permission_check', 'allowed'],
      ['tool_execution_start', 'started'],
      ['tool_execution_error', 'error'],
    ]);
  });

  it('finds its permission and its start durable when it begins, and its end is written after', async () => {
    const store = new MemoryStore();
    let before: unknown;
    const look = new TestTool('look', { type: 'object' }, () => {
      const [log] = [...store.sessions.values()];
      before = { events: log?.slice(-2).map((e) => e.type), audit: store.audit.map((a) => a.actionType) };
      return 'seen';
    });
    const { one } = testEngine(({ turn }) => (turn === 0 ? call('look', {}) : answer(8)), {
      memory: store,
      tools: new TestTools([look]),
    });
    await one({ skill: testSkill({ availableTools: ['look'] }) });
    expect(before).toEqual({
      events: ['permission.decided', 'tool.started'],
      audit: ['permission_check', 'tool_execution_start'],
    });
    expect(store.audit.map((a) => [a.actionType, a.resource, a.operation, a.status])).toEqual([
      ['permission_check', 'tool://look', 'execute', 'allowed'],
      ['tool_execution_start', 'tool://look', 'execute', 'started'],
      ['tool_execution_complete', 'tool://look', 'execute', 'success'],
    ]);
  });

  it('that needs a person is not run, and the model and the log are told so', async () => {
    const { one, tools, store } = once(call('pay', { n: 1 }));
    const permissions: Skill['permissions'] = { defaultLevel: 'ask_first', rules: [] };
    const { session, events } = await one({ skill: testSkill({ permissions }) });
    expect(tools.pay.ran).toEqual([]);
    expect(session.state.steps[0]?.results[0]?.status).toBe('permission_denied');
    expect(session.state.steps[0]?.observation).toMatch(/pay needs a person's approval \(ask_first\).*not run/);
    expect(eventsOf(events, 'permission.decided')[0]?.data).toMatchObject({ outcome: 'ask', level: 'ask_first' });
    expect(eventsOf(events, 'tool.started')).toEqual([]);
    expect(store.audit.map((a) => [a.actionType, a.status])).toEqual([
      ['permission_check', 'denied'],
      ['tool_execution_error', 'error'],
    ]);
  });

  it('whose permissions have expired is refused', async () => {
    const { one, tools } = once(call('pay', { n: 1 }));
    const { session } = await one({
      skill: testSkill({ permissions: { defaultLevel: 'full_trust', rules: [], expiresAtMs: 1 } }),
    });
    expect(tools.pay.ran).toEqual([]);
    expect(session.state.steps[0]?.observation).toMatch(/pay is not permitted: Agent permissions have expired/);
  });

  it('that does not exist is counted under one name, whatever the model calls it', async () => {
    const seen: string[] = [];
    await once(call('x'.repeat(50), {})).one({ observe: ({ tool }) => seen.push(tool) });
    expect(seen).toEqual(['unknown']);
  });

  it('cannot fill the log with what it says beside its output', async () => {
    const { one, tools, store } = once(call('tell', { n: 1 }));
    tools.told = 'x'.repeat(100_000);
    const loud = await one();
    expect(loud.session.state.steps[0]?.results[0]?.value).toEqual({ omitted: 'a value of 100002 characters' });

    const crash = new TestTool('scream', { type: 'object' }, () => {
      throw new Error('y'.repeat(5000));
    });
    const angry = testEngine(({ turn }) => (turn === 0 ? call('scream', {}) : answer(8)), {
      tools: new TestTools([crash]),
      memory: store,
    });
    const { session } = await angry.one({ skill: testSkill({ availableTools: ['scream'] }) });
    const [result] = session.state.steps[0]?.results ?? [];
    expect(result?.error).toMatch(/^y{1000}… \(4000 of 5000 characters cut here\)$/);
    expect(JSON.stringify(store.audit).length).toBeLessThan(5000);
  });

  it('whose output is longer than the skill allows is cut with notice, and the whole output is kept', async () => {
    const { one, tools, store } = once(call('tell', { n: 1 }));
    tools.told = `start${'x'.repeat(1000)}end`;
    const { session } = await one({ skill: testSkill({ maxObservationTokens: 100 }) });
    const [result] = session.state.steps[0]?.results ?? [];
    expect(result?.observation).toMatch(/^startx+\n\[908 of 1008 bytes cut here\]\nx+end$/);
    expect(result?.truncated).toMatchObject({ keptBytes: 100, totalBytes: 1008 });
    expect(new TextDecoder().decode(store.outputs.get(sure(result?.truncated).outputId))).toBe(tools.told);
  });
});

describe('the tools of the studio, in real sandboxes', () => {
  let pool: SandboxPool;
  beforeAll(async () => {
    pool = await openPool({ size: 2 });
  });
  afterAll(() => pool.close());

  const registry = () => new TestTools([new ProbeTool(), new PythonTool()]);

  it('answer the tutorial, score its steps, and say which isolation was used', async () => {
    const script = ({ turn }: { turn: number }) =>
      [call('probe', { n: 8 }), call('probe', { n: 12 }), call('probe', { n: 10 }), answer(10)][turn] as string;
    const { one, prompt } = testEngine(script, { tools: registry() });
    expect(SCORER_NAMES).toContain('search_progress');
    const { session, end } = await one({
      sandboxes: pool,
      skill: testSkill({
        availableTools: ['probe'],
        rewardWeights: { tool_accuracy: 0.2, search_progress: 0.4, answer_f1: 0.4 },
      }),
      task: { ...prompt().task, answer: { number: 10 }, metadata: { secret: 10, low: 1, high: 15 } },
    });
    expect(session.state.steps.map((s) => s.observation)).toEqual(['higher', 'lower', 'found', '']);
    expect(end).toMatchObject({ status: 'completed', success: true });
    expect(session.state.steps[0]?.results[0]?.sandboxLevel).toMatch(/process|wasm/);
    // 15 candidates, then 7 (9..15), then 3 (9..11), then found.
    const progress = [1 - 7 / 15, 1 - 3 / 7, 1];
    const mean = progress.reduce((a, b) => a + b) / 3;
    expect(end.reward).toBeCloseTo(0.2 + 0.4 * mean + 0.4, 10);
    expect(session.state.steps[0]?.reward).toBeCloseTo(0.2 + 0.4 * (progress[0] ?? 0), 10);
    expect(session.state.steps.at(-1)?.reward).toBeCloseTo(0.4, 10);
  });

  it('end a program that never ends as a timeout when the call reaches its limit', async (context) => {
    if (!runsHere(pool, 'process', 'python')) context.skip();
    const { one } = testEngine(({ turn }) => (turn === 0 ? call('python', { code: 'while True: pass' }) : answer(8)), {
      tools: registry(),
    });
    const { session } = await one({
      sandboxes: pool,
      callLimitMs: 1500,
      skill: testSkill({ availableTools: ['python'] }),
    });
    expect(session.state.steps[0]?.results[0]?.status).toBe('timeout');
    // The sandbox was given back: the next call finds it.
    expect(pool.stats().every((level) => level.busy === 0 || level.size > level.busy)).toBe(true);
  });
});
