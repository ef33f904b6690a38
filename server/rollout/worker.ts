/**
 * A worker: takes trajectories from the queue in the database, rolls them out, writes their ends. It does not assume
 * that it is alone: what it claims it holds by a lease it renews, and what it loses it drops at once.
 */
import type { Database } from '../../db/connection';
import { toStudioError } from '../../db/database-errors';
import { cancelledRunIds } from '../../db/queries/cancelled-runs';
import { appendRunEvent } from '../../db/queries/events';
import { giveBackTrajectory, requeueTrajectory } from '../../db/queries/give-back';
import { endedGroupIds, unfinishedRunIds } from '../../db/queries/groups';
import {
  type ClaimedTrajectory,
  claimTrajectories,
  releaseAll,
  releaseWorker,
  renewLeases,
  startRuns,
} from '../../db/queries/trajectories';
import type { Ambient } from '../core/ambient';
import { Cancelled, Conflict, isStudioError, isTransient } from '../core/errors';
import type { Logger } from '../observability/logger';
import { type AsyncRolloutEngine, Interrupted, Outdated, type TrajectoryJob } from './engine';
import { settleGroup, settleRun, settleTrajectory } from './settle';

/** What a trajectory of one run needs, the same for all its trajectories. */
export interface RunMaterial {
  engine: AsyncRolloutEngine;
  jobFor(claim: ClaimedTrajectory): Pick<TrajectoryJob, 'skill' | 'makeEnv' | 'outdated'> & { deadlineMs: number };
  /** What it is made from is not needed any more. */
  release(): void;
}

export interface WorkerOptions {
  database: Database;
  ambient: Ambient;
  logger: Logger;
  /** Trajectories held at once. */
  capacity: number;
  materialOf(claim: ClaimedTrajectory): Promise<RunMaterial>;
  /** Ends the log of a trajectory that could not even begin. */
  failBeforeStart(claim: ClaimedTrajectory, error: unknown): Promise<TrajectoryEndSession>;
  runLogGrew(runId: string): void;
  leaseMs?: number;
  pollMs?: number;
  /** Between two attempts at a trajectory whose end could not be written. */
  retryMs?: number;
}

type TrajectoryEndSession = Awaited<ReturnType<AsyncRolloutEngine['run']>>;

const RETRY_MS = 5_000;

interface Held {
  claim: ClaimedTrajectory;
  controller: AbortController;
  /** It is over and is being put back. */
  leaving: boolean;
  done: Promise<void>;
}

export class Worker {
  readonly workerId: string;
  #trouble: string | null = null;
  private readonly held = new Map<string, Held>();
  private readonly leaseMs: number;
  private readonly pollMs: number;
  private stopped = false;
  private wakeUp: () => void = () => undefined;
  private woken = false;
  private loop: Promise<void> = Promise.resolve();
  private heartbeat: NodeJS.Timeout | undefined;
  private renewing = false;

  constructor(private readonly options: WorkerOptions) {
    this.workerId = options.ambient.newId('wrk');
    this.leaseMs = options.leaseMs ?? 30_000;
    this.pollMs = options.pollMs ?? 1_000;
  }

  /** Puts right what a crash left between two transactions, then begins to claim. */
  async start(): Promise<void> {
    const { database } = this.options;
    // The embedded database belongs to this process alone, so every lease in it is a dead one's.
    if (database.kind === 'embedded') await releaseAll(database.db);
    for (const runId of await unfinishedRunIds(database.db)) await this.settleEnded(runId);
    this.loop = this.claimForEver();
    this.heartbeat = setInterval(() => void this.beat(), this.leaseMs / 3);
  }

  wake(): void {
    this.woken = true;
    this.wakeUp();
  }

  cancelRun(runId: string): void {
    for (const { claim, controller } of this.held.values())
      if (claim.runId === runId) controller.abort(new Cancelled('The run was cancelled.'));
  }

  /** Why nothing goes on now, as a sentence; null when all is well. */
  get trouble(): string | null {
    return this.#trouble;
  }

  get size(): number {
    return this.held.size;
  }

  /** Claims nothing more. What is held goes on only until its engine is closed; close those first, then `stop`. */
  stopClaiming(): void {
    this.stopped = true;
    this.wakeUp();
  }

