/** What every service verb is handed: verb({ ctx, input }). */
import type { Database } from '../../db/connection';
import type { Ambient } from '../core/ambient';
import { Forbidden } from '../core/errors';
import type { BackendCheck, BackendHealth, RemoteKind } from '../core/inference';
import type { Skill } from '../core/skills/skill';
import type { BackendHistory } from '../core/views';
import type { Role } from '../core/vocabulary';
import { ROLES } from '../core/vocabulary';
import type { InferenceBackend } from '../inference/backend';
import type { Logger } from '../observability/logger';
import type { ScoreJobs } from './scores/score-jobs';
import type { SecretBox } from './secrets/secret-box';

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
  backendHealth(name: string): Promise<BackendHealth & { modelName: string | null }>;
  /**
   * Looks whether the turns a skill asks for can be had from the backend; returns what a reader of the run must know of
   * their form, or null. Throws Invalid when they cannot.
   */
  planTurns(backendName: string, skill: Skill): Promise<string | null>;
  /**
   * The backend of that name as it serves now, opened when it is not yet (which waits for a model to load), to be asked
   * something small. Throws from the error family.
   */
  backendLive(name: string): Promise<InferenceBackend>;
  /** The same for work that lasts: it stays open until it is released, also when its settings are changed meanwhile. */
  backendHeld(name: string): Promise<{ backend: InferenceBackend; release(): void }>;
  /** The same, and behind it those of earlier settings that end what they began. */
  backendsOf(name: string): Promise<[InferenceBackend, ...InferenceBackend[]]>;
  /** Asks the server at an address what it is and what it can do. Stores nothing; the key goes to that server alone. */
  checkServer(wanted: ServerToCheck): Promise<BackendCheck>;
  /** What the replicas told over the last hours, as long as this process has had the backend open. */
  backendHistory(name: string): BackendHistory;
  /** Seals and opens the keys of servers. */
  secrets: SecretBox;
  /** The scoring that goes on in this process. */
  scoreJobs: ScoreJobs;
  /** Why a run on this backend cannot go on now (the disk is full, no server answers), as a sentence; else null. */
  trouble(backendName: string): string | null;
}

export interface ServerToCheck {
  /** Whose server it is, for sentences; null while it belongs to none. */
  backend: string | null;
  url: string;
  kind: RemoteKind | 'auto';
  /** The name it serves the model under; null takes the only one it has. */
  model: string | null;
  /** Folder with the model's tokenizer, for servers without routes for text. */
  tokenizer: string | null;
  /** In tokens, for servers that do not tell. */
  contextLength: number | null;
  key: string | null;
  /** Sent to no server: it signs. */
  controlKey: string | null;
}

/** The first line of every verb. A role covers all roles before it in ROLES. */
export function requireRole(ctx: ServiceContext, role: Role, what: string): void {
  if (ROLES.indexOf(ctx.actor.role) < ROLES.indexOf(role))
    throw new Forbidden(`${what} needs the role ${role}; you are signed in as ${ctx.actor.role}.`, {
      userId: ctx.actor.userId,
    });
}
