/** What every service verb is handed: verb({ ctx, input }). */
import type { Database } from '../../db/connection';
import type { Ambient } from '../core/ambient';
import { Forbidden } from '../core/errors';
import type { Role } from '../core/vocabulary';
import { ROLES } from '../core/vocabulary';
import type { Logger } from '../observability/logger';

/** Who asks. `system` is the product itself (start-up, workers). */
export interface Actor {
  userId: string | null;
  name: string;
  role: Role;
  ipAddress: string | null;
}

export interface ServiceContext {
  database: Database;
  ambient: Ambient;
  logger: Logger;
  actor: Actor;
  /** Parts of the running process that verbs may need; absent in a bare command line. */
  process: RunningProcess;
}

export interface RunningProcess {
  /** Wakes the workers: there is something on the queue. */
  wakeWorkers(): void;
  /** Tells trajectories of a run, on any worker of this process, to stop. */
  cancelRun(runId: string): void;
  /** Tells realtime that the run's log grew. */
  runLogGrew(runId: string): void;
  backendHealth(name: string): Promise<{ ok: boolean; message: string; modelName: string | null }>;
  /** Why the worker of this process cannot go on now (the disk is full, the database is gone), as a sentence; else null. */
  trouble(): string | null;
}

/** The first line of every verb. A role covers all roles before it in ROLES. */
export function requireRole(ctx: ServiceContext, role: Role, what: string): void {
  if (ROLES.indexOf(ctx.actor.role) < ROLES.indexOf(role))
    throw new Forbidden(`${what} needs the role ${role}; you are signed in as ${ctx.actor.role}.`, {
      userId: ctx.actor.userId,
    });
}
