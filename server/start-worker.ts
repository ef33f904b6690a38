/** The one place where the server process and its worker meet: what main hands over, and what it gets back. */
import type { Database } from '../db/connection';
import type { Ambient } from './core/ambient';
import type { Environment } from './env';
import type { Logger } from './observability/logger';
import type { RunningProcess } from './services/context';

export interface WorkerOptions {
  database: Database;
  ambient: Ambient;
  logger: Logger;
  environment: Environment;
  /** Folder of package.json; model paths are relative to it. */
  packageRoot: string;
  /** To be called after each write to a run's log. */
  runLogGrew(runId: string): void;
}

export interface WorkerOfThisProcess {
  process: Omit<RunningProcess, 'runLogGrew'>;
  /** Stops claiming, finishes writing, gives sandboxes and models back. */
  stop(): Promise<void>;
}

/** A server without a worker: runs it accepts wait for the worker of another process. */
export async function startWorkerOfThisProcess(_options: WorkerOptions): Promise<WorkerOfThisProcess> {
  return {
    process: {
      wakeWorkers: () => undefined,
      cancelRun: () => undefined,
      backendHealth: async () => ({ ok: false, message: 'No worker of this process answers.', modelName: null }),
    },
    stop: async () => undefined,
  };
}
