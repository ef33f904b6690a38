/** The one place where the server process and its worker meet: what main hands over, and what it gets back. */
import type { Database } from '../db/connection';
import { EventWriter } from '../db/queries/event-writer';
import { releaseWeightUpdates } from '../db/queries/weight-updates';
import type { Ambient } from './core/ambient';
import { isStudioError } from './core/errors';
import type { Environment } from './env';
import { checkServer } from './inference/remote/check';
import { protocolsWith } from './inference/remote/protocols';
import type { Logger } from './observability/logger';
import { metrics } from './observability/metrics';
import { databaseStore } from './rollout/database-store';
import { Material } from './rollout/material';
import { Worker } from './rollout/worker';
import { createSandboxPool } from './sandbox/pool';
import type { SandboxPool } from './sandbox/sandbox';
import { HistoryRecorder } from './services/backends/history-recorder';
import type { RunningProcess } from './services/context';
import { readBackendKeys } from './services/secrets/backend-keys';
import type { SecretBox } from './services/secrets/secret-box';
import { createToolRegistry } from './tools/registry';

export interface WorkerOptions {
  database: Database;
  ambient: Ambient;
  logger: Logger;
  environment: Environment;
  /** Folder of package.json; model paths are relative to it. */
  packageRoot: string;
  /** Opens the stored keys of inference servers. */
  secrets: SecretBox;
  /** A server of this backend was started again. */
  serverRestarted(backendName: string): void;
  /** To be called after each write to a run's log. */
  runLogGrew(runId: string): void;
}

export interface WorkerOfThisProcess {
  process: Omit<RunningProcess, 'runLogGrew' | 'secrets' | 'scoreJobs'>;
  /** Stops claiming, finishes writing, gives sandboxes and models back. */
  stop(): Promise<void>;
}

export async function startWorkerOfThisProcess(options: WorkerOptions): Promise<WorkerOfThisProcess> {
  const { database, ambient, logger, environment, packageRoot, secrets, runLogGrew } = options;
  const writer = new EventWriter(database, (runIds) => {
    for (const runId of runIds) runLogGrew(runId);
  });
  // Looking at what this host can isolate takes a second; the studio opens meanwhile.
  const sandboxes = createSandboxPool({
    logger,
    ambient,
    size: environment.sandboxes,
    hide: [environment.dataDir, packageRoot],
    searchPath: environment.searchPath,
  });
  sandboxes.catch((error) => logger.error({ err: error }, 'the sandbox pool could not be opened'));
  const material = new Material({
    database,
    ambient,
    logger,
    packageRoot,
    serverRestarted: options.serverRestarted,
    keysOf: (backendId) => readBackendKeys(database.db, secrets, backendId),
    threads: environment.modelThreads,
    store: databaseStore(database, writer, ambient),
    tools: createToolRegistry(),
    sandboxes: () => sandboxes,
    toolWorkers: environment.sandboxes * 2,
    metrics,
  });
  const worker = new Worker({
    database,
    ambient,
    logger,
    capacity: environment.trajectoriesAtOnce,
    materialOf: (claim) => material.of(claim),
    failBeforeStart: (claim, error) => material.failBeforeStart(claim, error),
    runLogGrew,
  });
  metrics.gauge('studio_trajectories_held', 'Trajectories this process holds.', () => worker.size);
  // The embedded database belongs to this process alone.
  if (database.kind === 'embedded') await releaseWeightUpdates(database.db);
  const history = new HistoryRecorder({ opened: () => material.backends.opened(), now: ambient.now });
  history.start();
  await worker.start();
  return {
    process: {
      wakeWorkers: () => worker.wake(),
      cancelRun: (runId) => worker.cancelRun(runId),
      trouble: (backendName) => worker.trouble ?? material.backends.trouble(backendName),
      planTurns: (name, skill) => material.planTurns(name, skill),
      backendLive: (name) => material.backends.use(name, async (backend) => backend),
      backendHeld: (name) => material.backends.hold(name),
      backendsOf: (name) => material.backends.all(name),
      backendHistory: (name) => history.history(name),
      checkServer: ({ backend, url, kind, model, tokenizer, contextLength, key, controlKey }) =>
        checkServer({
          url,
          key,
          controlKey,
          kind: kind === 'auto' ? null : kind,
          model,
          tokenizerFolder: tokenizer,
          contextLength,
          backendName: backend,
          logger,
          ambient,
          protocols: protocolsWith(controlKey),
        }),
      backendHealth: async (name) => {
        try {
          return await material.health(name);
        } catch (error) {
          if (!isStudioError(error)) throw error;
          return { ok: false, message: error.message, modelName: null };
        }
      },
    },
    async stop() {
      history.stop();
      worker.stopClaiming();
      try {
        await material.backends.closeEngines();
        await worker.stop();
        await writer.drain();
      } finally {
        // A model that stayed open would keep the process.
        await Promise.all([
          material.backends.closeBackends(),
          sandboxes.then((pool: SandboxPool) => pool.close()).catch(() => undefined),
        ]);
      }
    },
  };
}
