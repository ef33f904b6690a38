/**
 * The InferenceBackend on llama.cpp inside this product: any GGUF file, generated in a forked process of its own, so
 * that neither a crash nor a long computation there ever touches the server.
 */
import { basename } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Invalid, isStudioError, Unavailable } from '../../core/errors';
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
  ScoreOptions,
  ScorePair,
  TemplateOptions,
  WeightUpdate,
} from '../backend';
import { checkSampling } from '../sampling';
import { ChildConnection } from './child-connection';
import type { ModelInfo, ModelSettings } from './protocol';

export interface EmbeddedOptions {
  name: string;
  modelPath: string;
  threads: number;
  logger: Logger;
  /** Tokens of one sequence, prompt and completion together. Default: what the model was trained on, at most 4,096. */
  contextLength?: number;
  /** Sequences generated at once. Default: what fits into 1 GiB of key-value cache, at most 32. */
  maxSequences?: number;
  /** Label of the weights in modelPath. Default: the file's name without extension. */
  version?: string;
  /** Gives up loading the model, now and whenever its process is started again, however far that is. */
  signal?: AbortSignal;
}

const STARTS = 3;
const FIRST_PAUSE_MS = 250;
const PING_MS = 5000;
/** A look at the backend waits no longer for a process that is started again. */
const RESTART_LOOK_MS = 2000;
const MOST_ALTERNATIVES = 5;

export class EmbeddedBackend implements InferenceBackend {
  readonly name: string;
  readonly #logger: Logger;
  #settings: ModelSettings;
  #info: ModelInfo;
  #connection: ChildConnection;
  #starting: Promise<ChildConnection> | null = null;
  readonly #closing = new AbortController();
  readonly #givesUp: AbortSignal;

  private constructor(
    { name, logger, signal }: Pick<EmbeddedOptions, 'name' | 'logger' | 'signal'>,
    settings: ModelSettings,
    connection: ChildConnection,
    info: ModelInfo,
  ) {
    this.name = name;
    this.#logger = logger;
    this.#givesUp = AbortSignal.any([this.#closing.signal, ...(signal ? [signal] : [])]);
    this.#settings = settings;
    this.#connection = connection;
    this.#info = info;
  }

  /** Throws NotFound or Invalid in one sentence that names the file when it is missing or damaged, Unavailable when given up. */
  static async open(options: EmbeddedOptions): Promise<EmbeddedBackend> {
    const settings: ModelSettings = {
      modelPath: options.modelPath,
      version: options.version ?? basename(options.modelPath).replace(/\.gguf$/i, ''),
      threads: options.threads,
      contextLength: options.contextLength ?? null,
      maxSequences: options.maxSequences ?? null,
    };
    const [connection, info] = await start(options.name, options.logger, settings, options.signal);
    return new EmbeddedBackend(options, settings, connection, info);
  }

  /** The model process, for measurements. */
  get pid(): number | undefined {
    return this.#connection.pid;
  }

  async generate(requests: GenerationRequest[]): Promise<PromiseSettledResult<GenerationResult>[]> {
    for (const request of requests) checkSampling(request.options);
    const connection = await this.#connected();
    return Promise.allSettled(connection.generate(requests));
  }

  async getLogprobs(
    pairs: ScorePair[],
    { signal, alternatives = 0, entropy = false }: ScoreOptions = {},
  ): Promise<CompletionScores[]> {
    if (!Number.isInteger(alternatives) || alternatives < 0 || alternatives > MOST_ALTERNATIVES)
      throw new Invalid(`${alternatives} alternatives a token were asked for; it can be 0 to ${MOST_ALTERNATIVES}.`);
    const connection = await this.#connected();
    return connection.ask('score', { pairs, alternatives, entropy }, signal);
  }

  async updateWeights({ source, version }: WeightUpdate): Promise<void> {
    if (source.kind !== 'checkpoint')
      throw new Invalid(
        `The backend ${this.name} is embedded: its weights come from a GGUF file, not from ${source.kind === 'lora' ? 'a LoRA adapter' : 'a trainer'}.`,
      );
    const connection = await this.#connected();
    this.#info = await connection.ask('update', { source: source.path, version });
    // A process that has to be started again starts with these.
    this.#settings = { ...this.#settings, modelPath: source.path, version };
  }

  async weightVersion(): Promise<string> {
    return this.#settings.version;
  }

