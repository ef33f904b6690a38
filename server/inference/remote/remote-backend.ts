/**
 * One inference server behind the interface that the harness knows, whichever protocol it speaks. What comes from it is
 * checked before anybody uses it: ids that are missing, prompts that were changed, constraints that were ignored.
 */
import type { Ambient } from '../../core/ambient';
import { Invalid, isStudioError, Unavailable } from '../../core/errors';
import type { ChatMessage } from '../../core/events';
import { type BackendCapabilities, CONSTRAINT_KINDS } from '../../core/inference';
import type { Logger } from '../../observability/logger';
import type {
  CompletionScores,
  Constraint,
  EncodedText,
  GenerationRequest,
  GenerationResult,
  InferenceBackend,
  SamplingOptions,
  ScoreOptions,
  ScorePair,
  TemplateOptions,
  WeightUpdate,
} from '../backend';
import { checkSampling } from '../sampling';
import { checkConstraint } from './constraint-check';
import { generateThrough } from './continue-generation';
import { checkReply, type GenerationPiece, spansOf } from './generation-piece';
import { textBytes, toResult } from './generation-result';
import { createHttpClient, type HttpClient } from './http-client';
import { LocalTokenizer } from './local-tokenizer';
import type { ServerFacts, ServerProtocol } from './protocol';
import { scorePairs } from './score-pairs';
import { untilAborted } from './serving-gate';
import { TokenText } from './token-text';
import { WeightControl } from './weight-control';

export interface RemoteOptions {
  name: string;
  url: string;
  key?: string | null;
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
  /** The server was started again, or serves another model: a stored check is out of date. */
  onRestart?: (facts: ServerFacts) => void;
}

/** Connections beside those of generations: scoring, tokenising, labels, health. */
const MORE_CONNECTIONS = 64;
/** How old what a server said of itself may be when its health is asked. */
const FACTS_MS = 15_000;
const SHOWN_CHARS = 80;

export class RemoteBackend implements InferenceBackend {
  readonly name: string;
  readonly url: string;
  readonly #options: RemoteOptions;
  readonly #http: HttpClient;
  readonly #localTokenizer: LocalTokenizer | null;
  readonly #weights: WeightControl;
  /** Backend and address, at the beginning of a sentence. */
  readonly #server: string;
  readonly #idPrefix: string;
  #facts: ServerFacts;
  #text: TokenText;
  #describedAtMs: number;
  /** A connection broke: the server may be another one when it answers again. */
  #suspect = false;
  #describing: Promise<void> | null = null;
  #requests = 0;
  /** Kinds of constraints of which an answer was seen to fit. */
  #kept = new Set<Constraint['kind']>();
  #repliesHaveSpans = false;
  #closed = false;

  private constructor(
    options: RemoteOptions,
    http: HttpClient,
    localTokenizer: LocalTokenizer | null,
    facts: ServerFacts,
    text: TokenText,
  ) {
    this.name = options.name;
    this.url = http.url;
    this.#options = options;
    this.#http = http;
    this.#localTokenizer = localTokenizer;
    this.#facts = facts;
    this.#text = text;
    this.#describedAtMs = options.ambient.now();
    this.#server = `The backend ${options.name} (${http.url})`;
    this.#idPrefix = Math.floor(options.ambient.random() * 36 ** 8)
      .toString(36)
      .padStart(8, '0');
    this.#weights = new WeightControl(http, this.#server, options.logger, options.protocol.weights(facts), facts);
  }

  /** Throws from the error family when the server does not answer, is another kind, or its tokens cannot be read. */
  static async open(options: RemoteOptions): Promise<RemoteBackend> {
    const { name, url, key, protocol, tokenizerFolder, maxInFlight } = options;
    const http = createHttpClient({ backend: name, url, key, connections: maxInFlight + MORE_CONNECTIONS });
    try {
      const localTokenizer = tokenizerFolder === null ? null : await LocalTokenizer.open(tokenizerFolder);
      const facts = await factsOf(http, options);
      const text = await TokenText.open({ protocol, http, facts, localTokenizer });
      return new RemoteBackend(options, http, localTokenizer, facts, text);
    } catch (error) {
      await http.close();
      throw error;
    }
  }

  /** For the reader of its metrics. */
  get http(): HttpClient {
    return this.#http;
  }

  /** What the server said of itself last. */
  get facts(): ServerFacts {
    return this.#facts;
  }

