/**
 * One inference server behind the interface that the harness knows, whichever protocol it speaks. What comes from it is
 * checked before anybody uses it: ids that are missing, prompts that were changed, constraints that were ignored.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Ambient } from '../../core/ambient';
import { Invalid, Unavailable } from '../../core/errors';
import type { ChatMessage } from '../../core/events';
import { type BackendCapabilities, CONSTRAINT_KINDS } from '../../core/inference';
import type { Logger } from '../../observability/logger';
import type {
  CompletionScores,
  EncodedText,
  GenerationRequest,
  GenerationResult,
  InferenceBackend,
  ScoreOptions,
  ScorePair,
  TemplateOptions,
  UnfinishedUpdate,
  WeightUpdate,
} from '../backend';
import { checkSampling } from '../sampling';
import { ConstraintWatch } from './constraint-watch';
import { generateThrough } from './continue-generation';
import { checkReply, type GenerationPiece, spansOf } from './generation-piece';
import { toResult } from './generation-result';
import { createHttpClient, type HttpClient } from './http-client';
import { KnownServer } from './known-server';
import type { ServerFacts, ServerProtocol } from './protocol';
import type { StoredLabels } from './remembered-label';
import { scoreAgain, scoreThrough } from './score-again';
import { scorePairs } from './score-pairs';
import { untilAborted } from './serving-gate';
import { WeightControl } from './weight-control';

export interface RemoteOptions {
  name: string;
  url: string;
  key?: string | null;
  /** The protocol signs with it. Never sent; kept out of what is told of the server. */
  controlKey?: string | null;
  protocol: ServerProtocol;
  /** Name the server knows its model by; null takes the one it serves. */
  model: string | null;
  /** Folder with the model's own tokenizer files, where the server cannot tokenise; else null. */
  tokenizerFolder: string | null;
  /** Requests worth having with this server at once. */
  maxInFlight: number;
  logger: Logger;
  ambient: Ambient;
  /** From the stored check; what is absent is taken from the server's own words, or as offered. */
  capabilities?: Partial<BackendCapabilities> | null;
  /** Where the labels of servers that keep none are kept; without it they are forgotten when this backend is closed. */
  labels?: StoredLabels;
  /** The server was started again, or serves another model: a stored check is out of date. */
  onRestart?: (facts: ServerFacts) => void;
}

/** Connections beside those of generations: scoring, tokenising, labels, health. */
const MORE_CONNECTIONS = 64;

export class RemoteBackend implements InferenceBackend {
  readonly name: string;
  readonly #options: RemoteOptions;
  readonly #server: KnownServer;
  readonly #weights: WeightControl;
  readonly #constraints: ConstraintWatch;
  readonly #idPrefix: string;
  #requests = 0;
  #starts = 0;
  #repliesHaveSpans = false;

  /** What tells this start of the server from another. */
  get fingerprint(): string {
    return this.#server.facts.fingerprint;
  }

  private constructor(options: RemoteOptions, server: KnownServer) {
    const { protocol, logger, ambient } = options;
    this.name = options.name;
    this.#options = options;
    this.#server = server;
    this.#weights = new WeightControl(server, logger, options.labels ?? null);
    this.#constraints = new ConstraintWatch(server.called);
    this.#idPrefix = Math.floor(ambient.random() * 36 ** 8)
      .toString(36)
      .padStart(8, '0');
    server.changed = (startedAgain) => {
      this.#weights.use(protocol.weights(server.facts), startedAgain);
      if (startedAgain) this.#startedAgain();
    };
  }

  /** Throws from the error family when the server does not answer, is another kind, or its tokens cannot be read. */
  static async open(options: RemoteOptions): Promise<RemoteBackend> {
    const { name, url, key, controlKey, protocol, model, tokenizerFolder, maxInFlight, capabilities, ambient } =
      options;
    const connections = maxInFlight + MORE_CONNECTIONS;
    const http = createHttpClient({ backend: name, url, key, controlKey, connections });
    const contextLength = capabilities?.contextLength ?? null;
    try {
      const server = await KnownServer.open({ http, protocol, model, contextLength, tokenizerFolder, ambient });
      const backend = new RemoteBackend(options, server);
      await backend.#weights.open();
      return backend;
    } catch (error) {
      await http.close();
      throw error;
    }
  }

  get http(): HttpClient {
    return this.#server.http;
  }

  /** What the server said of itself last. */
  get facts(): ServerFacts {
    return this.#server.facts;
  }