  async tokenize(text: string, options: { special: boolean }): Promise<EncodedText> {
    const connection = await this.#connected();
    return connection.ask('tokenize', { text, special: options.special });
  }

  async decode(ids: Int32Array): Promise<EncodedText> {
    const connection = await this.#connected();
    return connection.ask('decode', { ids });
  }

  async applyTemplate(messages: ChatMessage[], options: TemplateOptions): Promise<string> {
    const connection = await this.#connected();
    return connection.ask('template', { messages, options });
  }

  /** A process that has ended is started again. */
  async health(): Promise<BackendHealth> {
    if (this.#closing.signal.aborted) return { ok: false, message: `The backend ${this.name} is closed.` };
    const started = await this.#startedAgain();
    if (started !== null) return started;
    const late = new AbortController();
    const timer = setTimeout(() => late.abort(), PING_MS);
    try {
      await this.#connection.ask('ping', {}, late.signal);
      return { ok: true, message: `${this.#info.modelName}, weights ${this.#settings.version}, is ready.` };
    } catch (error) {
      const message = late.signal.aborted
        ? `The model process has not answered for ${PING_MS / 1000} s.`
        : String((error as Error).message);
      return { ok: false, message };
    } finally {
      clearTimeout(timer);
    }
  }

  async capabilities(): Promise<BackendCapabilities> {
    return {
      tokenIds: true,
      logprobs: 'raw',
      canScore: true,
      entropy: true,
      constraints: ['json_schema', 'regex', 'grammar', 'choice'],
      weightSources: ['checkpoint'],
      canPause: false,
      seeded: true,
      embeddings: false,
      contextLength: this.#info.contextLength,
      modelName: this.#info.modelName,
      // The model process merges what is in flight by itself.
      batchSize: 1,
      maxInFlight: this.#info.maxSequences,
    };
  }

  async close(): Promise<void> {
    this.#closing.abort();
    const starting = await this.#starting?.catch(() => null);
    await (starting ?? this.#connection).close();
  }

  /** Null where the process runs; else how the backend is without one. */
  async #startedAgain(): Promise<BackendHealth | null> {
    if (this.#connection.alive) return null;
    const late = sleep(RESTART_LOOK_MS, 'late' as const, { ref: false });
    try {
      if ((await Promise.race([this.#connected(), late])) !== 'late') return null;
      return { ok: false, held: true, message: 'Its model process has ended and is being started again.' };
    } catch (error) {
      if (!isStudioError(error)) throw error;
      return { ok: false, message: error.message };
    }
  }

  async #connected(): Promise<ChildConnection> {
    if (this.#closing.signal.aborted) throw new Unavailable(`The backend ${this.name} is closed.`);
    if (this.#connection.alive) return this.#connection;
    this.#starting ??= this.#restart().finally(() => {
      this.#starting = null;
    });
    return this.#starting;
  }

  async #restart(): Promise<ChildConnection> {
    this.#logger.warn({ backend: this.name, modelPath: this.#settings.modelPath }, 'Starting the model process again.');
    const [connection, info] = await start(this.name, this.#logger, this.#settings, this.#givesUp);
    this.#connection = connection;
    this.#info = info;
    return connection;
  }
}

/** Starts a model process, again after a pause when it dies; a file that cannot be used is no reason to try again. */
async function start(
  name: string,
  logger: Logger,
  settings: ModelSettings,
  signal?: AbortSignal,
): Promise<[ChildConnection, ModelInfo]> {
  for (let attempt = 1; ; attempt++) {
    const connection = new ChildConnection(name, logger);
    try {
      return [connection, await connection.ask('open', { settings }, signal)];
    } catch (error) {
      if (signal?.aborted) {
        // Busy with the file, it hears nothing else.
        connection.kill();
        await connection.ended;
        throw new Unavailable(`The backend ${name} was closed before its model was loaded.`, { retry: true });
      }
      const died = !connection.alive;
      await connection.close();
      if (!died) throw error;
      if (attempt === STARTS)
        throw new Invalid(
          `The model process ended ${STARTS} times while it opened ${settings.modelPath}; the file is damaged, or the machine has too little memory for it.`,
          isStudioError(error) ? error.details : {},
        );
      await sleep(FIRST_PAUSE_MS * 4 ** (attempt - 1), undefined, signal && { signal }).catch(() => undefined);
    }
  }
}
