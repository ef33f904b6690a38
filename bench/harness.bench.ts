/**
 * What the studio itself costs a step: a backend that answers at once, a tool that answers at once, and a log that is
 * durable in the embedded database (in its own process, as in the product). Three rounds in one process, so that a
 * memory that grows from one to the next is seen.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openDatabase } from '../db/open';
import { EventWriter } from '../db/queries/event-writer';
import { systemAmbient } from '../server/core/ambient';
import { SCORER_NAMES } from '../server/core/rewards/registry';
import { parseSkill } from '../server/core/skills/parse';
import type { Skill, Task } from '../server/core/skills/skill';
import type { JsonObject } from '../server/core/vocabulary';
import { InstantBackend } from '../server/inference/testing/instant';
import { silentLogger } from '../server/observability/logger';
import { databaseStore } from '../server/rollout/database-store';
import { AsyncRolloutEngine } from '../server/rollout/engine';
import { ToolEnv } from '../server/rollout/tool-env';
import type { SandboxPool } from '../server/sandbox/sandbox';
import type { ServiceContext } from '../server/services/context';
import { idleProcess } from '../server/services/testing/idle-process';
import { createToolRegistry } from '../server/tools/registry';
import { BaseTool, type ToolOutcome, type ToolSchema } from '../server/tools/tool';
import { boundedFigure, cpuMs, type Figure, printReport, progress, round } from './figure';
import { type BenchRun, insertBenchRun } from './insert-run';

const ROUNDS = 3;
const TRAJECTORIES = 256;
const STEPS = 6;

const SKILL = `skill_name: bench
description: Asks a few times, then answers.
available_tools: [probe]
max_rounds: ${STEPS}
answer_format:
  required_fields: [number]
audit_rules:
  - field: number
    pattern: '^\\d{1,3}$'
reward_weights:
  tool_accuracy: 0.2
  search_progress: 0.4
  answer_f1: 0.4
stop: ["Observation:"]
permissions:
  default_level: ask_first
  rules:
    - resource: tool://probe
      level: full_trust
      actions: [execute]
`;

class InstantProbe extends BaseTool {
  readonly name = 'probe';
  readonly idempotent = true;
  override getSchema(): ToolSchema {
    return { name: 'probe', description: 'Compares n with the hidden number.', parameters: { type: 'object' } };
  }
  override validate(): string | null {
    return null;
  }
  override async execute(args: JsonObject): Promise<ToolOutcome> {
    const output = Number(args.n) < 8 ? 'higher' : 'lower';
    return { status: 'success', output, value: output, error: null, sandboxLevel: null };
  }
  override formatOutput(outcome: ToolOutcome): string {
    return outcome.output;
  }
}

/** The tool above asks for none; whoever does has found a fault of the bench. */
const noSandboxes: SandboxPool = {
  levels: () => [],
  acquire: () => Promise.reject(new Error('The bench has no sandboxes.')),
  stats: () => [],
  close: async () => undefined,
};

/** The turn that follows: as many probes as there is room for, then the answer. */
function turnAfter(promptBytes: Uint8Array): string {
  const text = Buffer.from(promptBytes.buffer, promptBytes.byteOffset, promptBytes.length).toString('latin1');
  const asked = text.split('Observation:').length - 1;
  const thought = 'Thought: the number lies in the other half of what is left, so I ask in its middle.\n';
  if (asked >= STEPS - 1) return `${thought}Answer: {"number": 8}`;
  return `${thought}Action: {"tool":"probe","args":{"n":${asked + 3}}}\nObservation:`;
}

