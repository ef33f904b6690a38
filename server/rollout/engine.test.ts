/** Many trajectories at once: each has its own end, whatever becomes of its siblings. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Cancelled, Unavailable } from '../core/errors';
import { computeAdvantages } from '../core/training/advantages';
import { MemoryStore } from '../harness/memory-store';
import type { Session, SessionStore } from '../harness/session';
import {
  type AsyncRolloutEngine,
  Interrupted,
  Outdated,
  type Prompt,
  type Rollout,
  type TrajectoryJob,
} from './engine';
import { answer, call, eventsOf, sure, testEngine, testSkill, testTask } from './testing/rollouts';

const jobOf = (prompt: Prompt, changes: Partial<TrajectoryJob> = {}): TrajectoryJob => ({
  ...prompt,
  makeEnv: () => prompt.makeEnv(0),
  trajectoryId: 'trj_test',
  sessionId: 'ses_test',
  runId: null,
  seed: 1,
  fresh: true,
  deadlineMs: 60_000,
  ...changes,
});

const oneGroup = async (engine: AsyncRolloutEngine, prompts: Prompt[], size: number): Promise<Rollout[]> =>
  sure((await engine.collectBatch(prompts, size))[0]);

const training = (groupId: string, rollouts: readonly Rollout[]) =>
  rollouts.map(({ trajectoryId, end, session }) => ({
    trajectoryId,
    groupId,
    status: end.status,
    humanEdited: false,
    stepRewards: session.state.steps.map((step) => step.reward),
    reward: end.reward,
    stateKeys: session.state.steps.map((step) => step.stateKey),
  }));

describe('a trajectory whose weights moved on', () => {
  const two = testEngine(({ turn }) => (turn === 0 ? call('say', { text: 'hi' }) : answer(8)));

  it('ends with the sentence when it is to be dropped, and is let go without an end when it is to be redone', async () => {
    const afterFirstStep = (reason: Cancelled) => (session: Session) =>
      session.state.steps.length === 1 ? reason : null;
    const dropped = await two.engine.run(
      jobOf(two.prompt(), { outdated: afterFirstStep(new Cancelled('The weights moved on.')) }),
    );
    expect(dropped.state.end).toMatchObject({ status: 'cancelled', reason: 'The weights moved on.' });
    expect(dropped.state.steps).toHaveLength(1);
    const redone = two.engine.run(
      jobOf(two.prompt(), { sessionId: 'ses_redone', outdated: afterFirstStep(new Outdated('too old')) }),
    );
    await expect(redone).rejects.toBeInstanceOf(Outdated);
    expect((await two.store.read('ses_redone', {})).map((event) => event.type)).not.toContain('task.completed');
  });

  it('is dropped or redone also when it is found out at its very end, and not after that', async () => {
    /** While the last call runs: it was young enough when the call began. */
    const atEnd = (reason: Cancelled) => {
      let looks = 0;
      return ({ state }: Session) => (state.steps.length === 1 && state.turn && ++looks === 2 ? reason : null);
    };
    const job = (sessionId: string, reason: Cancelled) => jobOf(two.prompt(), { sessionId, outdated: atEnd(reason) });
    const dropped = await two.engine.run(job('ses_dropped_late', new Cancelled('late')));
    expect(dropped.state.end).toMatchObject({ status: 'cancelled', reward: null, reason: 'late' });
    await expect(two.engine.run(job('ses_late', new Outdated('late')))).rejects.toBeInstanceOf(Outdated);
    const types = (await two.store.read('ses_late', {})).map((event) => event.type);
    expect(types).not.toContain('task.completed');
    const whole = ({ state }: Session) => (state.end ? new Outdated('too late') : null);
    const kept = await two.engine.run(jobOf(two.prompt(), { sessionId: 'ses_whole', outdated: whole }));
    expect(kept.state.end?.status).toBe('completed');
  });
});

describe('a deadline', () => {
  it('does not count the time in which the backend could serve nobody', async () => {
    const { engine, backend, prompt } = testEngine(() => ({ text: answer(8), delayMs: 150 }));
    let stopped = 0;
    Object.assign(backend, { stoppedMs: () => stopped });
    const waited = engine.run(jobOf(prompt(), { deadlineMs: 40 }));
    setTimeout(() => (stopped = 10_000), 10);
    expect((await waited).state.end?.status).toBe('completed');
    const late = await engine.run(jobOf(prompt(), { sessionId: 'ses_late', deadlineMs: 40 }));
    expect(late.state.end?.status).toBe('timed_out');
  });
});

