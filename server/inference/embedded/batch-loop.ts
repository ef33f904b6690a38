/**
 * Continuous batching: every turn of the loop evaluates one batch made of the next token of each generating sequence
 * and of pieces of waiting prompts, then lets each job read its logits. Jobs join and leave between two batches.
 */
import { Cancelled } from '../../core/errors';
import type { AddonContext } from './llama-addon';
import { commonPrefix, type Sequence, SequencePool } from './sequence-pool';

/**
 * Tokens of one sequence in one batch. From 64 on llama.cpp's CPU attention works in tiles that round differently,
 * and what a prompt's cache holds would depend on how it was cut: with quantised weights, whose activations are
 * rounded to 8 bits, that moved log-probabilities by up to 0.2. Below 64 the cut makes no difference. No slower on a CPU.
 */
const TOKENS_AT_ONCE = 63;
/** Logits positions a job may ask for in one batch: each is a whole vocabulary of floats. */
const LOGITS_AT_ONCE = 32;

/** The job had not begun when its weights were replaced: begin it again on the new ones. */
export class WeightsChanged extends Error {}

/** One request's work on one sequence. */
export interface Job {
  readonly key: string;
  /** Tokens the sequence must hold before the job can go on; grows as the job samples. */
  readonly tokens: number[];
  /** Logits are wanted at positions from here on, each for the token after it. */
  readonly logitsFrom: number;
  /** The first batch has been evaluated or is about to be: from now on the job's weights are fixed. */
  start(): void;
  /** Reads the logits of `positions`. Returns true when the job has all it wants. */
  read(logits: { position: number; index: number }[]): Promise<boolean>;
  /** Called once, when the job leaves for whatever reason. */
  end(error: Error | null): void;
}

interface Running {
  job: Job;
  sequence: Sequence;
  /** Tokens of the job that are evaluated. */
  evaluated: number;
}

export class BatchLoop {
  readonly #context: AddonContext;
  readonly #batchSize: number;
  readonly #pool: SequencePool;
  readonly #waiting: Job[] = [];
  #running: Running[] = [];
  readonly #cancelled = new Set<Job>();
  #turning = false;
  #retired = false;
  #whenIdle: (() => void) | null = null;

  constructor(context: AddonContext, options: { sequences: number; batchSize: number }) {
    this.#context = context;
    this.#batchSize = options.batchSize;
    this.#pool = new SequencePool(options.sequences);
  }