  /** Waits for what is held, and puts back on the queue what did not end. */
  async stop(): Promise<void> {
    this.stopClaiming();
    clearInterval(this.heartbeat);
    await this.loop;
    await Promise.all([...this.held.values()].map((held) => held.done));
    await releaseWorker(this.options.database.db, this.workerId);
  }

  private async claimForEver(): Promise<void> {
    const { database, ambient, capacity } = this.options;
    while (!this.stopped) {
      this.woken = false;
      const free = capacity - this.held.size;
      let claimed = 0;
      if (free > 0) {
        try {
          await this.untilPutBack();
          // As it is now: what ends before the answer is here was claimed as its own all the same.
          const own = new Set([...this.held.values()].map((held) => held.claim.sessionId));
          const claims = await claimTrajectories(database.db, {
            workerId: this.workerId,
            limit: free,
            nowMs: ambient.now(),
            leaseMs: this.leaseMs,
          });
          // Its own lease ran out: this process slept, or the database was slow or away. The claim renewed it, and what
          // runs goes on; a second one beside it would take its tool calls for interrupted ones.
          const others = claims.filter((claim) => !own.has(claim.sessionId));
          // Only these are a reason to ask again at once: a slow database is asked less, not more.
          claimed = others.length;
          await this.announceStarts(others);
          for (const claim of others) this.take(claim);
          this.#trouble = null;
        } catch (error) {
          this.meet(error, 'the queue could not be read');
        }
      }
      if (this.stopped) return;
      if (!this.woken && (claimed === 0 || this.held.size >= capacity)) await this.rest();
    }
  }

  /** What is put back is free for the next claim, which must not take it for one that still runs. */
  private async untilPutBack(): Promise<void> {
    const leaving = (): Held[] => [...this.held.values()].filter((held) => held.leaving);
    for (let some = leaving(); some.length > 0; some = leaving()) await Promise.all(some.map((held) => held.done));
  }

  /** Keeps the reason for those who look at a run, and logs it once and not with every attempt. */
  private meet(error: unknown, what: string, where: object = {}): void {
    const told = toStudioError(error);
    const sentence = isStudioError(told) ? told.message : 'The worker met an error nobody foresaw; the log has it.';
    // What passes by itself is no error of the studio's.
    const level = isTransient(error) ? 'warn' : 'error';
    if (sentence !== this.#trouble) this.options.logger[level]({ ...where, err: error }, what);
    this.#trouble = sentence;
  }

  /** Until something is put on the queue, a place is free, or the poll interval has passed. */
  private rest(): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, this.pollMs);
      this.wakeUp = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  private async announceStarts(claims: ClaimedTrajectory[]): Promise<void> {
    const { database, ambient, runLogGrew } = this.options;
    for (const runId of await startRuns(database.db, [...new Set(claims.map((claim) => claim.runId))])) {
      await appendRunEvent(database.db, {
        runId,
        atMs: ambient.now(),
        type: 'run.started',
        data: { status: 'running' },
      });
      runLogGrew(runId);
    }
  }

  private take(claim: ClaimedTrajectory): void {
    const controller = new AbortController();
    const held: Held = { claim, controller, leaving: false, done: Promise.resolve() };
    this.held.set(claim.trajectoryId, held);
    held.done = this.rollOut(claim, controller.signal)
      .catch((error) => {
        held.leaving = true;
        return this.drop(claim, error);
      })
      .finally(() => {
        // Begun anew, it may be held again already.
        if (this.held.get(claim.trajectoryId) === held) this.held.delete(claim.trajectoryId);
        this.wake();
      });
  }

  private async rollOut(claim: ClaimedTrajectory, signal: AbortSignal): Promise<void> {
    const { database, ambient } = this.options;
    const session = await this.runToEnd(claim, signal);
    const nowMs = ambient.now();
    await database.db.transaction((tx) => settleTrajectory(tx, { ...claim, workerId: this.workerId, session }, nowMs));
    this.options.runLogGrew(claim.runId);
  }

