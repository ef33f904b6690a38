/** Which form a trajectory has, what its turns are held to, and the least room they need. */
import { describe, expect, it } from 'vitest';
import { eventsOf, sure } from '../rollout/testing/rollouts';
import { PLAIN_CHATML, QWEN3_CODER, QWEN25 } from './testing/chatml-templates';
import { GPT_OSS } from './testing/gpt-oss-template';
import { LLAMA31 } from './testing/llama-template';
import { MISTRAL_SMALL, MISTRAL_V3 } from './testing/mistral-templates';
import type { ModelChat } from './testing/model-chat';
import { formatOf, hermesCall, run, skill } from './testing/model-turns';

describe('the choice of a form', () => {
  it('falls back to ReAct with the reason where the template knows no functions, or writes calls in a form unknown here', async () => {
    for (const [chat, reason] of [
      [PLAIN_CHATML, /does not tell the model which functions there are/],
      [QWEN3_CODER, /in no form that is known here/],
    ] as const) {
      const { go } = run(chat, () => 'Thought: done\nAnswer: {"number": 8}');
      const { end, events } = await go();
      expect(end.status).toBe('completed');
      expect(formatOf(events)?.name).toBe('react');
      expect(formatOf(events)?.notice).toMatch(reason);
    }
  });

  it('refuses a skill that names a form which the template does not write, in a sentence that names both', async () => {
    const { go } = run(QWEN25, () => '');
    const { end, events } = await go({ actionFormat: 'llama3' });
    expect(end.status).toBe('failed');
    expect(end.reason).toMatch(/llama3.*scripted writes tool calls in the form hermes/);
    expect(eventsOf(events, 'generation.started')).toHaveLength(0);
  });

  it('puts the instructions into the task where the template would drop a system message', async () => {
    const call = '[TOOL_CALLS] [{"name": "final_answer", "arguments": {"number": 8}}]';
    const rolesOf = async (chat: ModelChat) => {
      const { events } = await run(chat, () => call).go();
      return sure(eventsOf(events, 'prompt.rendered')[0]).data.messages.map((message) => message.role);
    };
    expect(await rolesOf(MISTRAL_V3)).toEqual(['user']);
    expect(await rolesOf(MISTRAL_SMALL)).toEqual(['system', 'user']);
  });
});

describe('a turn that cannot fit', () => {
  it('is not begun: the trajectory ends truncated before it, with the numbers', async () => {
    const { go, backend } = run(QWEN25, () => hermesCall('double', { n: 4 }));
    const shortest = '<tool_call>\n{"name": "pay", "arguments": {"n":0}}\n</tool_call>'.length + 1;
    const { end } = await go({ sampling: { ...skill.sampling, maxTokensPerTurn: shortest - 1 } });
    expect(end).toMatchObject({ status: 'truncated', answer: null });
    expect(end.reason).toContain(`${shortest - 1} tokens`);
    expect(end.reason).toContain(`takes ${shortest}`);
    expect(backend.requests).toHaveLength(0);
    const enough = run(QWEN25, () => hermesCall('pay', { n: 0 }));
    await enough.go({ sampling: { ...skill.sampling, maxTokensPerTurn: shortest }, maxRounds: 1 });
    expect(enough.backend.requests).toHaveLength(1);
  });

  it('counts what the context has left', async () => {
    const probe = await run(QWEN25, () => hermesCall('final_answer', { number: 8 })).go();
    const promptTokens = sure(eventsOf(probe.events, 'generation.started')[0]).data.promptTokens;
    const { go, backend } = run(QWEN25, () => '', { contextLength: promptTokens + 20 });
    const { end } = await go();
    expect(end).toMatchObject({ status: 'truncated' });
    expect(end.reason).toMatch(/is full: 20 are left/);
    expect(backend.requests).toHaveLength(0);
  });
});

describe('constrained turns', () => {
  const llama = '{"name":"final_answer","parameters":{"number":8}}';
  const one = { constrainActions: true, availableTools: ['double'] };

  it('are asked for as a grammar where the backend has one, else as JSON Schema where a turn is JSON', async () => {
    const grammar = run(LLAMA31, () => llama, { constraints: ['json_schema', 'grammar'] });
    await grammar.go(one);
    expect(sure(grammar.backend.requests[0]).options.constraint?.kind).toBe('grammar');
    const schema = run(LLAMA31, () => llama, { constraints: ['json_schema'] });
    await schema.go(one);
    expect(sure(schema.backend.requests[0]).options.constraint).toMatchObject({
      kind: 'json_schema',
      schema: {
        anyOf: [{ properties: { name: { enum: ['double'] } } }, { properties: { name: { enum: ['final_answer'] } } }],
      },
    });
  });

  it('of another backend end the trajectory before anything is sampled', async () => {
    for (const [chat, constraints, reason] of [
      [
        QWEN25,
        ['json_schema', 'regex'],
        /scripted cannot constrain turns in the form hermes: that takes grammar, and it offers json_schema, regex/,
      ],
      [GPT_OSS, ['grammar'], /form harmony cannot be constrained/],
    ] as const) {
      const { go, backend } = run(chat, () => '', { constraints: [...constraints] });
      const { end } = await go(one);
      expect(end.status).toBe('failed');
      expect(end.reason).toMatch(reason);
      expect(backend.requests).toHaveLength(0);
    }
  });
});