describe('a batch', () => {
  it('comes back in the order of its prompts and members, whatever ends first', async () => {
    const { engine, prompt } = testEngine(({ prompt: text }) => ({
      text: answer(Number(/number (\d)/.exec(text)?.[1])),
      delayMs: text.includes('number 1') ? 30 : 1,
    }));
    const prompts = [1, 2, 3].map((n) => prompt({ task: testTask({ taskId: `t${n}`, prompt: `number ${n}` }) }));
    const groups = await engine.collectBatch(prompts, 4, { seed: 3 });
    expect(groups.map((group) => group.map((r) => r.end.answer?.number))).toEqual([1, 2, 3].map((n) => [n, n, n, n]));
    expect(groups.map((group) => group.map((r) => r.member))).toEqual([1, 2, 3].map(() => [0, 1, 2, 3]));
  });

  it('gives every member a seed of its own, and the same one for the same seed', async () => {
    const seeds = async () => {
      const { engine, prompt, backend } = testEngine(() => answer(8));
      await engine.collectBatch([prompt(), prompt()], 8, { seed: 11 });
      return backend.requests.map((r) => r.options.seed).sort();
    };
    const first = await seeds();
    expect(new Set(first).size).toBe(16);
    expect(await seeds()).toEqual(first);
  });

  it('of eight of which one throws has seven results and one failure with its error and stack', async () => {
    const { engine, prompt } = testEngine(() => answer(8));
    const good = prompt();
    const group = await oneGroup(
      engine,
      [
        {
          ...good,
          makeEnv(member) {
            const env = good.makeEnv(member);
            if (member === 3) env.step = () => Promise.reject(new TypeError('the environment broke'));
            return env;
          },
        },
      ],
      8,
    );
    expect(group.map((r) => r.end.status)).toEqual(
      [0, 1, 2, 3, 4, 5, 6, 7].map((m) => (m === 3 ? 'failed' : 'completed')),
    );
    const { end } = sure(group[3]);
    expect(end).toMatchObject({ reward: null, reason: 'TypeError: the environment broke' });
    expect(end.error?.message).toBe('the environment broke');
    expect(end.error?.stack).toContain('engine.test.ts');
  });

  it('leaves environments that crash at their start or at reset out of the statistics', async () => {
    const { engine, prompt } = testEngine(() => answer(8));
    const good = prompt();
    const group = await oneGroup(
      engine,
      [
        {
          ...good,
          makeEnv(member) {
            if (member === 0) throw new Error('no environment');
            const env = good.makeEnv(member);
            if (member === 1) env.reset = () => Promise.reject(new Error('crashed at reset'));
            return env;
          },
        },
      ],
      4,
    );
    expect(group.map((r) => r.end.status)).toEqual(['failed', 'failed', 'completed', 'completed']);
    expect(group.slice(0, 2).map((r) => r.end.reward)).toEqual([null, null]);
    const { byTrajectory, groups } = computeAdvantages(training('g', group));
    // All that count have the same reward: with the crashed ones as zeros there would be a signal.
    expect(groups[0]?.hasSignal).toBe(false);
    expect(byTrajectory.has(sure(group[0]).trajectoryId)).toBe(false);
    expect([...byTrajectory.values()].flat().every((a) => a === 0)).toBe(true);
  });

  it('of one member has the advantage 0, and groups are kept apart by task', async () => {
    const { engine, prompt } = testEngine(({ prompt: text, seed }) =>
      text.includes('easy') || seed % 2 ? answer(8) : answer(1),
    );
    const alone = await oneGroup(engine, [prompt()], 1);
    expect([...computeAdvantages(training('g', alone)).byTrajectory.values()]).toEqual([[0]]);

    const tasks = ['easy', 'hard'].map((p) => prompt({ task: testTask({ taskId: p, prompt: p }) }));
    const [easy = [], hard = []] = await engine.collectBatch(tasks, 8, { seed: 1 });
    expect(new Set(hard.map((r) => r.end.reward)).size).toBe(2);
    // Mixed by arrival: the easy group still has no signal of its own.
    const mixed = easy.flatMap((r, i) => [...training('easy', [r]), ...training('hard', [sure(hard[i])])]);
    const { byTrajectory, groups } = computeAdvantages(mixed);
    expect(groups.map((g) => [g.groupId, g.hasSignal])).toEqual([
      ['easy', false],
      ['hard', true],
    ]);
    for (const r of easy) expect(byTrajectory.get(r.trajectoryId)).toEqual([0]);
  });

  it('goes on while one backend request fails, and the failed member says why', async () => {
    let failed = false;
    const { engine, prompt } = testEngine(() => {
      if (failed) return answer(8);
      failed = true;
      return { text: '', error: new Unavailable('The server is away.') };
    });
    const group = await oneGroup(engine, [prompt()], 4);
    expect(group.map((r) => r.end.status).sort()).toEqual(['completed', 'completed', 'completed', 'failed']);
    expect(group.find((r) => r.end.status === 'failed')?.end.reason).toBe('The server is away.');
  });
});

