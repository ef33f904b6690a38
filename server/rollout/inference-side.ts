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
  private readonly loops: Promise<void>[];
  private inFlight = 0;

  /** @param maxInFlight requests with the backend at once. @param batchSize requests merged into one call. */
  constructor(
    private readonly backend: Pick<InferenceBackend, 'generate'>,
    private readonly limits: { maxInFlight: number; batchSize: number },
    private readonly now: () => number,
  ) {
    const calls = Math.max(1, Math.ceil(limits.maxInFlight / limits.batchSize));
    this.loops = Array.from({ length: calls }, () => this.work());
  }

  generate = (request: GenerationRequest): Promise<{ result: GenerationResult; queuedMs: number }> =>
    new Promise((resolve, reject) => this.queue.put({ request, since: this.now(), resolve, reject }));

  stats(): { inFlight: number; waiting: number } {
    return { inFlight: this.inFlight, waiting: this.queue.waiting };
  }

  async close(): Promise<void> {
    for (let item = this.queue.takeNow(); item; item = this.queue.takeNow())
      item.reject(new Cancelled('The inference side was closed.'));
    this.queue.close();
    await Promise.all(this.loops);
  }

  private async work(): Promise<void> {
    for (;;) {
      const first = await this.queue.take();
      if (!first) return;
      const batch = [first];
      while (batch.length < this.limits.batchSize) {
        const next = this.queue.takeNow();
        if (!next) break;
        batch.push(next);
      }
      await this.send(batch.filter((item) => !dropAborted(item)));
    }
  }

  private async send(batch: Waiting[]): Promise<void> {
    if (batch.length === 0) return;
    const sentAt = this.now();
    this.inFlight += batch.length;
    try {
      const results = await this.backend.generate(batch.map((item) => item.request));
      batch.forEach((item, i) => {
        const settled = results[i];
        if (settled?.status === 'fulfilled') item.resolve({ result: settled.value, queuedMs: sentAt - item.since });
        else item.reject(settled ? settled.reason : new Error('The backend returned fewer results than requests.'));
      });
    } catch (error) {
      for (const item of batch) item.reject(error);
    } finally {
      this.inFlight -= batch.length;
    }
  }
}

/** A request whose trajectory has stopped never reaches the backend. */
function dropAborted(item: Waiting): boolean {
  if (!item.request.signal?.aborted) return false;
  item.reject(item.request.signal.reason ?? new Cancelled('The trajectory was stopped.'));
  return true;
}
