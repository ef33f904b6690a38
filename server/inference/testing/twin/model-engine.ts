/** The engine on a real tokenizer and a real small model: one token at a time, so that anything can happen in between. */
import { getLlama, type Llama, LlamaLogLevel } from 'node-llama-cpp';
import { seededRandom } from '../../../core/ambient';
import type { TemplateTool } from '../../backend';
import { Grammars } from '../../embedded/constraint';
import { type EngineFinish, type EngineGeneration, type EngineRequest, type TwinEngine, TwinError } from './engine';
import type { TwinFaults } from './faults';
import { Run } from './run';
import { atTemperature, draw, likeliestOf } from './sampling';
import { Scheduler, Ticket } from './scheduler';
import { type Lease, Weights } from './weights';

interface ModelEngineOptions {
  modelPath: string;
  slots: number;
  contextLength: number | null;
  faults: TwinFaults;
}

const BYE = 'The client has disconnected.';

export class ModelEngine implements TwinEngine {
  readonly scheduler: Scheduler;
  weightVersion = 'default';
  readonly #llama: Llama;
  readonly #grammars: Grammars;
  readonly #options: ModelEngineOptions;
  #weights: Weights;
  /** Weights that were replaced without emptying the cache: prompts they have read are still answered by them. */
  #stale: Weights | null = null;

  private constructor(llama: Llama, weights: Weights, options: ModelEngineOptions) {
    this.#llama = llama;
    this.#grammars = new Grammars(llama);
    this.#weights = weights;
    this.#options = options;
    this.scheduler = new Scheduler(options.slots);
  }

  static async open(options: ModelEngineOptions): Promise<ModelEngine> {
    const llama = await getLlama({
      gpu: false,
      build: 'never',
      maxThreads: 1,
      logLevel: LlamaLogLevel.error,
      logger: () => {},
    });
    return new ModelEngine(llama, await Weights.load(llama, options.modelPath, options.contextLength), options);
  }

  get modelName(): string {
    return this.#weights.name;
  }

  get modelPath(): string {
    return this.#weights.path;
  }

  get contextLength(): number {
    return this.#weights.contextLength;
  }

  get vocabularySize(): number {
    return this.#weights.vocabulary.size;
  }

  get beginOfText(): number {
    return this.#weights.beginOfText;
  }

  get endOfText(): number {
    return this.#weights.endOfText;
  }

