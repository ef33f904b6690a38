/** Puts an engine together for tests: real harness, real environment, a scripted policy, a log in memory. */
import { systemAmbient } from '../../core/ambient';
import { Unavailable } from '../../core/errors';
import type { SessionEvent } from '../../core/events';
import type { Skill, Task } from '../../core/skills/skill';
import { MemoryStore } from '../../harness/memory-store';
import type { SessionStore } from '../../harness/session';
import { silentLogger } from '../../observability/logger';
import type { SandboxPool } from '../../sandbox/sandbox';
import { AsyncRolloutEngine, type Prompt, type Rollout } from '../engine';
import { ToolEnv, type ToolEnvOptions } from '../tool-env';
import { ScriptedBackend, type ScriptedOptions } from './scripted-backend';
import { TestTools } from './test-tools';

export const call = (tool: string, args: object): string => `Action: ${JSON.stringify({ tool, args })}\nObservation:`;
export const answer = (number: number): string => `Thought: done\nAnswer: {"number": ${number}}`;

export function testSkill(changes: Partial<Skill> = {}): Skill {
  return {
    skillName: 'test',
    description: '',
    availableTools: ['crash', 'double', 'hang', 'pay', 'say', 'tell'],
    maxRounds: 6,
    answerFormat: { requiredFields: ['number'] },
    auditRules: [],
    rewardWeights: { tool_accuracy: 0.5, answer_f1: 0.5 },
    instructions: 'Use {{tool_names}}.',
    actionFormat: 'react',
    constrainActions: false,
    sampling: { temperature: 1, topP: 1, topK: 0, minP: 0, maxTokensPerTurn: 2000 },
    stop: ['Observation:'],
    sandbox: { level: 'process', accept: ['process', 'wasm'] },
    permissions: { defaultLevel: 'full_trust', rules: [] },
    maxObservationTokens: 2000,
    deadlineMs: 60_000,
    extra: {},
    ...changes,
  };
}

export const testTask = (changes: Partial<Task> = {}): Task => ({
  taskId: 'task',
  prompt: 'What is it?',
  answer: { number: 8 },
  metadata: {},
  skill: null,
  ...changes,
});

/** A host that isolates nothing: for tools that need no sandbox. */
export const noSandboxes: SandboxPool = {
  levels: () => [],
  acquire: () => Promise.reject(new Unavailable('This host has no sandboxes.')),
  stats: () => [],
  close: async () => undefined,
};

export interface TestEngine {
  engine: AsyncRolloutEngine;
  backend: ScriptedBackend;
  store: MemoryStore;
  tools: TestTools;
  prompt(changes?: Partial<ToolEnvOptions>): Prompt;
  /** Rolls one prompt out once. */
  one(changes?: Partial<ToolEnvOptions>): Promise<Rollout & { events: SessionEvent[] }>;
}

export function testEngine(
  scripted: ScriptedOptions | ScriptedOptions['script'],
  options: { tools?: TestTools; store?: SessionStore; memory?: MemoryStore; toolWorkers?: number } = {},
): TestEngine {
  const backend = new ScriptedBackend(typeof scripted === 'function' ? { script: scripted } : scripted);
  const tools = options.tools ?? new TestTools();
  const store = options.memory ?? new MemoryStore();
  const ambient = systemAmbient();
  const engine = new AsyncRolloutEngine({
    backend,
    capabilities: backend.capabilitiesNow(),
    store: options.store ?? store,
    toolWorkers: options.toolWorkers ?? 8,
    ambient,
    logger: silentLogger,
  });
  const prompt = (changes: Partial<ToolEnvOptions> = {}): Prompt => {
    const skill = changes.skill ?? testSkill();
    const task = changes.task ?? testTask();
    return {
      task,
      skill,
      makeEnv: () =>
        new ToolEnv({
          trajectoryId: 'trj_test',
          skill,
          task,
          tools: tools.registry,
          sandboxes: noSandboxes,
          judge: null,
          seed: 1,
          callLimitMs: 30_000,
          now: ambient.now,
          observe: () => undefined,
          ...changes,
        }),
    };
  };
  return {
    engine,
    backend,
    store,
    tools,
    prompt,
    async one(changes) {
      const [[rollout] = []] = await engine.collectBatch([prompt(changes)], 1);
      if (!rollout) throw new Error('The engine gave no rollout.');
      return { ...rollout, events: await rollout.session.getEvents() };
    },
  };
}

export function eventsOf<T extends SessionEvent['type']>(
  events: readonly SessionEvent[],
  type: T,
): Extract<SessionEvent, { type: T }>[] {
  return events.filter((event): event is Extract<SessionEvent, { type: T }> => event.type === type);
}

/** What a test counts on being there. */
export function sure<T>(value: T | null | undefined): T {
  if (value === null || value === undefined) throw new Error('What this test looks at is not there.');
  return value;
}
