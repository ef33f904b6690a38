/** One model file in memory: weights, context, vocabulary, template, and the loop that batches its requests. */
import type { Llama, LlamaContext, LlamaModel } from 'node-llama-cpp';
import { Invalid } from '../../core/errors';
import type { ChatMessage } from '../../core/events';
import type {
  CompletionScores,
  EncodedText,
  GenerationResult,
  SamplingOptions,
  ScorePair,
  TemplateOptions,
} from '../backend';
import type { ChatTemplate } from '../chat-template';
import { arithmeticFor, bytesOfNumber } from './arithmetic';
import { BatchLoop, type Job } from './batch-loop';
import { templateInside } from './chat-template';
import { ConstraintState, Grammars } from './constraint';
import { TextEncoderOfModel } from './encode';
import { GenerationJob } from './generation-job';
import { type Addon, addonOf } from './llama-addon';
import { openModelFile } from './model-file';
import type { ModelInfo, ModelSettings } from './protocol';
import { ScoreJob, type ScoreNeeds } from './score-job';
import { Vocabulary } from './vocabulary';

const BATCH_SIZE = 512;
const LONGEST_CONTEXT_UNASKED = 4096;
const MOST_SEQUENCES_UNASKED = 32;
const CACHE_BYTES_UNASKED = 1024 ** 3;
let scorings = 0;

export class LoadedModel {
  readonly settings: ModelSettings;
  readonly info: ModelInfo;
  readonly vocabulary: Vocabulary;
  readonly template: ChatTemplate | null;
  readonly #model: LlamaModel;
  readonly #context: LlamaContext;
  readonly #addon: Addon;
  readonly #encoder: TextEncoderOfModel;
  readonly #grammars: Grammars;
  readonly #loop: BatchLoop;

  private constructor(
    settings: ModelSettings,
    llama: Llama,
    model: LlamaModel,
    context: LlamaContext,
    sequences: number,
  ) {
    this.settings = settings;
    this.#model = model;
    this.#context = context;
    this.vocabulary = Vocabulary.of(model);
    this.template = templateInside(model);
    this.#addon = addonOf(llama, model, context);
    this.#encoder = new TextEncoderOfModel(model, this.vocabulary);
    this.#grammars = new Grammars(llama);
    this.#loop = new BatchLoop(this.#addon.context, { sequences, batchSize: context.batchSize });
    this.info = {
      modelName: model.fileInfo.metadata.general?.name ?? model.filename ?? 'model',
      contextLength: contextLengthOf(model, settings),
      maxSequences: sequences,
      vocabularySize: this.vocabulary.size,
    };
  }

  /** Throws NotFound or Invalid in one sentence that names the file. */
  static async load(llama: Llama, settings: ModelSettings): Promise<LoadedModel> {
    const model = await openModelFile(llama, settings.modelPath);
    try {
      const contextSize = contextLengthOf(model, settings);
      const arithmetic = arithmeticFor(model);
      const sequences = settings.maxSequences ?? sequencesThatFit(model, contextSize, bytesOfNumber(arithmetic));
      const batchSize = Math.max(BATCH_SIZE, sequences);
      const { threads } = settings;
      const shape = { contextSize, sequences, batchSize, threads, swaFullCache: true };
      const context = await model.createContext({ ...shape, ...arithmetic });
      return new LoadedModel(settings, llama, model, context, sequences);
    } catch (error) {
      await model.dispose();
      throw error;
    }
  }

