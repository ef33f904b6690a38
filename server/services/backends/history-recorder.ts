/** Writes down, every few seconds, what the replicas of the open backends told: the points of the charts. In memory. */
import type { BackendHistory, BackendHistoryPoint } from '../../core/views';
import type { InferenceBackend } from '../../inference/backend';

export interface HistoryRecorderOptions {
  /** The backends that are open now, by name. */
  opened(): ReadonlyMap<string, InferenceBackend>;
  now(): number;
  stepMs?: number;
  /** How far back it goes. */
  keptMs?: number;
}

const STEP_MS = 5_000;
const KEPT_MS = 3_600_000;

export class HistoryRecorder {
  readonly #options: HistoryRecorderOptions;
  readonly #stepMs: number;
  readonly #keptMs: number;
  /** By name of the backend, then by address. */
  readonly #points = new Map<string, Map<string, BackendHistoryPoint[]>>();
  #timer: NodeJS.Timeout | undefined;

  constructor(options: HistoryRecorderOptions) {
    this.#options = options;
    this.#stepMs = options.stepMs ?? STEP_MS;
    this.#keptMs = options.keptMs ?? KEPT_MS;
  }

  start(): void {
    this.#timer = setInterval(() => this.record(), this.#stepMs);
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** One point of every replica, and nothing older than is kept. */
  record(): void {
    const opened = this.#options.opened();
    const atMs = this.#options.now();
    for (const [name, backend] of opened) {
      const replicas = this.#points.get(name) ?? new Map<string, BackendHistoryPoint[]>();
      this.#points.set(name, replicas);
      for (const { url, state, inFlight, errors, weightVersion, figures } of backend.replicas?.() ?? []) {
        const points = replicas.get(url) ?? [];
        replicas.set(url, points);
        points.push({ atMs, state, inFlight, errors, weightVersion, figures });
      }
    }
    this.#forget(atMs - this.#keptMs);
  }

  /** Replicas in the order in which they were first seen. */
  history(name: string): BackendHistory {
    const replicas = [...(this.#points.get(name) ?? [])].map(([url, points]) => ({ url, points: [...points] }));
    return { stepMs: this.#stepMs, replicas };
  }

  #forget(beforeMs: number): void {
    for (const [name, replicas] of this.#points) {
      for (const [url, points] of replicas) {
        const first = points.findIndex(({ atMs }) => atMs >= beforeMs);
        points.splice(0, first === -1 ? points.length : first);
        if (points.length === 0) replicas.delete(url);
      }
      if (replicas.size === 0) this.#points.delete(name);
    }
  }
}