  async generate(request: EngineRequest): Promise<EngineGeneration> {
    const ticket = new Ticket(request.id);
    const leave = () => this.scheduler.stop((other) => other === ticket, BYE);
    request.signal.addEventListener('abort', leave, { once: true });
    try {
      await this.scheduler.admit(ticket);
      const run = new Run(request, this.#weightsFor(request.promptIds));
      if (ticket.stopped === null && request.scoreFrom !== null) await this.#score(run, request.scoreFrom);
      if (request.constraint) await this.#constrained(run, ticket);
      else await this.#free(run, ticket);
      return run.generation(run.finish ?? stoppedOr(ticket, { kind: 'length' }));
    } finally {
      request.signal.removeEventListener('abort', leave);
      this.scheduler.release(ticket);
    }
  }

  tokenize(text: string): number[] {
    return this.#weights.tokenize(text);
  }

  detokenize(ids: readonly number[], skipSpecial: boolean): string {
    const kept = skipSpecial ? ids.filter((id) => !this.#weights.isSpecial(id)) : ids;
    return new TextDecoder('utf-8', { ignoreBOM: true }).decode(
      this.#weights.vocabulary.encoded(Int32Array.from(kept)).bytes,
    );
  }

  render(messages: unknown, { addGenerationPrompt, tools }: { addGenerationPrompt: boolean; tools: unknown }): string {
    try {
      const functions = Array.isArray(tools) ? tools.map((tool) => tool.function as TemplateTool) : [];
      if (!this.#weights.template) throw new Error('The model has no chat template.');
      return this.#weights.template.render(messages as never, { addGenerationPrompt, tools: functions });
    } catch (error) {
      throw new TwinError(400, (error as Error).message);
    }
  }

  async load(path: string, { keepCache }: { keepCache: boolean }): Promise<void> {
    const next = await Weights.load(this.#llama, path, this.#options.contextLength);
    if (next.vocabulary.fingerprint !== this.#weights.vocabulary.fingerprint) {
      await next.dispose();
      throw new Error('size mismatch for model.embed_tokens.weight');
    }
    const old = this.#weights;
    const stale = this.#stale;
    this.#weights = next;
    this.#stale = keepCache ? old : null;
    await stale?.dispose();
    if (!keepCache) await old.dispose();
  }

  async flush(): Promise<void> {
    const stale = this.#stale;
    this.#stale = null;
    await stale?.dispose();
    await this.#weights.forget();
  }

  async reset(): Promise<void> {
    this.scheduler.stop(() => true, BYE);
    this.scheduler.resume();
    await this.load(this.#options.modelPath, { keepCache: false });
    this.weightVersion = 'default';
  }

  async close(): Promise<void> {
    this.scheduler.stop(() => true, BYE);
    this.scheduler.resume();
    await this.scheduler.exclusive(async () => {
      await this.#stale?.dispose();
      await this.#weights.dispose();
      await this.#llama.dispose();
    });
  }

  #weightsFor(prompt: readonly number[]): Weights {
    return this.#stale && this.#stale.cached(prompt) > 0 ? this.#stale : this.#weights;
  }

  async #score(run: Run, from: number): Promise<void> {
    const { promptIds, alternatives } = run.request;
    // The number of position p comes from the distribution after p − 1.
    const first = Math.max(0, from - 1);
    const lease = await run.lease(run.weights, promptIds);
    const distributions = await run.weights.distributions(lease, promptIds, first);
    run.weights.give(lease);
    run.promptLogprobs = promptIds.slice(from).map((id, k) => {
      const distribution = from + k === 0 ? null : distributions[from + k - 1 - first];
      if (!distribution) return { logprob: null, id, alternatives: null };
      return { logprob: distribution[id] ?? null, id, alternatives: likeliestOf(distribution, alternatives) };
    });
  }

  async #free(run: Run, ticket: Ticket): Promise<void> {
    const { request } = run;
    const { temperature, alternatives } = request;
    const random = seededRandom(request.seed ?? Math.floor(Math.random() * 2 ** 32));
    let lease: Lease | null = null;
    try {
      while (run.tokens.length < request.maxTokens && run.finish === null) {
        await this.scheduler.gate(ticket);
        if (ticket.stopped !== null) return;
        // The weights may have been replaced between two tokens.
        if (run.weights !== this.#weights && run.weights !== this.#stale) {
          run.weights = this.#weights;
          lease = null;
        }
        const began = performance.now();
        const { weightVersion } = this;
        const context = [...request.promptIds, ...run.tokens.map(({ id }) => id)];
        lease ??= await run.lease(run.weights, context);
        const [raw] = await run.weights.distributions(lease, context, context.length - 1);
        if (!raw) return;
        const sampled = atTemperature(raw, temperature);
        const id = draw(sampled, temperature === 0, request, random);
        run.push({
          id,
          sampled: sampled[id] ?? Number.NaN,
          raw: raw[id] ?? Number.NaN,
          sampledAlternatives: likeliestOf(sampled, alternatives),
          rawAlternatives: likeliestOf(raw, alternatives),
          reported: (request.reported ?? []).map((one) => [sampled[one] ?? Number.NaN, one]),
          weightVersion,
        });
        await ticket.sleep(began + this.#options.faults.msPerToken - performance.now());
      }
    } finally {
      if (lease) run.weights.give(lease);
    }
  }

  /** A grammar's state cannot be moved to other weights: a generation whose weights change here is stopped. */
  async #constrained(run: Run, ticket: Ticket): Promise<void> {
    const { request, weights } = run;
    const { constraint, promptIds, maxTokens } = request;
    if (!constraint || ticket.stopped !== null || maxTokens === 0) return;
    const grammar = await this.#grammars.get(constraint).catch((error) => {
      throw new TwinError(400, `Failed to create grammar: ${(error as Error).message}`);
    });
    const lease = await run.lease(weights, promptIds);
    const seed = (request.seed ?? Math.floor(Math.random() * 2 ** 32)) % 0xffffffff;
    const tokens = weights.constrained(lease, promptIds, grammar, { ...request, seed });
    try {
      for await (const { id, logprob, allowed } of tokens) {
        run.push({
          id,
          sampled: logprob,
          raw: Number.NaN,
          sampledAlternatives: allowed.slice(0, request.alternatives),
          rawAlternatives: [],
          weightVersion: this.weightVersion,
        });
        await ticket.sleep(this.#options.faults.msPerToken);
        await this.scheduler.gate(ticket);
        if (run.finish !== null || run.tokens.length >= maxTokens || ticket.stopped !== null) break;
        if (weights !== this.#weights && weights !== this.#stale) ticket.stop('The weights were replaced.');
      }
    } finally {
      await tokens.return(undefined);
    }
    await this.#addRaw(run, lease);
    weights.give(lease);
  }

  /** The numbers without the mask. */
  async #addRaw(run: Run, lease: Lease): Promise<void> {
    const { promptIds, alternatives } = run.request;
    const ids = run.tokens.map(({ id }) => id);
    if (ids.length === 0) return;
    const all = await run.weights.distributions(lease, [...promptIds, ...ids.slice(0, -1)], promptIds.length - 1);
    for (const [k, token] of run.tokens.entries()) {
      const raw = all[k];
      if (!raw) continue;
      token.raw = raw[token.id] ?? Number.NaN;
      token.rawAlternatives = likeliestOf(raw, alternatives);
    }
  }
}

function stoppedOr(ticket: Ticket, otherwise: EngineFinish): EngineFinish {
  return ticket.stopped === null ? otherwise : { kind: 'abort', message: ticket.stopped };
}
