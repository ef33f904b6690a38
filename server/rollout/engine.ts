/**
 * The asynchronous rollout engine: an inference side and a tool side, each a set of workers with a queue in front.
 * A trajectory goes back and forth between them one harness step at a time; neither side waits for the other's batch,
 * and one failing trajectory never touches its siblings.
 */
import { setMaxListeners } from 'node:events';
import type { Ambient } from '../core/ambient';
import { Cancelled, Conflict, isStudioError, TimedOut } from '../core/errors';
import type { EventData } from '../core/events';
import type { Skill, Task } from '../core/skills/skill';
import { Session, type SessionStore } from '../harness/session';
import { harnessStep } from '../harness/step';
import type { BackendCapabilities, InferenceBackend } from '../inference/backend';
import type { Logger } from '../observability/logger';
import type { AgentEnv } from './agent-env';
import { InferenceSide } from './inference-side';
import { memberSeed } from './member-seed';
import { WorkQueue } from './work-queue';

/** Why a trajectory was let go without an end in its log: it is to be taken up again from there. */
export class Interrupted extends Cancelled {}

/** The weights moved on while it ran, and it is to be begun anew in a new session. */
export class Outdated extends Cancelled {}

export interface EngineOptions {
  backend: InferenceBackend;
  capabilities: BackendCapabilities;
  store: SessionStore;
  /** Trajectories on the tool side at once. */
  toolWorkers: number;
  ambient: Ambient;
  logger: Logger;
}

export interface TrajectoryJob {
  trajectoryId: string;
  sessionId: string;
  runId: string | null;
  seed: number;
  skill: Skill;
  /** The session is new: its log need not be read. */
  fresh: boolean;
  makeEnv(): AgentEnv;
  /** Milliseconds from now; time in which the backend could serve nobody does not count. */
  deadlineMs: number;
  /** Asked between two steps and before an end: why what was sampled is too old to be of use, or null. */
  outdated?(session: Session): Cancelled | null;
  signal?: AbortSignal;
}

/** One problem and how to try it. */
export interface Prompt {
  task: Task;
  skill: Skill;
  makeEnv(member: number): AgentEnv;
}

export interface Rollout {
  member: number;
  trajectoryId: string;
  session: Session;
  end: EventData['task.completed'];
}

interface Running {
  job: TrajectoryJob;
  session: Session;
  env: AgentEnv;
  controller: AbortController;
  resolve(session: Session): void;
  reject(error: unknown): void;
}

export class AsyncRolloutEngine {
  private readonly inference: InferenceSide;
  private readonly toInference = new WorkQueue<Running>();
  private readonly toTools = new WorkQueue<Running>();
  private readonly running = new Set<Running>();
  private readonly loops: Promise<void>[];
  private closing = false;

  constructor(private readonly options: EngineOptions) {
    const { capabilities } = options;
    this.inference = new InferenceSide(
      options.backend,
      { maxInFlight: capabilities.maxInFlight, batchSize: capabilities.batchSize },
      options.ambient.now,
    );
    // Workers of the inference side mostly wait for an answer; as many as the backend wants requests.
    this.loops = [
      ...Array.from({ length: capabilities.maxInFlight }, () => this.work(this.toInference)),
      ...Array.from({ length: options.toolWorkers }, () => this.work(this.toTools)),
    ];
  }

  /**
   * Rolls every prompt out `groupSize` times, all at once as far as the two sides have room.
   * @returns one array a prompt, one rollout a member, in order; a failed member is there with its error.
   */
  async collectBatch(
    prompts: readonly Prompt[],
    groupSize = 8,
    options: { seed?: number; deadlineMs?: number; signal?: AbortSignal } = {},
  ): Promise<Rollout[][]> {
    const { ambient } = this.options;
    const seed = options.seed ?? Math.floor(ambient.random() * 2 ** 31);
    // Every trajectory listens to it.
    if (options.signal) setMaxListeners(0, options.signal);
    return Promise.all(
      prompts.map((prompt, position) =>
        Promise.all(
          Array.from({ length: groupSize }, async (_, member) => {
            const trajectoryId = ambient.newId('trj');
            const session = await this.run({
              trajectoryId,
              sessionId: ambient.newId('ses'),
              runId: null,
              seed: memberSeed(seed, position, member),
              skill: prompt.skill,
              fresh: true,
              makeEnv: () => prompt.makeEnv(member),
              deadlineMs: options.deadlineMs ?? prompt.skill.deadlineMs,
              signal: options.signal,
            });
            return { member, trajectoryId, session, end: endOf(session) };
          }),
        ),
      ),
    );
  }

  /**
   * Runs one trajectory to its end. Resolves with the session, whose state holds the end, whatever it was: completed,
   * truncated, failed, cancelled or timed out. Rejects only when the log itself could not be kept (another writer took
   * it, the database is gone) or the engine is closing (Interrupted): then the trajectory goes on later from its log.
   */
  async run(job: TrajectoryJob): Promise<Session> {
    if (this.closing) throw new Interrupted('The engine is closing.');
    const { store, ambient } = this.options;
    const session = await Session.open({
      sessionId: job.sessionId,
      runId: job.runId,
      store,
      now: ambient.now,
      fresh: job.fresh,
    });
    if (session.state.phase === 'done') return session;
    // The log was being read while the engine closed; nobody would take it up any more.
    if (this.closing) throw new Interrupted('The engine is closing.');
    return new Promise<Session>((resolve, reject) => {
      void this.start(job, session, resolve, reject);
    });
  }

