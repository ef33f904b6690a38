/** A worker as one process has it, on a test's database: its own engine, its own writer, a scripted policy. */
import type { Database } from '../../../db/connection';
import { EventWriter } from '../../../db/queries/event-writer';
import { systemAmbient } from '../../core/ambient';
import type { Skill } from '../../core/skills/skill';
import { Session } from '../../harness/session';
import { silentLogger } from '../../observability/logger';
import { databaseStore } from '../database-store';
import { ToolEnv } from '../tool-env';
import { type RunMaterial, Worker } from '../worker';
import { noSandboxes, type TestEngine, testEngine, testSkill } from './rollouts';
import type { ScriptedOptions } from './scripted-backend';
import type { TestTools } from './test-tools';

export interface TestWorker extends Pick<TestEngine, 'engine' | 'backend' | 'tools'> {
  worker: Worker;
  /** In good order, as at Ctrl-C. */
  stop(): Promise<void>;
  /** The process dies: from now on nothing of it reaches the database. */
  kill(): Promise<void>;
}

export interface TestWorkerOptions {
  database: Database;
  script: ScriptedOptions | ScriptedOptions['script'];
  tools?: TestTools;
  skill?: Partial<Skill>;
  leaseMs?: number;
  capacity?: number;
  /** Called before each trajectory gets what it needs; may throw. */
  beforeMaterial?: () => void;
}

export async function startTestWorker(options: TestWorkerOptions): Promise<TestWorker> {
  const ambient = systemAmbient();
  const { database, cut } = severable(options.database);
  const store = databaseStore(database, new EventWriter(database), ambient);
  const { engine, backend, tools } = testEngine(options.script, { tools: options.tools, store });
  const skill = testSkill({ answerFormat: { requiredFields: ['number'] }, ...options.skill });
  const material: RunMaterial = {
    engine,
    release: () => undefined,
    jobFor: ({ trajectoryId, task, seed }) => ({
      skill,
      deadlineMs: skill.deadlineMs,
      makeEnv: () =>
        new ToolEnv({
          trajectoryId,
          skill,
          task,
          tools: tools.registry,
          sandboxes: noSandboxes,
          judge: null,
          seed,
          callLimitMs: 30_000,
          now: ambient.now,
          observe: () => undefined,
        }),
    }),
  };
  const worker = new Worker({
    database,
    ambient,
    logger: silentLogger,
    capacity: options.capacity ?? 16,
    leaseMs: options.leaseMs ?? 30_000,
    pollMs: 20,
    retryMs: 50,
    runLogGrew: () => undefined,
    failBeforeStart: (claim) =>
      Session.open({ sessionId: claim.sessionId, runId: claim.runId, store, now: ambient.now }),
    materialOf: async () => {
      options.beforeMaterial?.();
      return material;
    },
  });
  await worker.start();
  return {
    worker,
    engine,
    backend,
    tools,
    async stop() {
      worker.stopClaiming();
      await engine.close();
      await worker.stop();
    },
    async kill() {
      cut();
      await engine.close();
      await worker.stop().catch(() => undefined);
    },
  };
}

/** The same database until `cut`; afterwards every use of it fails, as over a connection that is gone. */
function severable(database: Database): { database: Database; cut(): void } {
  let gone = false;
  const guard = <T extends object>(target: T): T =>
    new Proxy(target, {
      get(of, name) {
        if (gone) throw new Error('This process is dead.');
        const value: unknown = Reflect.get(of, name);
        return typeof value === 'function' ? value.bind(of) : value;
      },
    });
  return {
    database: { ...database, db: guard(database.db) },
    cut: () => {
      gone = true;
    },
  };
}
