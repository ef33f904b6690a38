/** Turns of the tool-call formats that are not one call and its result, and templates that rewrite what was said. */
import { describe, expect, it } from 'vitest';
import { eventsOf, sure, testEngine } from '../rollout/testing/rollouts';
import { QWEN3_THINKING, QWEN25 } from './testing/chatml-templates';
import { GPT_OSS } from './testing/gpt-oss-template';
import { LLAMA31 } from './testing/llama-template';
import { formatOf, harmonyCall, hermesCall, masked, ofKind, run, skill } from './testing/model-turns';

describe('several calls in a turn', () => {
  it('have one result each, in the order they were written', async () => {
    const { go, tools } = run(QWEN25, ({ turn }) =>
      turn === 0
        ? `${hermesCall('double', { n: 1 })}\n${hermesCall('nothing', {})}\n${hermesCall('say', { text: 'hi' })}`
        : hermesCall('final_answer', { number: 8 }),
    );
    const { session, end } = await go();
    expect(end.status).toBe('completed');
    expect(tools.say.ran).toEqual([{ text: 'hi' }]);
    expect(session.state.steps[0]?.results.map((r) => [r.callIndex, r.status])).toEqual([
      [0, 'success'],
      [1, 'error'],
      [2, 'success'],
    ]);
    const [shown = ''] = masked(session).split('⟧')[1]?.split('⟦') ?? [];
    const results = [...shown.matchAll(/<tool_response>\n([\s\S]*?)\n<\/tool_response>/g)].map((found) => found[1]);
    expect(results).toHaveLength(3);
    expect(results[0]).toBe('2');
    expect(results[1]).toContain('There is no tool "nothing"');
    expect(results[2]).toBe('hi');
  });

  it('are told one by one to a template that takes one call a message', async () => {
    const llama = (name: string, args: object) => JSON.stringify({ name, parameters: args });
    const { go } = run(LLAMA31, ({ turn }) =>
      turn === 0
        ? `${llama('double', { n: 1 })}; ${llama('double', { n: 2 })}`
        : turn === 1
          ? llama('double', { n: 3 })
          : llama('final_answer', { number: 8 }),
    );
    const { session, end } = await go();
    expect(end.status).toBe('completed');
    expect(session.state.sequences).toHaveLength(1);
    expect(ofKind(session, 'observation')).toBe('246');
    expect(session.state.messages.slice(2, 6).map((message) => [message.role, message.content])).toEqual([
      ['assistant', ''],
      ['tool', '2'],
      ['assistant', ''],
      ['tool', '4'],
    ]);
  });

  it('beside an answer are run first; then the answer ends it', async () => {
    const { go, tools } = run(
      QWEN25,
      () => `${hermesCall('final_answer', { number: 8 })}\n${hermesCall('pay', { n: 1 })}`,
    );
    const { session, end } = await go();
    expect(end).toMatchObject({ status: 'completed', answer: { number: 8 } });
    expect(tools.pay.ran).toEqual([{ n: 1 }]);
    expect(session.state.steps).toHaveLength(1);
  });

  it('that are one call written twice are run once', async () => {
    const { go, tools } = run(QWEN25, ({ turn }) =>
      turn === 0
        ? `${hermesCall('pay', { n: 1 })}\n${hermesCall('pay', { n: 1 })}`
        : hermesCall('final_answer', { number: 8 }),
    );
    const { session } = await go();
    expect(tools.pay.ran).toEqual([{ n: 1 }]);
    expect(session.state.steps[0]?.results.map((result) => result.status)).toEqual(['success', 'error']);
  });
});

describe('a turn whose prompt opened the thinking', () => {
  it('makes no call before it ends the thinking', async () => {
    const text = `Hm. ${hermesCall('pay', { n: 1 })}`;
    const { go, tools } = run(QWEN3_THINKING, ({ turn }) =>
      turn === 0 ? { text, mostTokens: text.length } : `Now.\n</think>\n\n${hermesCall('final_answer', { number: 8 })}`,
    );
    const { session, end, events } = await go();
    expect(formatOf(events)?.startsInThought).toBe(true);
    expect(end).toMatchObject({ status: 'completed', answer: { number: 8 } });
    expect(tools.pay.ran).toEqual([]);
    expect(session.state.steps[0]?.problem).toContain('token limit');
  });
});