  private async start(
    job: TrajectoryJob,
    session: Session,
    resolve: (s: Session) => void,
    reject: (e: unknown) => void,
  ): Promise<void> {
    const controller = new AbortController();
    const stopDeadline = this.startDeadline(job, controller);
    const onAbort = (): void => {
      const cause: unknown = job.signal?.reason;
      // A plain abort() is a request like any other, not a failure of the trajectory.
      controller.abort(isStudioError(cause) ? cause : new Cancelled('The trajectory was stopped.', {}, { cause }));
    };
    if (job.signal?.aborted) onAbort();
    else job.signal?.addEventListener('abort', onAbort, { once: true });
    let env: AgentEnv | null = null;
    const entry = { job, session, controller } as Running;
    const settle = (): void => {
      stopDeadline();
      job.signal?.removeEventListener('abort', onAbort);
      this.running.delete(entry);
      void env
        ?.close()
        .catch((error) =>
          this.options.logger.warn({ err: error, trajectoryId: job.trajectoryId }, 'environment did not close'),
        );
    };
    entry.resolve = (value) => {
      settle();
      resolve(value);
    };
    entry.reject = (error) => {
      settle();
      reject(error);
    };
    this.running.add(entry);
    try {
      env = job.makeEnv();
      entry.env = env;
    } catch (error) {
      await this.end(entry, error);
      return;
    }
    this.hand(entry);
  }

  /** Aborts at the deadline; as long as no replica served anybody the clock stood still. */
  private startDeadline(job: TrajectoryJob, controller: AbortController): () => void {
    const stoppedMs = (): number => this.options.backend.stoppedMs?.() ?? 0;
    let counted = stoppedMs();
    let timer: NodeJS.Timeout;
    const wait = (ms: number): void => {
      timer = setTimeout(
        () => {
          const stopped = stoppedMs() - counted;
          counted += stopped;
          if (stopped > 0) wait(stopped);
          // The skill's whole time, not what was left of it: one kind of failure reads the same everywhere.
          else
            controller.abort(new TimedOut(`The trajectory passed its deadline of ${job.skill.deadlineMs / 1000} s.`));
        },
        Math.max(0, ms),
      );
    };
    wait(job.deadlineMs);
    return () => clearTimeout(timer);
  }

  stats(): { running: number; waitingForInference: number; waitingForTools: number; inFlight: number } {
    const { inFlight, waiting } = this.inference.stats();
    return {
      running: this.running.size,
      waitingForInference: this.toInference.waiting + waiting,
      waitingForTools: this.toTools.waiting,
      inFlight,
    };
  }

  /** Lets every trajectory go where it stands; their logs say how far they came. */
  async close(): Promise<void> {
    this.closing = true;
    for (const entry of this.running) entry.controller.abort(new Interrupted('The engine is closing.'));
    this.toInference.close();
    this.toTools.close();
    await Promise.all([...this.loops, this.inference.close()]);
    for (const entry of [...this.running]) entry.reject(new Interrupted('The engine is closing.'));
  }

  /** Puts a trajectory in front of the side its next step belongs to. */
  private hand(entry: Running): void {
    const { session, job } = entry;
    const done = session.state.phase === 'done';
    const outdated = done ? null : (job.outdated?.(session) ?? null);
    if (done) entry.resolve(session);
    else if (outdated) void this.end(entry, outdated);
    else if (session.state.phase === 'act') this.toTools.put(entry);
    else this.toInference.put(entry);
  }

  private async work(queue: WorkQueue<Running>): Promise<void> {
    for (let entry = await queue.take(); entry; entry = await queue.take()) {
      try {
        await harnessStep(entry.session, this.depsOf(entry), entry.controller.signal);
        this.hand(entry);
      } catch (error) {
        await this.end(entry, error);
      }
    }
  }

  private depsOf(entry: Running): Parameters<typeof harnessStep>[1] {
    const { backend, capabilities, ambient } = this.options;
    const { job, env } = entry;
    return {
      backend,
      capabilities,
      skill: job.skill,
      env,
      seed: job.seed,
      trajectoryId: job.trajectoryId,
      generate: this.inference.generate,
      outdated: () => job.outdated?.(entry.session) ?? null,
      now: ambient.now,
      random: ambient.random,
    };
  }

  /** A step failed: writes the end that the failure means, or lets the trajectory go when it is to be resumed. */
  private async end(entry: Running, thrown: unknown): Promise<void> {
    const { session, controller, job } = entry;
    // After an abort the first cause is what counts, whatever the step made of it.
    const cause = controller.signal.aborted ? controller.signal.reason : thrown;
    if (
      cause instanceof Interrupted ||
      cause instanceof Outdated ||
      cause instanceof Conflict ||
      // The database may be back for the very next statement; that is no end of a trajectory.
      session.isOutage(cause)
    ) {
      entry.reject(cause);
      return;
    }
    const status =
      cause instanceof TimedOut && controller.signal.aborted
        ? 'timed_out'
        : cause instanceof Cancelled
          ? 'cancelled'
          : 'failed';
    const error = cause instanceof Error ? cause : new Error(String(cause));
    if (status === 'failed')
      this.options.logger.warn({ err: error, trajectoryId: job.trajectoryId }, 'trajectory failed');
    try {
      await session.append([
        {
          type: 'task.completed',
          data: {
            status,
            reward: null,
            components: {},
            answer: null,
            success: null,
            reason: isStudioError(error) ? error.message : `${error.name}: ${error.message}`,
            error: { message: error.message, stack: error.stack ?? null },
          },
        },
      ]);
      entry.resolve(session);
    } catch (failure) {
      entry.reject(failure);
    }
  }
}

function endOf(session: Session): EventData['task.completed'] {
  if (!session.state.end) throw new Error(`Session ${session.sessionId} has no end.`);
  return session.state.end;
}