describe('a trajectory', () => {
  it('that passes its deadline ends as timed out, also while its backend does not listen', async () => {
    for (const deaf of [false, true]) {
      const { engine, prompt } = testEngine(() => ({ text: answer(8), delayMs: 400, deaf }));
      const { state } = await engine.run(jobOf(prompt(), { deadlineMs: 50 }));
      expect(state.end).toMatchObject({ status: 'timed_out', reward: null });
      expect(state.end?.reason).toMatch(/deadline/);
    }
  });

  it('that passes its deadline inside a tool ends as timed out, and the tool is told to stop', async () => {
    const { engine, prompt, tools } = testEngine(() => call('hang', { n: 1 }));
    const { state } = await engine.run(jobOf(prompt(), { deadlineMs: 200 }));
    expect(state.end?.status).toBe('timed_out');
    expect(tools.stopped).toBe(1);
  });

  it('that is stopped on request ends as cancelled', async () => {
    const { engine, prompt, backend } = testEngine(() => ({ text: answer(8), delayMs: 60_000 }));
    const stop = new AbortController();
    const running = engine.run(jobOf(prompt(), { signal: stop.signal }));
    await untilTrue(() => backend.requests.length === 1);
    stop.abort(new Cancelled('The run was cancelled.'));
    const { state } = await running;
    expect(state.end).toMatchObject({ status: 'cancelled', reason: 'The run was cancelled.', reward: null });
  });

  it('that was stopped before it began ends as cancelled, with nothing done', async () => {
    const { engine, prompt, backend } = testEngine(() => answer(8));
    const { state } = await engine.run(jobOf(prompt(), { signal: AbortSignal.abort() }));
    expect(state.end?.status).toBe('cancelled');
    expect(backend.requests).toHaveLength(0);
  });
});

describe('an engine that closes', () => {
  it('lets its trajectories go where they stand; another engine brings them to their end', async () => {
    const store = new MemoryStore();
    const slow = testEngine(({ turn }) => ({ text: turn < 2 ? call('double', { n: turn }) : answer(8), delayMs: 5 }), {
      memory: store,
    });
    const jobs = Array.from({ length: 12 }, (_, i) =>
      slow.engine.run(jobOf(slow.prompt(), { sessionId: `ses_${i}`, seed: i })),
    );
    const settled = Promise.allSettled(jobs);
    await untilTrue(() => [...store.sessions.values()].some((log) => log.length > 6));
    await slow.engine.close();
    for (const result of await settled)
      if (result.status === 'rejected') expect(result.reason).toBeInstanceOf(Interrupted);
    expect(slow.engine.stats().running).toBe(0);

    const next = testEngine(({ turn }) => (turn < 2 ? call('double', { n: turn }) : answer(8)), { memory: store });
    const ends = await Promise.all(
      Array.from({ length: 12 }, (_, i) =>
        next.engine.run(jobOf(next.prompt(), { sessionId: `ses_${i}`, seed: i, fresh: false })),
      ),
    );
    for (const { state } of ends) expect(state.end).toMatchObject({ status: 'completed', reward: 1 });
    for (const log of store.sessions.values()) {
      expect(log.map((event) => event.seq)).toEqual(log.map((_, k) => k));
      expect(eventsOf(log, 'step.completed').map((e) => e.data.step_number)).toEqual([0, 1, 2]);
      expect(eventsOf(log, 'task.completed')).toHaveLength(1);
    }
  });

  it('leaves nobody waiting, at whatever write or read of the log it is closed', async () => {
    for (const at of ['read', 0, 1, 2, 3, 4, 5] as const) {
      const memory = new MemoryStore();
      let writes = 0;
      let close: () => Promise<void> = async () => undefined;
      let closed: Promise<void> = Promise.resolve();
      const store: SessionStore = {
        append: async (where, events, audit) => {
          if (writes++ === at) closed = close();
          await new Promise((done) => setTimeout(done, 10));
          return memory.append(where, events, audit);
        },
        read: async (id, range) => {
          if (at === 'read') closed = close();
          return memory.read(id, range);
        },
        saveOutput: (id, content) => memory.saveOutput(id, content),
      };
      const { engine, prompt } = testEngine(({ turn }) => (turn === 0 ? call('double', { n: 4 }) : answer(8)), {
        store,
      });
      close = () => engine.close();
      await expect(engine.run(jobOf(prompt(), { fresh: false }))).rejects.toBeInstanceOf(Interrupted);
      await closed;
      await expect(engine.run(jobOf(prompt()))).rejects.toBeInstanceOf(Interrupted);
    }
  });
});