  add(job: Job): void {
    if (this.#retired) {
      job.end(new WeightsChanged());
      return;
    }
    this.#waiting.push(job);
    if (!this.#turning) void this.#turn();
  }

  /** The job ends with Cancelled: at once when it still waits, else after the batch in progress. */
  cancel(job: Job): void {
    const at = this.#waiting.indexOf(job);
    if (at >= 0) {
      this.#waiting.splice(at, 1);
      job.end(cancelled());
    } else if (this.#running.some((running) => running.job === job)) this.#cancelled.add(job);
  }

  /** Ends the jobs that have not begun with WeightsChanged, and settles when those that have are done. */
  async retire(): Promise<void> {
    this.#retired = true;
    for (const job of this.#waiting.splice(0)) job.end(new WeightsChanged());
    if (!this.#turning) return;
    await new Promise<void>((settle) => {
      this.#whenIdle = settle;
    });
  }

  async #turn(): Promise<void> {
    this.#turning = true;
    // Requests that arrive together start together.
    await new Promise((next) => setImmediate(next));
    try {
      for (;;) {
        this.#dropCancelled();
        this.#admit();
        if (this.#running.length === 0) break;
        await this.#evaluate();
      }
    } finally {
      this.#turning = false;
      this.#whenIdle?.();
    }
  }

  #dropCancelled(): void {
    if (this.#cancelled.size === 0) return;
    for (const running of [...this.#running]) if (this.#cancelled.has(running.job)) this.#leave(running, cancelled());
    this.#cancelled.clear();
  }

  #admit(): void {
    for (;;) {
      const job = this.#waiting[0];
      if (!job) return;
      const sequence = this.#pool.take(job.key, Int32Array.from(job.tokens));
      if (!sequence) return;
      this.#waiting.shift();
      // The last position must be evaluated again even when all is held: its logits are wanted.
      const shared = Math.min(commonPrefix(sequence.held, job.tokens), job.logitsFrom);
      this.#running.push({ job, sequence, evaluated: this.#forget(sequence, shared) });
      job.start();
    }
  }

  /** Drops what a sequence holds from position `from` on. Returns how much it still holds. */
  #forget(sequence: Sequence, from: number): number {
    if (sequence.held.length === from) return from;
    const kept = from > 0 && this.#context.removeTokenCellsFromSequence(sequence.id, from, -1) ? from : 0;
    // Some architectures (recurrent ones) cannot forget a part: then everything is evaluated again.
    if (kept === 0) this.#context.disposeSequence(sequence.id);
    sequence.held.length = kept;
    return kept;
  }

  async #evaluate(): Promise<void> {
    const parts = this.#plan();
    const total = parts.reduce((sum, part) => sum + part.count, 0);
    let wanted: { running: Running; logits: { position: number; index: number }[] }[];
    try {
      this.#context.initBatch(total);
      wanted = parts.map(({ running, count }) => {
        const { job, sequence, evaluated } = running;
        const positions: number[] = [];
        for (let p = Math.max(evaluated, job.logitsFrom); p < evaluated + count; p++) positions.push(p);
        const tokens = Uint32Array.from(job.tokens.slice(evaluated, evaluated + count));
        const indexes = this.#context.addToBatch(
          sequence.id,
          evaluated,
          tokens,
          Uint32Array.from(positions, (p) => p - evaluated),
        );
        return { running, logits: positions.map((position, k) => ({ position, index: indexes[k] ?? 0 })) };
      });
      await this.#context.decodeBatch();
    } catch (error) {
      // What the sequences of this batch hold is not known any more.
      for (const { running } of parts) {
        this.#forget(running.sequence, 0);
        this.#leave(running, error instanceof Error ? error : new Error(String(error)));
      }
      return;
    }
    for (const { running, count } of parts) {
      for (let k = 0; k < count; k++) running.sequence.held.push(running.job.tokens[running.evaluated + k] ?? 0);
      running.evaluated += count;
    }
    // One after another: llama.cpp reorders its outputs on the first read, and two reads at once have been seen to
    // sample from each other's numbers.
    for (const { running, logits } of wanted) {
      if (logits.length === 0) continue;
      try {
        if (await running.job.read(logits)) this.#leave(running, null);
      } catch (error) {
        this.#leave(running, error instanceof Error ? error : new Error(String(error)));
      }
    }
  }

  /** One token for each sequence that is generating; the rest of the batch goes to prompts, oldest first. */
  #plan(): { running: Running; count: number }[] {
    const parts: { running: Running; count: number }[] = [];
    let room = this.#batchSize;
    const byPending = [...this.#running].sort((a, b) => Number(pending(a) > 1) - Number(pending(b) > 1));
    for (const running of byPending) {
      const unread = Math.max(0, running.job.logitsFrom - running.evaluated);
      const count = Math.min(pending(running), TOKENS_AT_ONCE, unread + LOGITS_AT_ONCE, room);
      if (count <= 0) continue;
      parts.push({ running, count });
      room -= count;
    }
    return parts;
  }

  #leave(running: Running, error: Error | null): void {
    this.#running = this.#running.filter((other) => other !== running);
    this.#pool.release(running.sequence);
    running.job.end(error);
  }
}

function pending(running: Running): number {
  return running.job.tokens.length - running.evaluated;
}

function cancelled(): Cancelled {
  return new Cancelled('The generation was stopped on request.');
}
