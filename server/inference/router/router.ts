/**
 * Many servers as one backend. While none of them can serve, requests wait, and a person is told why; what a server
 * broke off is sent again. Placing: placement.ts; sending and retrying: dispatcher.ts; one server: replica.ts.
 */
import type { Ambient } from '../../core/ambient';
import { Invalid, Unavailable } from '../../core/errors';
import type { ChatMessage } from '../../core/events';
import type { BackendHealth } from '../../core/inference';
import type { Logger } from '../../observability/logger';
import type {
  BackendCapabilities,
  CompletionScores,
  EncodedText,
  GenerationRequest,
  GenerationResult,
  InferenceBackend,
  ReplicaStatus,
  ScoreOptions,
  ScorePair,
  TemplateOptions,
  WeightUpdate,
} from '../backend';
import { checkSampling } from '../sampling';
import { AnyServer } from './any-server';
import { Dispatcher } from './dispatcher';
import { FigureWatch } from './figures';
import { FleetPause } from './fleet-pause';
import { LeftBehind, type StoredUpdates } from './left-behind';
import { Membership } from './membership';
import type { PlacementOptions } from './placement';
import { type Found, REPLICA_TIMES, Replica, type ReplicaSource, type ReplicaTimes } from './replica';
import { scorePairs } from './score-pairs';
import { healthOf, troubleOf } from './state-words';
import { StoppedClock } from './stopped-clock';
import { FleetWeights } from './weights';

export interface RouterOptions {
  name: string;
  replicas: readonly ReplicaSource[];
  ambient: Ambient;
  logger: Logger;
  /** What the servers were when the backend was added; without it what the first ones say when they are first asked. */
  expected?: BackendCapabilities | null;
  /** Requests in flight with each server; absent: what the server itself is good for. */
  maxInFlight?: number;
  /** Tokens in flight with each server. Default: no limit. */
  tokensInFlight?: number;
  placement?: PlacementOptions;
  /** It was paused before this process had it open. */
  paused?: boolean;
  /** What is kept of its weight updates; absent: nothing can have been left half done. */
  updates?: StoredUpdates;
  times?: Partial<ReplicaTimes>;
  retryPauseMs?: number;
  figureStepMs?: number;
}

const VERSION_KEPT_MS = 1000;

export class ReplicaRouter implements InferenceBackend {
  readonly name: string;
  readonly #options: RouterOptions;
  readonly #replicas: readonly Replica[];
  readonly #dispatcher: Dispatcher;
  readonly #anyServer: AnyServer;
  readonly #membership: Membership;
  readonly #weights: FleetWeights;
  readonly #pause: FleetPause;
  readonly #leftBehind: LeftBehind;
  readonly #figures: FigureWatch;
  readonly #stopped: StoppedClock;
  #asker = 0;
  #versionAskedMs = Number.NEGATIVE_INFINITY;
  #refreshing: Promise<void> | null = null;
  #closed: Unavailable | null = null;

