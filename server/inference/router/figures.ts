/** What each server tells of itself over time, read only while someone looks, and kept for half an hour. */
import type { Ambient } from '../../core/ambient';
import type { ServerFigures } from '../../core/inference';
import type { BackendHistoryPoint } from '../../core/views';
import type { ReplicaStatus } from '../backend';
import { figuresBetween, type MetricSample, readMetrics } from '../server-metrics';
import { within } from './failures';
import type { Replica } from './replica';

export const FIGURE_STEP_MS = 5000;
const KEPT_MS = 30 * 60_000;
/** A page asks far more often. */
const LOOKED_AT_MS = 30_000;
const READ_MS = 4000;

interface Record {
  sample: MetricSample | null;
  figures: ServerFigures | null;
  /** Oldest first; at most as many as fit into KEPT_MS. */
  points: BackendHistoryPoint[];
}

export class FigureWatch {
  readonly #replicas: readonly Replica[];
  readonly #ambient: Ambient;
  readonly #statusOf: (replica: Replica) => ReplicaStatus;
  readonly #stepMs: number;
  readonly #records: ReadonlyMap<Replica, Record>;
  #lookedAtMs = 0;
  #timer: NodeJS.Timeout | null = null;
  #closed = false;

  constructor(
    replicas: readonly Replica[],
    ambient: Ambient,
    statusOf: (replica: Replica) => ReplicaStatus,
    stepMs = FIGURE_STEP_MS,
  ) {
    this.#replicas = replicas;
    this.#ambient = ambient;
    this.#statusOf = statusOf;
    this.#stepMs = stepMs;
    this.#records = new Map(replicas.map((replica) => [replica, { sample: null, figures: null, points: [] }]));
  }

  /** Someone looks: the servers are asked from now on, until nobody has looked for a while. */
  watch(): void {
    this.#lookedAtMs = this.#ambient.now();
    if (this.#timer || this.#closed) return;
    const step = async (): Promise<void> => {
      await Promise.all(this.#replicas.map((replica) => this.#read(replica)));
      if (this.#closed) return;
      const since = this.#ambient.now() - this.#lookedAtMs;
      this.#timer = since < LOOKED_AT_MS ? setTimeout(() => void step(), this.#stepMs) : null;
      this.#timer?.unref();
      // What is old by the time someone looks again would be shown as what is now.
      if (!this.#timer)
        for (const record of this.#records.values()) Object.assign(record, { sample: null, figures: null });
    };
    this.#timer = setTimeout(() => void step(), 0);
  }

  figuresOf(replica: Replica): ServerFigures | null {
    return this.#records.get(replica)?.figures ?? null;
  }

  history(replica: Replica): BackendHistoryPoint[] {
    return [...(this.#records.get(replica)?.points ?? [])];
  }

  close(): void {
    this.#closed = true;
    if (this.#timer) clearTimeout(this.#timer);
  }

  async #read(replica: Replica): Promise<void> {
    const record = this.#records.get(replica);
    if (!record) return;
    const { metrics } = replica;
    const text = metrics && replica.serving ? await within(metrics.read(), READ_MS, '').catch(() => null) : null;
    const atMs = this.#ambient.now();
    const sample = metrics && text !== null ? readMetrics(text, metrics.names, atMs) : null;
    record.figures = sample && figuresBetween(record.sample, sample);
    record.sample = sample;
    const { state, inFlight, errors, weightVersion } = this.#statusOf(replica);
    record.points.push({ atMs, state, inFlight, errors, weightVersion, figures: record.figures });
    const tooMany = record.points.length - Math.ceil(KEPT_MS / this.#stepMs);
    const tooOld = record.points.findIndex((point) => atMs - point.atMs <= KEPT_MS);
    const gone = Math.max(tooMany, tooOld, 0);
    if (gone > 0) record.points.splice(0, gone);
  }
}
