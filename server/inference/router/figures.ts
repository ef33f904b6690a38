/** What each server tells of itself, read every few seconds while someone looks. */
import type { Ambient } from '../../core/ambient';
import type { ServerFigures } from '../../core/inference';
import { figuresBetween, type MetricSample, readMetrics } from '../server-metrics';
import { within } from './failures';
import type { Replica } from './replica';

const STEP_MS = 5000;
/** Whoever looks asks far more often. */
const LOOKED_AT_MS = 30_000;
const READ_MS = 4000;

interface Told {
  sample: MetricSample;
  figures: ServerFigures;
}

export class FigureWatch {
  readonly #replicas: readonly Replica[];
  readonly #ambient: Ambient;
  readonly #stepMs: number;
  readonly #told = new Map<Replica, Told>();
  #lookedAtMs = 0;
  #timer: NodeJS.Timeout | null = null;
  #closed = false;

  constructor(replicas: readonly Replica[], ambient: Ambient, stepMs = STEP_MS) {
    this.#replicas = replicas;
    this.#ambient = ambient;
    this.#stepMs = stepMs;
  }

  /** Someone looks: the servers are asked from now on, until nobody has looked for half a minute. */
  look(): void {
    this.#lookedAtMs = this.#ambient.now();
    if (this.#timer || this.#closed) return;
    const step = async (): Promise<void> => {
      await Promise.all(this.#replicas.map((replica) => this.#read(replica)));
      if (this.#closed) return;
      const looked = this.#ambient.now() - this.#lookedAtMs < LOOKED_AT_MS;
      this.#timer = looked ? setTimeout(() => void step(), this.#stepMs) : null;
      this.#timer?.unref();
      // By the time someone looks again it would be shown as what is now.
      if (!looked) this.#told.clear();
    };
    this.#timer = setTimeout(() => void step(), 0);
  }

  /** Null while the server does not tell. */
  of(replica: Replica): ServerFigures | null {
    return this.#told.get(replica)?.figures ?? null;
  }

  close(): void {
    this.#closed = true;
    if (this.#timer) clearTimeout(this.#timer);
  }

  async #read(replica: Replica): Promise<void> {
    const { metrics } = replica;
    const silence = `The server ${replica.url} did not give its metrics`;
    const text = metrics && replica.serving ? await within(metrics.read(), READ_MS, silence).catch(() => null) : null;
    if (!metrics || text === null) {
      this.#told.delete(replica);
      return;
    }
    const sample = readMetrics(text, metrics.names, this.#ambient.now());
    this.#told.set(replica, { sample, figures: figuresBetween(this.#told.get(replica)?.sample ?? null, sample) });
  }
}