describe('an answer that cannot be read', () => {
  it('is answered like a call, with what is wrong', async () => {
    const { go } = run(QWEN25, ({ turn }) =>
      turn === 0
        ? `${hermesCall('double', { n: 4 })}\n<tool_call>\n{"name": "final_answer", "arguments": 8}\n</tool_call>`
        : hermesCall('final_answer', { number: 8 }),
    );
    const { session, end } = await go();
    expect(end).toMatchObject({ status: 'completed', answer: { number: 8 } });
    expect(masked(session)).toContain(
      '<tool_response>\n8\n</tool_response>\n<tool_response>\nerror: The call has no arguments in braces',
    );
  });
});

describe('a closing token of another name', () => {
  for (const [name, chat, text, sampled, next] of [
    [
      '<|eom_id|> of Llama',
      LLAMA31,
      '{"name":"double","parameters":{"n":4}}',
      '<|eom_id|>',
      '<|start_header_id|>ipython',
    ],
    [
      '<|python_tag|> and <|eom_id|>',
      LLAMA31,
      '<|python_tag|>{"name":"double","parameters":{"n":4}}',
      '<|eom_id|>',
      '<|start_header_id|>ipython',
    ],
    [
      '<|return|> behind a final message of gpt-oss',
      GPT_OSS,
      '<|channel|>final<|message|>I wonder.',
      '<|return|>',
      '<|start|>user',
    ],
  ] as const)
    it(`stays as sampled and is not written again: ${name}`, async () => {
      const { go } = run(chat, ({ turn }) =>
        turn === 0
          ? { text, endToken: sampled }
          : chat === LLAMA31
            ? '{"name":"final_answer","parameters":{"number":8}}'
            : { text: harmonyCall('final_answer', { number: 8 }), endToken: '<|call|>' },
      );
      const { session, end } = await go();
      expect(end.status).toBe('completed');
      expect(session.state.sequences).toHaveLength(1);
      expect(masked(session).startsWith(`⟦${text}${sampled}⟧${next}`)).toBe(true);
    });

  it('may be what the engine stops at as a string', async () => {
    // An engine to which only <|eot_id|> ends a turn.
    const chat = { ...LLAMA31, ends: ['<|eot_id|>'] };
    const { go } = run(chat, ({ turn }) =>
      turn === 0
        ? { text: '{"name":"double","parameters":{"n":4}}<|eom_id|>more' }
        : '{"name":"final_answer","parameters":{"number":8}}',
    );
    const { session, end, events } = await go();
    expect(end.status).toBe('completed');
    expect(eventsOf(events, 'generation.completed')[0]?.data.stopString).toBe('<|eom_id|>');
    expect(masked(session)).toContain('<|eom_id|>⟧<|start_header_id|>ipython');
  });
});

describe('a trajectory that was let go', () => {
  it('goes on in the form and with the functions that its log names', async () => {
    const first = run(QWEN25, ({ turn }) =>
      turn === 0 ? hermesCall('double', { n: 4 }) : { text: hermesCall('say', { text: 'lost' }), delayMs: 60_000 },
    );
    const running = first.go();
    while (first.backend.requests.length < 2) await new Promise((done) => setTimeout(done, 5));
    await first.engine.close();
    await expect(running).rejects.toThrow('closing');
    const [sessionId] = [...first.store.sessions.keys()];
    const second = testEngine(
      {
        chat: QWEN25,
        script: ({ prompt }) => hermesCall('final_answer', { number: prompt.includes('\n8\n') ? 8 : 0 }),
      },
      { memory: first.store },
    );
    // A studio of today may know other functions; the prompt that was sampled from does not change for it.
    const prompt = second.prompt({ skill: { ...skill, availableTools: ['say'] } });
    const session = await second.engine.run({
      ...prompt,
      trajectoryId: 'trj_test',
      sessionId: sure(sessionId),
      runId: null,
      seed: 1,
      fresh: false,
      makeEnv: () => prompt.makeEnv(0),
      deadlineMs: 60_000,
    });
    expect(session.state.end).toMatchObject({ status: 'completed', answer: { number: 8 } });
    expect(session.state.format.tools.map((tool) => tool.name)).toContain('double');
    expect(session.state.sequences).toHaveLength(1);
    expect(masked(session)).toMatch(/^⟦<tool_call>[^⟧]*⟧[^⟦]*⟦<tool_call>[^⟧]*⟧$/);
  });
});