  /** `onJob` gets the job before it can run, so that it can be cancelled. */
  async generate(
    request: { promptIds: Int32Array; options: SamplingOptions; affinityKey: string },
    onJob: (job: Job) => void,
  ): Promise<GenerationResult> {
    const { promptIds, options } = request;
    this.#checkPrompt(promptIds);
    const room = this.info.contextLength - promptIds.length;
    if (room <= 0) throw this.#overflow(promptIds.length, 'no room is left for a completion');
    const { constraint } = options;
    const grammar = constraint ? await this.#grammars.get(constraint) : null;
    const job = new GenerationJob(request, {
      addon: this.#addon,
      vocabulary: this.vocabulary,
      version: this.settings.version,
      constraint: grammar && new ConstraintState(this.#addon, grammar, this.#model, this.vocabulary),
      maxTokens: Math.min(options.maxTokens, room),
    });
    onJob(job);
    this.#loop.add(job);
    return job.done;
  }

  async score(
    pair: ScorePair,
    wanted: Pick<ScoreNeeds, 'alternatives' | 'entropy'>,
    onJob: (job: Job) => void,
  ): Promise<CompletionScores> {
    this.#checkPrompt(pair.promptIds);
    this.vocabulary.check(pair.completionIds, 'completion');
    const total = pair.promptIds.length + pair.completionIds.length;
    if (total > this.info.contextLength) throw this.#overflow(total, 'prompt and completion together do not fit');
    // A key of its own: scoring reuses what it shares with any sequence and takes no trajectory's place for good.
    const job = new ScoreJob(pair, `score ${++scorings}`, { addon: this.#addon, ...wanted });
    onJob(job);
    if (pair.completionIds.length === 0) job.end(null);
    else this.#loop.add(job);
    return job.done;
  }

  cancel(job: Job): void {
    this.#loop.cancel(job);
  }

  encode(text: string, special: boolean): EncodedText {
    return this.#encoder.encode(text, special);
  }

  /** Throws Invalid for an id the vocabulary does not have. */
  decode(ids: Int32Array): EncodedText {
    this.vocabulary.check(ids, 'prompt');
    return this.vocabulary.encoded(ids);
  }

  render(messages: ChatMessage[], options: TemplateOptions): string {
    if (this.template) return this.template.render(messages, options);
    throw new Invalid(`${this.info.modelName} comes without a chat template; choose a model trained for conversation.`);
  }

  /** Ends what has not begun with WeightsChanged, and frees the memory once the rest is done. */
  async dispose(): Promise<void> {
    await this.#loop.retire();
    await this.#context.dispose();
    await this.#model.dispose();
  }

  #checkPrompt(promptIds: Int32Array): void {
    if (promptIds.length === 0) throw new Invalid('The prompt is empty: at least one token is needed to go on from.');
    this.vocabulary.check(promptIds, 'prompt');
  }

  #overflow(tokens: number, what: string): Invalid {
    const { contextLength } = this.info;
    return new Invalid(
      `The context of ${this.info.modelName} holds ${contextLength} tokens and this request needs ${tokens}: ${what}.`,
      {
        contextLength,
        tokens,
      },
    );
  }
}

function contextLengthOf(model: LlamaModel, settings: ModelSettings): number {
  const trained = model.trainContextSize;
  if (settings.contextLength === null) return Math.min(trained, LONGEST_CONTEXT_UNASKED);
  if (settings.contextLength > trained)
    throw new Invalid(
      `A context of ${settings.contextLength} tokens was asked for; ${model.filename} was trained on ${trained}.`,
    );
  return settings.contextLength;
}

/** Sequences whose keys and values fit into CACHE_BYTES_UNASKED together. */
function sequencesThatFit(model: LlamaModel, contextLength: number, numberBytes: number): number {
  const { metadata } = model.fileInfo;
  const shape = (metadata as unknown as Record<string, ShapeMetadata | undefined>)[metadata.general.architecture];
  const heads = shape?.attention?.head_count ?? 1;
  const keyValueHeads = shape?.attention?.head_count_kv ?? heads;
  const perLayer = typeof keyValueHeads === 'number' ? keyValueHeads : Math.max(...keyValueHeads);
  const headLength =
    shape?.attention?.key_length ??
    model.embeddingVectorSize / (typeof heads === 'number' ? heads : Math.max(...heads));
  const bytes = (shape?.block_count ?? 1) * perLayer * headLength * 2 * numberBytes * contextLength;
  return Math.min(MOST_SEQUENCES_UNASKED, Math.max(1, Math.floor(CACHE_BYTES_UNASKED / bytes)));
}

interface ShapeMetadata {
  block_count?: number;
  attention?: { head_count?: number | number[]; head_count_kv?: number | number[]; key_length?: number };
}