  async generate(requests: GenerationRequest[]): Promise<PromiseSettledResult<GenerationResult>[]> {
    for (const request of requests) checkSampling(request.options);
    return Promise.allSettled(requests.map((request) => this.#watched(() => this.#generate(request), request.signal)));
  }

  async getLogprobs(pairs: ScorePair[], options: ScoreOptions = {}): Promise<CompletionScores[]> {
    if (!this.#options.protocol.score || this.#options.capabilities?.canScore === false)
      throw new Unavailable(
        `${this.#server} cannot score given tokens; score with another backend that serves the same weights.`,
      );
    for (const { promptIds, completionIds } of pairs) {
      this.#checkIds(promptIds);
      this.#checkIds(completionIds);
      this.#roomFor(promptIds.length + completionIds.length - 1);
    }
    const score = this.#options.protocol.score.bind(this.#options.protocol);
    return this.#watched(
      () =>
        scorePairs(pairs, options, this.#server, async (call) => {
          await this.#weights.gate.passed(options.signal);
          return this.#weights.gate.run(() => score(this.#http, this.#facts, call));
        }),
      options.signal,
    );
  }

  /** Throws Invalid, Conflict or Unavailable; the sentence says which weights serve, or that the server stays paused. */
  updateWeights(update: WeightUpdate): Promise<void> {
    return this.#watched(async () => {
      await this.#weights.update(update);
      // With the new weights it may have another name, and says other things of itself.
      await this.#describe(true).catch(() => {
        this.#suspect = true;
      });
    });
  }

  weightVersion(): Promise<string> {
    return this.#watched(() => this.#weights.version());
  }

  tokenize(text: string, options: { special: boolean }): Promise<EncodedText> {
    return this.#watched(() => this.#text.encode(text, options));
  }

  applyTemplate(messages: ChatMessage[], options: TemplateOptions): Promise<string> {
    return this.#watched(() => this.#text.applyTemplate(messages, options));
  }

  async embed(texts: string[], signal?: AbortSignal): Promise<Float32Array[]> {
    const { protocol } = this.#options;
    if (!protocol.embed) throw new Unavailable(`${this.#server} does not embed texts.`);
    return this.#watched(async () => (await protocol.embed?.(this.#http, this.#facts, texts, signal)) ?? [], signal);
  }

  /** Asks the server, and now and then whether it is still the one that was described. Does not throw. */
  async health(): Promise<{ ok: boolean; message: string }> {
    if (this.#closed) return { ok: false, message: `${this.#server} is closed.` };
    try {
      const health = await this.#options.protocol.health(this.#http);
      if (!health.ok) return health;
      if (this.#options.ambient.now() - this.#describedAtMs > FACTS_MS) this.#suspect = true;
      await this.#known();
      return health;
    } catch (error) {
      this.#noteBreak(error);
      return { ok: false, message: error instanceof Error ? error.message : String(error) };
    }
  }

  async capabilities(): Promise<BackendCapabilities> {
    const { protocol, capabilities: checked, maxInFlight } = this.#options;
    const weights = protocol.weights(this.#facts);
    const tokenIds = checked?.tokenIds ?? protocol.kind !== 'openai';
    return {
      tokenIds,
      logprobs: checked?.logprobs ?? this.#facts.logprobs,
      canScore: protocol.score !== undefined && checked?.canScore !== false,
      entropy: checked?.entropy ?? false,
      constraints: checked?.constraints ?? [...CONSTRAINT_KINDS],
      weightSources: [...(weights?.sources ?? [])],
      canPause: weights?.canPause ?? false,
      seeded: checked?.seeded ?? false,
      embeddings: protocol.embed !== undefined && (checked?.embeddings ?? false),
      contextLength: this.#facts.contextLength,
      modelName: this.#facts.modelName,
      batchSize: 1,
      maxInFlight,
    };
  }

  pause(): Promise<void> {
    return this.#watched(() => this.#weights.pause());
  }

  resume(): Promise<void> {
    return this.#watched(() => this.#weights.resume());
  }

  /** Why requests wait here, as a sentence: an operator, an update under way, one that failed. */
  trouble(): string | null {
    return this.#weights.gate.closed;
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#http.close();
  }

  async #generate({ promptIds, options, affinityKey, signal }: GenerationRequest): Promise<GenerationResult> {
    if (promptIds.length === 0) throw new Invalid('The prompt is empty: at least one token is needed to go on from.');
    this.#checkIds(promptIds);
    const maxTokens = Math.min(options.maxTokens, this.#roomFor(promptIds.length));
    const piece = await generateThrough(
      { promptIds, options: { ...options, maxTokens }, signal },
      {
        ask: (ids, wanted) => this.#ask(ids, wanted, affinityKey, signal),
        serves: () => this.#serves(signal),
        server: this.#server,
      },
    );
    const text = await untilAborted(this.#text.bytesOf(piece.ids, piece.tokenBytes), signal);
    const result = toResult(piece, text, options.stop);
    if (options.constraint) this.#checkConstrained(options.constraint, result);
    return result;
  }

  /** One reply, with the weights that made it. */
  async #ask(
    promptIds: Int32Array,
    options: SamplingOptions,
    affinityKey: string,
    signal: AbortSignal | undefined,
  ): Promise<GenerationPiece> {
    const { gate } = this.#weights;
    let before: string | null = null;
    do {
      await gate.passed(signal);
      before = this.#repliesHaveSpans ? null : await untilAborted(this.#weights.version(), signal);
    } while (gate.closed !== null);
    return gate.run(async () => {
      const call = { promptIds, options, affinityKey, requestId: this.#nextId(), ...(signal && { signal }) };
      const raw = await this.#options.protocol.generate(this.#http, this.#facts, call);
      checkReply(raw, call, this.#server);
      this.#repliesHaveSpans = Array.isArray(raw.weightVersions) && raw.weightVersions.length > 0;
      const after = raw.weightVersions?.length ? null : await untilAborted(this.#weights.version(), signal);
      return { ...raw, weightVersions: spansOf(raw.weightVersions, raw.ids.length, { before, after }, this.#server) };
    });
  }

  /** After an interruption: the gate here is open, and the server says that it is well. */
  async #serves(signal: AbortSignal | undefined): Promise<boolean> {
    await this.#weights.gate.passed(signal);
    const health = await untilAborted(this.#options.protocol.health(this.#http), signal);
    return health.ok;
  }

  /** The first answer of each kind since the server started. Throws Unavailable when it does not fit. */
  #checkConstrained(constraint: Constraint, result: GenerationResult): void {
    if (this.#kept.has(constraint.kind)) return;
    const bytes = textBytes(result);
    const cut = result.finishReason === 'length' || result.stopString !== null;
    const verdict = checkConstraint(constraint, bytes, cut);
    // Nothing written says nothing of the server.
    if (verdict === 'fits' && bytes.length > 0) this.#kept.add(constraint.kind);
    if (verdict !== 'broken') return;
    const shown = JSON.stringify(new TextDecoder().decode(bytes).slice(0, SHOWN_CHARS));
    throw new Unavailable(
      `${this.#server} ignores constraints of the kind ${constraint.kind}: the text ${shown} is none that it allows. Turn constrained actions off for it, or start the server with its structured outputs enabled.`,
      { retry: false, constraint: constraint.kind },
    );
  }

  #checkIds(ids: Int32Array): void {
    const at = ids.findIndex((id) => id < 0);
    if (at >= 0)
      throw new Invalid(`The token id ${ids[at]} at position ${at} is in no vocabulary; ${this.name} was not asked.`);
  }

  /** Tokens that may still come behind so many. Throws Invalid when there are none. */
  #roomFor(tokens: number): number {
    const { contextLength, modelName } = this.#facts;
    if (tokens >= contextLength)
      throw new Invalid(
        `The context of ${modelName} at ${this.#server.replace('The', 'the')} holds ${contextLength} tokens and this prompt has ${tokens}; no token can follow it.`,
      );
    return contextLength - tokens;
  }

  /** Of one width, so that no name begins with another: some servers stop every request whose name begins so. */
  #nextId(): string {
    return `${this.#idPrefix}-${(this.#requests++).toString(36).padStart(8, '0')}`;
  }

  /** Work with a server that is known, and a note when a connection broke in it. */
  async #watched<T>(work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    if (this.#closed) throw new Unavailable(`${this.#server} is closed.`);
    try {
      await untilAborted(this.#known(), signal);
      return await work();
    } catch (error) {
      this.#noteBreak(error);
      throw error;
    }
  }

  /** No status came with it: the connection itself failed. */
  #noteBreak(error: unknown): void {
    if (isStudioError(error) && error.details.retry === true && error.details.status === undefined)
      this.#suspect = true;
  }

  async #known(): Promise<void> {
    if (!this.#suspect) return;
    this.#describing ??= this.#describe(false).finally(() => {
      this.#describing = null;
    });
    await this.#describing;
  }

  /** @param expected something changed by our own doing, so a change is no sign of a restart */
  async #describe(expected: boolean): Promise<void> {
    const { protocol, ambient, logger } = this.#options;
    const facts = await factsOf(this.#http, this.#options);
    this.#describedAtMs = ambient.now();
    this.#suspect = false;
    if (facts.fingerprint === this.#facts.fingerprint) return;
    this.#text = await TokenText.open({ protocol, http: this.#http, facts, localTokenizer: this.#localTokenizer });
    this.#facts = facts;
    this.#weights.use(protocol.weights(facts), facts, !expected);
    if (expected) return;
    this.#kept = new Set();
    this.#repliesHaveSpans = false;
    logger.warn(
      { backend: this.name, url: this.url, model: facts.modelName, version: facts.version },
      'The inference server was started again.',
    );
    this.#options.onRestart?.(facts);
  }
}

async function factsOf(http: HttpClient, { protocol, model, capabilities }: RemoteOptions): Promise<ServerFacts> {
  const facts = await protocol.describe(http, { model, contextLength: capabilities?.contextLength ?? null });
  if (facts.contextLength < 1)
    throw new Invalid(
      `The backend ${http.backend} (${http.url}) does not tell how many tokens its context holds; give its context length with its address.`,
    );
  return facts;
}