const dataDir = await mkdtemp(join(tmpdir(), 'ts-bench-'));
const database = await openDatabase({ dataDir, logger: silentLogger });
try {
  const ambient = systemAmbient();
  const ctx: ServiceContext = {
    database,
    ambient,
    logger: silentLogger,
    actor: { userId: null, name: 'bench', role: 'admin', ipAddress: null },
    process: idleProcess(),
  };
  const writer = new EventWriter(database);
  const store = databaseStore(database, writer, ambient);
  const tools = createToolRegistry([new InstantProbe()]);
  const skill: Skill = parseSkill(SKILL, { tools: tools.names(), scorers: SCORER_NAMES });
  const task: Task = {
    taskId: 'bench',
    prompt: 'A number from 1 to 16 is hidden. Find it.',
    answer: { number: 8 },
    metadata: { secret: 8, low: 1, high: 16 },
    skill: null,
  };
  const backend = new InstantBackend({ script: turnAfter, maxInFlight: TRAJECTORIES });
  const capabilities = await backend.capabilities();

  /** Every trajectory of the run at once; a fresh engine, as its queues must not carry over. */
  const rollOut = async (run: BenchRun): Promise<{ steps: number; events: number }> => {
    const engine = new AsyncRolloutEngine({
      backend,
      capabilities,
      store,
      toolWorkers: TRAJECTORIES,
      ambient,
      logger: silentLogger,
    });
    const counts = await Promise.all(
      run.members.map(async ({ trajectoryId, sessionId, seed }) => {
        const session = await engine.run({
          trajectoryId,
          sessionId,
          runId: run.runId,
          seed,
          skill,
          fresh: true,
          deadlineMs: 600_000,
          makeEnv: () =>
            new ToolEnv({
              trajectoryId,
              skill,
              task,
              tools,
              sandboxes: noSandboxes,
              judge: null,
              seed,
              callLimitMs: 90_000,
              now: ambient.now,
              observe: () => undefined,
            }),
        });
        const { end, steps } = session.state;
        if (end?.status !== 'completed') throw new Error(`${trajectoryId} ended ${end?.status}: ${end?.reason}`);
        return { steps: steps.length, events: session.length };
      }),
    );
    await engine.close();
    await writer.drain();
    return counts.reduce((a, b) => ({ steps: a.steps + b.steps, events: a.events + b.events }));
  };

  const cpuPerStep: number[] = [];
  const eventsPerSecond: number[] = [];
  const eventsPerCpuSecond: number[] = [];
  const heapMb: number[] = [];
  const rssMb: number[] = [];
  const gc = globalThis.gc ?? (() => undefined);
  // Compiled and connected before anything is counted.
  await rollOut(await insertBenchRun(ctx, { skillYaml: SKILL, groupSize: 32 }));
  for (let turn = 0; turn < ROUNDS; turn++) {
    const run = await insertBenchRun(ctx, { skillYaml: SKILL, groupSize: TRAJECTORIES });
    const [cpu, started] = [process.cpuUsage(), performance.now()];
    const { steps, events } = await rollOut(run);
    const [used, seconds] = [cpuMs(cpu), (performance.now() - started) / 1000];
    cpuPerStep.push(used / steps);
    eventsPerSecond.push(events / seconds);
    eventsPerCpuSecond.push((1000 * events) / used);
    gc();
    const memory = process.memoryUsage();
    heapMb.push((memory.heapUsed + memory.external) / 2 ** 20);
    rssMb.push(memory.rss / 2 ** 20);
    progress(
      `harness: round ${turn + 1}: ${steps} steps, ${events} events, ${round(used / steps)} ms of CPU a step, ${round(seconds)} s`,
    );
  }
  // The first round also fills what a process fills once: compiled code, the database's prepared statements.
  const growth = (heapMb.at(-1) ?? 0) - (heapMb[1] ?? 0);
  const figures: Record<string, Figure> = {
    [`harness: CPU a step, ${TRAJECTORIES} trajectories at once`]: boundedFigure(cpuPerStep, 'ms', { below: 2 }),
    'harness: durable events a second': boundedFigure(eventsPerSecond, 'events/s', null),
    'harness: durable events a second of CPU': boundedFigure(eventsPerCpuSecond, 'events/s', null),
    'harness: growth of the heap from the second round to the last': {
      ...boundedFigure([growth], 'MiB', { below: 4 }),
      runs: heapMb.map(round),
    },
    'harness: resident memory after each round': boundedFigure(rssMb, 'MiB', null),
  };
  printReport({ figures });
} finally {
  await database.close();
  await rm(dataDir, { recursive: true, force: true });
}