  constructor(options: RouterOptions) {
    const { name, ambient, logger, replicas, times, placement, retryPauseMs, figureStepMs } = options;
    this.name = name;
    this.#options = options;
    this.#stopped = new StoppedClock(ambient.now);
    const changed = () => this.#changed();
    const allTimes = { ...REPLICA_TIMES, ...times };
    let ready = false;
    this.#replicas = replicas.map(
      (source) =>
        new Replica({
          backend: name,
          source,
          ambient,
          logger,
          times: allTimes,
          admit: (replica, found) => this.#admit(replica, found),
          changed: () => ready && changed(),
        }),
    );
    const { expected = null, maxInFlight } = options;
    this.#membership = new Membership({ backend: name, replicas: this.#replicas, expected, maxInFlight });
    const { answerMs } = allTimes;
    this.#weights = new FleetWeights({ backend: name, replicas: this.#replicas, logger, answerMs, changed });
    this.#dispatcher = new Dispatcher(this.#replicas, {
      backend: name,
      ambient,
      ...(placement && { placement }),
      ...(retryPauseMs !== undefined && { retryPauseMs }),
    });
    this.#anyServer = new AnyServer(this.#replicas, this.#dispatcher);
    this.#pause = new FleetPause({
      backend: name,
      replicas: this.#replicas,
      paused: options.paused ?? false,
      idle: () => this.#dispatcher.idle(),
      changed,
    });
    this.#leftBehind = new LeftBehind({
      backend: name,
      replicas: this.#replicas,
      stored: options.updates ?? null,
      logger,
    });
    this.#figures = new FigureWatch(this.#replicas, ambient, figureStepMs);
    ready = true;
    this.#changed();
  }

  async generate(requests: GenerationRequest[]): Promise<PromiseSettledResult<GenerationResult>[]> {
    for (const request of requests) checkSampling(request.options);
    return Promise.allSettled(
      requests.map((request) =>
        this.#dispatcher.submit({
          key: request.affinityKey,
          keepsTogether: true,
          tokens: request.promptIds.length + request.options.maxTokens,
          ...(request.signal && { signal: request.signal }),
          work: async (server, signal) => {
            const [settled] = await server.generate([{ ...request, signal }]);
            if (settled?.status === 'fulfilled') return settled.value;
            throw settled?.reason ?? new Unavailable(`The backend ${this.name} gave no result.`);
          },
        }),
      ),
    );
  }

  getLogprobs(pairs: ScorePair[], options: ScoreOptions = {}): Promise<CompletionScores[]> {
    return scorePairs(this.#dispatcher, pairs, options, `scores ${this.#asker++}`);
  }

  updateWeights(update: WeightUpdate): Promise<void> {
    return this.#weights.update(update);
  }

  /** Throws Unavailable, naming why, as long as no server has answered yet. */
  async weightVersion(): Promise<string> {
    await this.#tried();
    if (this.#options.ambient.now() - this.#versionAskedMs > VERSION_KEPT_MS) {
      this.#refreshing ??= this.#weights.refresh().finally(() => {
        this.#versionAskedMs = this.#options.ambient.now();
        this.#refreshing = null;
        this.#changed();
      });
      await this.#refreshing;
    }
    const label = this.#weights.label();
    if (label === null) throw this.#unavailable();
    return label;
  }

  tokenize(text: string, options: { special: boolean }): Promise<EncodedText> {
    return this.#anyServer.ask((server) => server.tokenize(text, options));
  }

  decode(ids: Int32Array): Promise<EncodedText> {
    return this.#anyServer.ask(async (server) => {
      if (!server.decode) throw new Invalid(`The servers of the backend ${this.name} do not spell tokens out.`);
      return server.decode(ids);
    });
  }

  applyTemplate(messages: ChatMessage[], options: TemplateOptions): Promise<string> {
    return this.#anyServer.ask((server) => server.applyTemplate(messages, options));
  }

  embed(texts: string[], signal?: AbortSignal): Promise<Float32Array[]> {
    return this.#anyServer.ask(async (server, stop) => {
      if (!server.embed) throw new Invalid(`The servers of the backend ${this.name} give no embeddings.`);
      return server.embed(texts, stop);
    }, signal);
  }

  async health(): Promise<BackendHealth> {
    await this.#tried();
    const trouble = this.trouble();
    if (trouble) return { ok: false, message: trouble, held: this.#replicas.some(({ serving }) => serving) };
    const { modelName } = await this.capabilities();
    return { ok: true, message: healthOf(this.#replicas, modelName, this.#weights.label()) };
  }

  /** Throws Unavailable, naming why, when nothing is known of any server yet. */
  async capabilities(): Promise<BackendCapabilities> {
    if (!this.#membership.known) await this.#tried();
    const capabilities = this.#membership.capabilities();
    if (!capabilities) throw this.#unavailable();
    return capabilities;
  }

  pause(): Promise<void> {
    return this.#pause.pause();
  }

  resume(): Promise<void> {
    return this.#pause.resume();
  }

  /** As long as someone asks for this now and then, the servers are asked for their figures. */
  replicas(): ReplicaStatus[] {
    this.#figures.look();
    return this.#replicas.map((replica) => this.#statusOf(replica));
  }

  trouble(): string | null {
    if (this.#usable().length > 0) return null;
    return troubleOf(this.name, this.#replicas, { paused: this.#pause.paused, updatingTo: this.#weights.updatingTo });
  }

  stoppedMs(): number {
    return this.#stopped.totalMs();
  }

  async close(): Promise<void> {
    this.#closed = new Unavailable(`The backend ${this.name} is closed.`);
    this.#figures.close();
    this.#dispatcher.close(this.#closed);
    this.#anyServer.close(this.#closed);
    await Promise.all(this.#replicas.map((replica) => replica.close()));
  }

  async #admit(replica: Replica, found: Found): Promise<void> {
    const { server } = found;
    const { backend } = server;
    this.#membership.check(replica, found);
    const follow = this.#pause.follow(server);
    await follow();
    const settled = await this.#leftBehind.settle(replica, server);
    const version = settled ? await backend.weightVersion() : found.version;
    replica.version = await this.#weights.bringUpToDate(replica, { ...found, version });
    const capabilities = await backend.capabilities();
    const elsewhere = await backend.pausedElsewhere?.();
    if (elsewhere) throw new Unavailable(elsewhere);
    // Somebody may have paused or resumed the backend meanwhile.
    await follow();
    this.#membership.letIn(replica, capabilities);
  }

  /** Until each server was asked once. */
  async #tried(): Promise<void> {
    await Promise.all(this.#replicas.map((replica) => replica.tried));
  }

  #unavailable(): Unavailable {
    return new Unavailable(this.trouble() ?? `No server of the backend ${this.name} has answered yet.`, {
      retry: true,
      reached: false,
    });
  }

  #usable(): Replica[] {
    if (this.#pause.paused) return [];
    return this.#replicas.filter((replica) => replica.serving && !replica.updating);
  }

  #changed(): void {
    if (this.#closed) return;
    const usable = new Set(this.#usable());
    this.#stopped.set(usable.size === 0);
    this.#dispatcher.changed((replica) => ({
      usable: usable.has(replica),
      newest: this.#weights.isNewest(replica),
      maxInFlight: this.#membership.limitOf(replica),
      maxTokens: this.#options.tokensInFlight ?? Number.POSITIVE_INFINITY,
    }));
    this.#anyServer.changed();
  }

  #statusOf(replica: Replica): ReplicaStatus {
    const { url, serving, updating, version, errors, lastError } = replica;
    const state = updating ? 'updating' : !serving ? 'down' : this.#pause.paused ? 'paused' : 'healthy';
    const behind = this.#weights.isNewest(replica) ? null : `It serves ${version}; others serve newer weights.`;
    return {
      url,
      state,
      reason: serving ? behind : replica.reason,
      ...this.#dispatcher.loadOf(replica),
      weightVersion: version,
      errors,
      lastError,
      figures: this.#figures.of(replica),
    };
  }
}
