/**
 * The inference side's door to a backend: keeps as many requests in flight as the backend can use, so that its own
 * continuous batching stays full, and merges waiting requests for a backend that wants batches.
 */
import { Cancelled } from '../core/errors';
import type { GenerationRequest, GenerationResult, InferenceBackend } from '../inference/backend';
import { WorkQueue } from './work-queue';

interface Waiting {
  request: GenerationRequest;
  since: number;
  resolve(value: { result: GenerationResult; queuedMs: number }): void;
  reject(error: unknown): void;
}

export class InferenceSide {
  private readonly queue = new WorkQueue<Waiting>();
  private readonly sending = new Set<Promise<void>>();
  private inFlight = 0;
  private planned = false;
  private closed = false;

  /** @param maxInFlight requests with the backend at once. @param batchSize requests merged into one call. */
  constructor(
    private readonly backend: Pick<InferenceBackend, 'generate'>,
    private readonly limits: { maxInFlight: number; batchSize: number },
    private readonly now: () => number,
  ) {}

  /**
   * Rejects as soon as the request's signal says stop, whether it waits, is with a backend that listens, or with one
   * that does not; a place in flight is free again only when the backend has let go.
   */
  generate = (request: GenerationRequest): Promise<{ result: GenerationResult; queuedMs: number }> =>
    new Promise((resolve, reject) => {
      const { signal } = request;
      if (this.closed) return reject(closedError());
      if (signal?.aborted) return reject(stopReason(signal));
      const onAbort = (): void => reject(stopReason(signal));
      signal?.addEventListener('abort', onAbort, { once: true });
      this.queue.put({
        request,
        since: this.now(),
        resolve(value) {
          signal?.removeEventListener('abort', onAbort);
          resolve(value);
        },
        reject(error) {
          signal?.removeEventListener('abort', onAbort);
          reject(error);
        },
      });
      this.plan();
    });

  stats(): { inFlight: number; waiting: number } {
    return { inFlight: this.inFlight, waiting: this.queue.waiting };
  }

  async close(): Promise<void> {
    this.closed = true;
    for (let item = this.queue.takeNow(); item; item = this.queue.takeNow()) item.reject(closedError());
    await Promise.all(this.sending);
  }

  /** Sends after this turn of the event loop, so that what is asked for at the same time goes out in one call. */
  private plan(): void {
    if (this.planned) return;
    this.planned = true;
    setImmediate(() => {
      this.planned = false;
      this.sendWaiting();
    });
  }

  private sendWaiting(): void {
    const { maxInFlight, batchSize } = this.limits;
    while (this.inFlight < maxInFlight && this.queue.waiting > 0) {
      const batch = this.takeBatch(Math.min(batchSize, maxInFlight - this.inFlight));
      if (batch.length === 0) return;
      this.inFlight += batch.length;
      const sent = this.send(batch).finally(() => {
        this.inFlight -= batch.length;
        this.sending.delete(sent);
        this.plan();
      });
      this.sending.add(sent);
    }
  }

  /** A request whose trajectory has stopped never reaches the backend. */
  private takeBatch(most: number): Waiting[] {
    const batch: Waiting[] = [];
    while (batch.length < most) {
      const item = this.queue.takeNow();
      if (!item) break;
      if (!item.request.signal?.aborted) batch.push(item);
    }
    return batch;
  }

  private async send(batch: Waiting[]): Promise<void> {
    const sentAt = this.now();
    try {
      const results = await this.backend.generate(batch.map((item) => item.request));
      batch.forEach((item, i) => {
        const settled = results[i];
        if (settled?.status === 'fulfilled') item.resolve({ result: settled.value, queuedMs: sentAt - item.since });
        else item.reject(settled ? settled.reason : new Error('The backend returned fewer results than requests.'));
      });
    } catch (error) {
      for (const item of batch) item.reject(error);
    }
  }
}

const closedError = (): Cancelled => new Cancelled('The inference side was closed.');
const stopReason = (signal: AbortSignal | undefined): unknown =>
  signal?.reason ?? new Cancelled('The trajectory was stopped.');
