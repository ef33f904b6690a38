/** Event before effect: whatever the moment a studio dies, the next one goes on from the log. */
import { describe, expect, it } from 'vitest';
import type { SessionEvent } from '../core/events';
import { MemoryStore } from '../harness/memory-store';
import type { SessionStore } from '../harness/session';
import { answer, call, eventsOf, sure, testEngine, testSkill } from './testing/rollouts';
import { TestTools } from './testing/test-tools';

const script = ({ turn }: { turn: number }): string =>
  [
    `Thought: two at once\nAction: {"tool":"double","args":{"n":1}}\nAction: {"tool":"pay","args":{"n":1}}\nObservation:`,
    'I wonder.',
    call('pay', { n: 2 }),
    call('shell', {}),
    answer(8),
  ][turn] as string;

const job = (test: ReturnType<typeof testEngine>, fresh: boolean) => {
  const prompt = test.prompt();
  return test.engine.run({
    ...prompt,
    skill: testSkill(),
    makeEnv: () => prompt.makeEnv(0),
    trajectoryId: 'trj_test',
    sessionId: 'ses_test',
    runId: null,
    seed: 5,
    fresh,
    deadlineMs: 60_000,
  });
};

/** A log in memory whose process dies at write number `dieAt`: before it, or after it and before anyone hears of it. */
function dyingStore(memory: MemoryStore, dieAt: number, durable: boolean): SessionStore {
  let writes = 0;
  let dead = false;
  return {
    async append(where, events, audit) {
      if (dead || (writes === dieAt && !durable)) {
        dead = true;
        throw new Error('the process is gone');
      }
      await memory.append(where, events, audit);
      if (writes++ === dieAt) {
        dead = true;
        throw new Error('the process is gone');
      }
    },
    read: (id, range) => memory.read(id, range),
    saveOutput: (id, content) => memory.saveOutput(id, content),
  };
}

/** The whole trajectory without a crash: the writes it takes, and its log. */
async function undisturbed(): Promise<{ writes: number; log: SessionEvent[] }> {
  const memory = new MemoryStore();
  let writes = 0;
  const store: SessionStore = {
    append: (...input) => {
      writes++;
      return memory.append(...input);
    },
    read: (id, range) => memory.read(id, range),
    saveOutput: (id, content) => memory.saveOutput(id, content),
  };
  await job(testEngine(script, { store }), true);
  return { writes, log: memory.sessions.get('ses_test') ?? [] };
}

describe('a trajectory whose process dies', () => {
  it('ends, at whatever write it died; nothing runs twice that must not, no step is lost or doubled', async () => {
    const whole = await undisturbed();
    expect(whole.writes).toBeGreaterThan(15);
    let interrupted = 0;
    for (let dieAt = 0; dieAt < whole.writes; dieAt++)
      for (const durable of [false, true]) {
        const memory = new MemoryStore();
        const tools = new TestTools();
        const first = testEngine(script, { store: dyingStore(memory, dieAt, durable), tools });
        await expect(job(first, true)).rejects.toThrow('the process is gone');
        await first.engine.close();
        const before = structuredClone(memory.sessions.get('ses_test') ?? []);

        const second = testEngine(script, { memory, tools });
        const { state } = await job(second, false);
        await second.engine.close();
        const log = memory.sessions.get('ses_test') ?? [];
        const where = `write ${dieAt}, ${durable ? 'durable' : 'lost'}`;
        expect(state.end?.status, where).toBe('completed');
        // The log is only ever added to, without gap.
        expect(log.slice(0, before.length), where).toEqual(before);
        expect(
          log.map((event) => event.seq),
          where,
        ).toEqual(log.map((_, k) => k));
        expect(
          eventsOf(log, 'step.completed').map((e) => e.data.step_number),
          where,
        ).toEqual([0, 1, 2, 3, 4]);
        expect(eventsOf(log, 'task.completed'), where).toHaveLength(1);
        expect(
          eventsOf(log, 'generation.completed').map((e) => e.data.stepNumber),
          where,
        ).toEqual([0, 1, 2, 3, 4]);
        // One result a call.
        const answered = eventsOf(log, 'tool.completed').map((e) => [e.data.stepNumber, e.data.result.callIndex]);
        expect(answered, where).toEqual([
          [0, 0],
          [0, 1],
          [2, 0],
          [3, 0],
        ]);
        // What must not run twice ran once, or the model was told that nobody knows.
        for (const n of [1, 2]) expect(tools.pay.ran.filter((a) => a.n === n).length, where).toBeLessThanOrEqual(1);
        for (const { data } of eventsOf(log, 'tool.completed')) {
          if (data.result.status !== 'interrupted') continue;
          interrupted++;
          expect(data.result.tool, where).toBe('pay');
          expect(data.result.observation, where).toMatch(/interrupted.*not known how far/);
        }
        // The tokens folded again from the log are those the engine ended with.
        const tokens = log.filter((e) => e.tokens).flatMap((e) => [...sure(e.tokens).ids]);
        expect(tokens, where).toEqual(state.sequences.flatMap((s) => [...s.ids()]));
      }
    expect(interrupted).toBeGreaterThan(0);
  });

  it('is not rolled out again when its end was durable', async () => {
    const memory = new MemoryStore();
    await job(testEngine(script, { memory }), true);
    const again = testEngine(script, { memory });
    const { state } = await job(again, false);
    expect(state.end?.status).toBe('completed');
    expect(again.backend.requests).toHaveLength(0);
  });

  it('runs a call again only when its tool may run twice', async () => {
    for (const [tool, status] of [
      ['double', 'success'],
      ['pay', 'interrupted'],
    ] as const) {
      const memory = new MemoryStore();
      const tools = new TestTools();
      const simple = ({ turn }: { turn: number }) => (turn === 0 ? call(tool, { n: 3 }) : answer(8));
      // prompt, generation started, generation completed, tool started, tool completed.
      const first = testEngine(simple, { store: dyingStore(memory, 4, false), tools });
      await expect(job(first, true)).rejects.toThrow('gone');
      expect(tools[tool].ran).toHaveLength(1);
      const { state } = await job(testEngine(simple, { memory, tools }), false);
      expect(state.steps[0]?.results[0]).toMatchObject({ status });
      expect(tools[tool].ran).toHaveLength(tool === 'double' ? 2 : 1);
    }
  });
});
