/**
 * Scoring that goes on in the background of this process: one job a run at a time, seen and stopped by its run. The
 * last job of each target is remembered.
 */
import { Cancelled, Conflict, isStudioError } from '../../core/errors';
import type { ScoreJobView, ScoreTarget } from '../../core/views';

/** What a job moves while it works. */
export type ScoreProgress = Pick<ScoreJobView, 'total' | 'done' | 'scored' | 'alreadyScored' | 'approximate'>;

interface Job {
  view: ScoreJobView;
  stop: AbortController;
  ended: Promise<void>;
}

/** Ended jobs are remembered for this many runs. */
const KEPT = 256;

export class ScoreJobs {
  /** Of each run by target, the newest last. */
  readonly #jobs = new Map<string, Map<ScoreTarget, Job>>();

  constructor(private readonly now: () => number) {}

  /** Begins the work and returns at once. Throws Conflict while another job of the run goes on. */
  start(
    about: Pick<ScoreJobView, 'runId' | 'as' | 'backendName'>,
    work: (progress: ScoreProgress, signal: AbortSignal) => Promise<void>,
    onFault: (error: unknown) => void,
  ): ScoreJobView {
    const { runId } = about;
    if (this.#newest(runId)?.view.status === 'running')
      throw new Conflict(`The run ${runId} is being scored already. Wait for that to end, or cancel it.`);
    const counts = { total: 0, done: 0, scored: 0, alreadyScored: 0, approximate: 0 };
    const view: ScoreJobView = {
      ...about,
      ...counts,
      status: 'running',
      error: null,
      startedAtMs: this.now(),
      finishedAtMs: null,
    };
    const stop = new AbortController();
    const ended = work(view, stop.signal).then(
      () => this.#end(view, 'succeeded', null),
      (error: unknown) => {
        if (stop.signal.aborted) return this.#end(view, 'cancelled', null);
        if (!isStudioError(error)) onFault(error);
        this.#end(view, 'failed', isStudioError(error) ? error.message : 'Scoring failed; the log says why.');
      },
    );
    const ofRun = this.#jobs.get(runId) ?? new Map<ScoreTarget, Job>();
    ofRun.delete(about.as);
    ofRun.set(about.as, { view, stop, ended });
    this.#jobs.delete(runId);
    this.#jobs.set(runId, ofRun);
    this.#forget();
    return { ...view };
  }

  /** The job of the run that goes on or ended last; null when there was none in this process. */
  get(runId: string): ScoreJobView | null {
    const job = this.#newest(runId);
    return job ? { ...job.view } : null;
  }

  /** The last job of each target, newest first. */
  list(runId: string): ScoreJobView[] {
    return [...(this.#jobs.get(runId)?.values() ?? [])].reverse().map(({ view }) => ({ ...view }));
  }

  /** What was scored stays. False when nothing goes on. Resolves when the job has ended. */
  async cancel(runId: string): Promise<boolean> {
    const job = this.#newest(runId);
    if (job?.view.status !== 'running') return false;
    job.stop.abort(new Cancelled('The scoring was cancelled.'));
    await job.ended;
    return true;
  }

  /** Cancels everything and waits for it. */
  async stop(): Promise<void> {
    await Promise.all([...this.#jobs.keys()].map((runId) => this.cancel(runId)));
  }

  #newest(runId: string): Job | undefined {
    return [...(this.#jobs.get(runId)?.values() ?? [])].at(-1);
  }

  #end(view: ScoreJobView, status: ScoreJobView['status'], error: string | null): void {
    Object.assign(view, { status, error, finishedAtMs: this.now() });
  }

  #forget(): void {
    for (const runId of this.#jobs.keys()) {
      if (this.#jobs.size <= KEPT) return;
      if (this.#newest(runId)?.view.status !== 'running') this.#jobs.delete(runId);
    }
  }
}