  async generate(requests: GenerationRequest[]): Promise<PromiseSettledResult<GenerationResult>[]> {
    for (const request of requests) checkSampling(request.options);
    return Promise.allSettled(
      requests.map((request) => this.#server.use(() => this.#generate(request), request.signal)),
    );
  }

  async getLogprobs(pairs: ScorePair[], options: ScoreOptions = {}): Promise<CompletionScores[]> {
    const score = this.#score();
    if (!score)
      throw new Unavailable(
        `${this.#server.called} cannot score given tokens; score with another backend that serves the same weights.`,
      );
    for (const { promptIds, completionIds } of pairs) {
      this.#checkIds(promptIds);
      this.#checkIds(completionIds);
      this.#roomFor(promptIds.length + completionIds.length - 1);
    }
    const { gate } = this.#weights;
    const scored = () =>
      scorePairs(pairs, options, this.#server.called, (call) =>
        scoreThrough(async () => {
          await gate.passed(call.signal);
          return gate.run(() => score(this.#server.http, this.#server.facts, call));
        }, this.#patience(call.signal)),
      );
    return this.#server.use(scored, options.signal);
  }

  /** Throws Invalid, Conflict or Unavailable; the sentence says which weights serve, or that the server stays paused. */
  updateWeights(update: WeightUpdate): Promise<void> {
    if (!this.#weights.readsLabel) this.#server.doubt();
    return this.#server.use(async () => {
      await this.#weights.update(update);
      // With the new weights it may have another name, and say other things of itself.
      await this.#server.expectChange(!this.#weights.readsLabel);
    });
  }

  weightVersion(): Promise<string> {
    return this.#server.use(() => this.#weights.version());
  }

  tokenize(text: string, options: { special: boolean }): Promise<EncodedText> {
    return this.#server.use(() => this.#server.text.encode(text, options));
  }

  decode(ids: Int32Array): Promise<EncodedText> {
    return this.#server.use(() => this.#server.text.bytesOf(ids));
  }

  applyTemplate(messages: ChatMessage[], options: TemplateOptions): Promise<string> {
    return this.#server.use(() => this.#server.text.applyTemplate(messages, options));
  }

  async embed(texts: string[], signal?: AbortSignal): Promise<Float32Array[]> {
    const { protocol } = this.#options;
    const embed = protocol.embed?.bind(protocol);
    if (!embed) throw new Unavailable(`${this.#server.called} does not embed texts.`);
    return this.#server.use(() => embed(this.#server.http, this.#server.facts, texts, signal), signal);
  }

  /** Asks the server, and now and then whether it is still the one that was described. Does not throw. */
  async health(): Promise<{ ok: boolean; message: string }> {
    try {
      this.#server.doubtWhenOld();
      return await this.#server.use(() => this.#options.protocol.health(this.#server.http));
    } catch (error) {
      return { ok: false, message: error instanceof Error ? error.message : String(error) };
    }
  }

  async capabilities(): Promise<BackendCapabilities> {
    const { protocol, capabilities: checked, maxInFlight } = this.#options;
    const { facts } = this.#server;
    const weights = protocol.weights(facts);
    return {
      tokenIds: checked?.tokenIds ?? protocol.kind !== 'openai',
      logprobs: checked?.logprobs ?? facts.logprobs,
      canScore: this.#score() !== undefined,
      entropy: checked?.entropy ?? false,
      constraints: checked?.constraints ?? [...CONSTRAINT_KINDS],
      weightSources: [...(weights?.sources ?? [])],
      canPause: weights?.canPause ?? false,
      seeded: checked?.seeded ?? false,
      embeddings: protocol.embed !== undefined && (checked?.embeddings ?? false),
      contextLength: facts.contextLength,
      modelName: facts.modelName,
      // The server merges what is in flight by itself.
      batchSize: 1,
      maxInFlight,
    };
  }

  pause(signal?: AbortSignal): Promise<void> {
    return this.#server.use(() => this.#weights.pause(signal), signal);
  }

  resume(): Promise<void> {
    return this.#server.use(() => this.#weights.resume());
  }

  settle(unfinished: UnfinishedUpdate): Promise<void> {
    return this.#server.use(async () => {
      await this.#weights.settle(unfinished);
      await this.#server.expectChange(!this.#weights.readsLabel);
    });
  }

  pausedElsewhere(): Promise<string | null> {
    return this.#server.use(() => this.#weights.pausedElsewhere());
  }

  starts(): number {
    return this.#starts;
  }

  /** Why requests wait here, as a sentence: an operator, an update under way, one that failed. */
  trouble(): string | null {
    return this.#weights.gate.closed;
  }

  async close(): Promise<void> {
    await this.#server.close();
  }

  async #generate(request: GenerationRequest): Promise<GenerationResult> {
    const { promptIds, options, signal } = request;
    if (promptIds.length === 0) throw new Invalid('The prompt is empty: at least one token is needed to go on from.');
    this.#checkIds(promptIds);
    const maxTokens = Math.min(options.maxTokens, this.#roomFor(promptIds.length));
    const piece = await generateThrough(
      { promptIds, options: { ...options, maxTokens }, signal },
      {
        ask: (ids, wanted) => this.#ask({ ...request, promptIds: ids, options: wanted }),
        serves: () => this.#serves(signal),
        ...this.#patience(signal),
      },
    );
    const text = await untilAborted(this.#server.text.bytesOf(piece.ids, piece.tokenBytes), signal);
    const result = toResult(piece, text, options.stop);
    if (options.constraint) this.#constraints.check(options.constraint, result);
    return result;
  }

  /** One reply, with the weights that made it. */
  async #ask(request: GenerationRequest): Promise<GenerationPiece> {
    const { promptIds, options, affinityKey, signal, rawLogprobs = false } = request;
    const { gate, readsLabel } = this.#weights;
    const label = () => untilAborted(this.#weights.version(), signal);
    let before: string | null = null;
    do {
      await gate.passed(signal);
      if (readsLabel && !this.#repliesHaveSpans) before = await label();
    } while (gate.closed !== null);
    return gate.run(async () => {
      const { http, facts, called } = this.#server;
      const call = { promptIds, options, affinityKey, requestId: this.#nextId(), ...(signal && { signal }) };
      const raw = await this.#options.protocol.generate(http, facts, call);
      checkReply(raw, call, called);
      const said = raw.weightVersions;
      this.#repliesHaveSpans = Array.isArray(said) && said.length > 0;
      const after = said?.length ? null : await label();
      const piece = { ...raw, weightVersions: spansOf(said, raw.ids.length, { before, after }, called) };
      const score = rawLogprobs ? this.#score() : undefined;
      // Under a constraint nothing of a generation that was stopped is kept.
      if (!score || (raw.finish === 'aborted' && options.constraint)) return piece;
      // Still counted as with the server: who changes its weights waits for it.
      return scoreAgain(piece, {
        score: (completionIds) =>
          score(http, facts, { promptIds, completionIds, alternatives: 0, entropy: false, ...(signal && { signal }) }),
        label,
        ...this.#patience(signal),
      });
    });
  }

  /** Absent where the server cannot score. */
  #score(): ServerProtocol['score'] {
    const { protocol, capabilities } = this.#options;
    return capabilities?.canScore === false ? undefined : protocol.score?.bind(protocol);
  }

  /** How long somebody waits for a server that stopped what it was asked, and how it is called. */
  #patience(signal: AbortSignal | undefined) {
    return {
      wait: (ms: number) => sleep(ms, undefined, signal ? { signal } : {}),
      signal,
      server: this.#server.called,
    };
  }

  /** After an interruption: the gate here is open, and the server says that it is well. */
  async #serves(signal: AbortSignal | undefined): Promise<boolean> {
    await this.#weights.gate.passed(signal);
    return (await untilAborted(this.#options.protocol.health(this.#server.http), signal)).ok;
  }

  #checkIds(ids: Int32Array): void {
    const at = ids.findIndex((id) => id < 0);
    if (at >= 0)
      throw new Invalid(`The token id ${ids[at]} at position ${at} is in no vocabulary; ${this.name} was not asked.`);
  }

  /** Tokens that may still come behind so many. Throws Invalid when there are none. */
  #roomFor(tokens: number): number {
    const { contextLength, modelName } = this.#server.facts;
    if (tokens >= contextLength)
      throw new Invalid(
        `${this.#server.called} has room for ${contextLength} tokens in the context of ${modelName}, and no token can follow the ${tokens} of this prompt.`,
      );
    return contextLength - tokens;
  }

  /** Of one width, so that no name begins with another: some servers stop every request whose name begins so. */
  #nextId(): string {
    return `${this.#idPrefix}-${(this.#requests++).toString(36).padStart(8, '0')}`;
  }

  #startedAgain(): void {
    this.#starts += 1;
    const { facts, http } = this.#server;
    this.#constraints.forget();
    this.#repliesHaveSpans = false;
    this.#options.logger.warn(
      { backend: this.name, url: http.url, model: facts.modelName, version: facts.version },
      'The inference server was started again.',
    );
    this.#options.onRestart?.(facts);
  }
}