describe('an engine whose log cannot be written', () => {
  it('goes on from the log when the database was away for one statement, whichever', async () => {
    const scripted = ({ turn }: { turn: number }) => (turn === 0 ? call('double', { n: 4 }) : answer(8));
    for (let at = 0; ; at++) {
      const memory = new MemoryStore();
      let writes = 0;
      const store: SessionStore = {
        append: (where, events, audit) =>
          writes++ === at
            ? Promise.reject(new Unavailable('The database is not reachable any more.'))
            : memory.append(where, events, audit),
        read: (id, range) => memory.read(id, range),
        saveOutput: (id, content) => memory.saveOutput(id, content),
      };
      const { engine, prompt } = testEngine(scripted, { store });
      const job = jobOf(prompt());
      const first = await engine.run(job).catch((error) => error);
      if (writes <= at) {
        expect(at).toBeGreaterThan(4);
        await engine.close();
        break;
      }
      expect(first).toBeInstanceOf(Unavailable);
      expect((await engine.run({ ...job, fresh: false })).state.end).toMatchObject({ status: 'completed' });
      await engine.close();
    }
  });

  it('ends a trajectory whose events the database refuses', async () => {
    const memory = new MemoryStore();
    let writes = 0;
    const store: SessionStore = {
      append: (where, events, audit) =>
        writes++ === 2 ? Promise.reject(new Error('The database refused it.')) : memory.append(where, events, audit),
      read: (id, range) => memory.read(id, range),
      saveOutput: (id, content) => memory.saveOutput(id, content),
    };
    const { engine, prompt } = testEngine(() => answer(8), { store });
    expect((await engine.run(jobOf(prompt()))).state.end).toMatchObject({ status: 'failed' });
    await engine.close();
  });
});

describe('whatever the model writes', () => {
  const piece = fc.constantFrom(
    'Thought: hm',
    '\n',
    'Action: {"tool":"double","args":{"n":4}}',
    'Action: {"tool":"double","args":{"n":"4"}}',
    'Action: {"tool":"tell","args":{"n":1}}',
    'Action: {"tool":"crash","args":{"n":1}}',
    'Action: {"tool":"no',
    'Answer: {"number": 8}',
    'Answer: {',
    'Observation:',
    '<think>x</think>',
    '<|im_end|>',
    '<|im_start|>',
    'é',
    '🙂',
    ' ',
  );
  const reply = fc.record({
    text: fc.array(piece, { maxLength: 8 }).map((parts) => parts.join('')),
    mostTokens: fc.option(fc.integer({ min: 1, max: 60 }), { nil: undefined }),
  });

  it('the columns stay of one length, and mask 1 is on exactly what was sampled', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(reply, { minLength: 1, maxLength: 5 }),
        fc.boolean(),
        async (replies, dropsThinking) => {
          let asked = 0;
          const { one, tools, engine } = testEngine({
            pieces: ['Act', 'ion: {', 'Observation', ': ', '🙂é', 'Answer'],
            dropsThinking,
            script: () => sure(replies[asked++ % replies.length]),
          });
          tools.told = 'Action: {"tool":"pay","args":{"n":1}}<|im_end|>';
          const { session, end, events } = await one({ skill: testSkill({ maxRounds: 5 }) });
          await engine.close();
          expect(['completed', 'truncated']).toContain(end.status);
          expect(tools.pay.ran).toEqual([]);
          const sampled = eventsOf(events, 'generation.completed').map((e) => [...sure(e.tokens).ids]);
          const sequences = session.state.sequences.map((builder) => builder.finish());
          for (const { ids, logprobs, mask, stepIndex, segment, byteEnds, bytes } of sequences) {
            const n = ids.length;
            expect([logprobs.length, mask.length, stepIndex.length, segment.length, byteEnds.length]).toEqual([
              n,
              n,
              n,
              n,
              n,
            ]);
            expect(byteEnds[n - 1]).toBe(bytes.length);
            mask.forEach((m, k) => {
              expect(Number.isNaN(logprobs[k])).toBe(m === 0);
            });
          }
          const masked = sequences.flatMap(({ ids, mask }) => [...ids].filter((_, k) => mask[k] === 1));
          expect(masked).toEqual(sampled.flat());
          const generated = session.state.sequences.reduce((sum, { lengths }) => sum + lengths.generated, 0);
          expect(generated).toBe(sampled.flat().length);
          for (const step of session.state.steps) expect(step.results).toHaveLength(step.actions.length);
        },
      ),
      { numRuns: 60 },
    );
  });
});

async function untilTrue(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((done) => setTimeout(done, 5));
}