  private async runToEnd(claim: ClaimedTrajectory, signal: AbortSignal): Promise<TrajectoryEndSession> {
    const { ambient } = this.options;
    let material: RunMaterial | null = null;
    let job: ReturnType<RunMaterial['jobFor']>;
    try {
      material = await this.options.materialOf(claim);
      job = material.jobFor(claim);
    } catch (error) {
      material?.release();
      if (error instanceof Interrupted || this.stopped) throw new Interrupted('The worker is stopping.');
      // It has not begun and loses nothing: it is tried again until what it needs is there.
      if (isTransient(error)) throw error;
      return this.options.failBeforeStart(claim, error);
    }
    try {
      return await material.engine.run({
        ...job,
        trajectoryId: claim.trajectoryId,
        sessionId: claim.sessionId,
        runId: claim.runId,
        seed: claim.seed,
        fresh: claim.claims === 1,
        // Time that passed under an earlier worker counts.
        deadlineMs: job.deadlineMs - (ambient.now() - claim.startedAtMs),
        signal,
      });
    } finally {
      material.release();
    }
  }

  /**
   * One at a time: a database that answers slower than this beats would get ever more of them, which first slow and
   * then shut out the statements that bring a trajectory to its end.
   */
  private async beat(): Promise<void> {
    if (this.renewing) return;
    this.renewing = true;
    try {
      await this.renew();
    } catch (error) {
      this.options.logger.warn({ err: error }, 'leases could not be renewed');
    } finally {
      this.renewing = false;
    }
  }

  /** Keeps what is held; drops what was lost to another worker, and what was cancelled elsewhere. */
  private async renew(): Promise<void> {
    const { database, ambient } = this.options;
    if (this.held.size === 0) return;
    // What is claimed while the database answers is none of those.
    const held = [...this.held];
    const kept = new Set(
      await renewLeases(database.db, {
        workerId: this.workerId,
        trajectoryIds: held.map(([trajectoryId]) => trajectoryId),
        nowMs: ambient.now(),
        leaseMs: this.leaseMs,
      }),
    );
    for (const [trajectoryId, { controller }] of held)
      if (!kept.has(trajectoryId)) controller.abort(new Interrupted('Another worker holds this trajectory.'));
    const runs = [...new Set([...this.held.values()].map(({ claim }) => claim.runId))];
    for (const runId of await cancelledRunIds(database.db, runs)) this.cancelRun(runId);
  }

  private async settleEnded(runId: string): Promise<void> {
    const { database, ambient } = this.options;
    const nowMs = ambient.now();
    for (const groupId of await endedGroupIds(database.db, runId))
      await database.db.transaction((tx) => settleGroup(tx, groupId, nowMs));
    await database.db.transaction((tx) => settleRun(tx, runId, nowMs));
  }

  /** A trajectory that could not be kept: lost to another worker, interrupted, or its end could not be written. */
  private async drop(claim: ClaimedTrajectory, error: unknown): Promise<void> {
    const { logger, database, ambient } = this.options;
    const where = { trajectoryId: claim.trajectoryId, runId: claim.runId };
    if (error instanceof Outdated) {
      logger.debug({ ...where, reason: error.message }, 'trajectory begun anew');
      await requeueTrajectory(database.db, {
        trajectoryId: claim.trajectoryId,
        workerId: this.workerId,
        sessionId: ambient.newId('ses'),
      });
      this.options.runLogGrew(claim.runId);
      return;
    }
    if (error instanceof Interrupted) {
      logger.debug({ ...where, reason: error.message }, 'trajectory let go');
      // Its backend was opened anew; what this process holds when it stops is put back as one.
      if (!this.stopped) await this.giveBack(claim);
      return;
    }
    // A conflict means most often that another worker holds it, and giving it back then changes nothing. Where it is
    // still ours (an append whose acknowledgement was lost came twice) nobody else would ever take it up again.
    if (error instanceof Conflict) logger.debug({ ...where, reason: error.message }, 'trajectory let go');
    else this.meet(error, 'trajectory could not be kept; it is tried again from its log', where);
    await this.giveBack(claim);
  }

  /** Nothing changes where another worker holds it. */
  private async giveBack({ trajectoryId }: ClaimedTrajectory): Promise<void> {
    const { database, ambient, retryMs = RETRY_MS } = this.options;
    const back = { trajectoryId, workerId: this.workerId, afterMs: ambient.now() + retryMs };
    // When the database is gone this fails too; then the lease runs out by itself.
    await giveBackTrajectory(database.db, back).catch(() => undefined);
  }
}
