/** One model file in memory, asked for the whole distribution of the next token: llama.cpp through its public interface. */
import {
  type Llama,
  type LlamaContextSequence,
  type LlamaGrammar,
  LlamaGrammarEvaluationState,
  type LlamaModel,
  type Token,
} from 'node-llama-cpp';
import type { ChatTemplate } from '../../chat-template';
import { arithmeticFor } from '../../embedded/arithmetic';
import { templateInside } from '../../embedded/chat-template';
import { openModelFile } from '../../embedded/model-file';
import { commonPrefix } from '../../embedded/sequence-pool';
import { Vocabulary } from '../../embedded/vocabulary';

/** A float32 probability below this is zero. */
const LEAST_LOGPROB = -103;
/** Larger pieces round differently (see ../../embedded/batch-loop.ts). */
const TOKENS_AT_ONCE = 63;

/** Natural log of every token's probability, by id, at temperature 1. */
export type Distribution = Float64Array;

/** A sequence that one request holds. It keeps what it has read for the next. */
export interface Lease {
  sequence: LlamaContextSequence;
  busy: boolean;
}

export interface ConstrainedToken {
  id: number;
  /** Natural log of its probability under the grammar, after temperature and filters. */
  logprob: number;
  /** All that the grammar allows, likeliest first. */
  allowed: [logprob: number, id: number][];
}

export class Weights {
  readonly path: string;
  readonly contextLength: number;
  readonly name: string;
  readonly vocabulary: Vocabulary;
  readonly template: ChatTemplate | null;
  readonly #model: LlamaModel;
  #leases: Lease[] = [];
  readonly #pending = new Set<Promise<unknown>>();

  private constructor(path: string, model: LlamaModel, contextLength: number) {
    this.path = path;
    this.#model = model;
    this.contextLength = contextLength;
    this.name = model.fileInfo.metadata.general?.name ?? 'model';
    this.vocabulary = Vocabulary.of(model);
    this.template = templateInside(model);
  }

  /** Throws from the error family when the file is no model. */
  static async load(llama: Llama, path: string, contextLength: number | null): Promise<Weights> {
    const model = await openModelFile(llama, path);
    try {
      return new Weights(path, model, contextLength ?? model.trainContextSize);
    } catch (error) {
      await model.dispose();
      throw error;
    }
  }

  get beginOfText(): number {
    return this.#model.tokens.bos ?? this.endOfText;
  }

  get endOfText(): number {
    return this.#model.tokens.eos ?? this.#model.tokens.eot ?? 0;
  }

  tokenize(text: string): number[] {
    return [...this.#model.tokenize(text, true)];
  }

  isSpecial(id: number): boolean {
    return this.#model.isSpecialToken(id as Token);
  }

  /** Tokens at the beginning of `prompt` that a sequence has read already; its last one is always read again. */
  cached(prompt: readonly number[]): number {
    const held = this.#leases.map(({ sequence }) => commonPrefix(sequence.contextTokens, prompt));
    return Math.min(Math.max(0, ...held), prompt.length - 1);
  }

  /** The free sequence that has read most of the prompt; a new one when all are taken. */
  async take(prompt: readonly number[]): Promise<Lease> {
    const free = this.#leases.filter((lease) => !lease.busy);
    const best = free
      .map((lease) => ({ lease, shared: commonPrefix(lease.sequence.contextTokens, prompt) }))
      .sort((a, b) => b.shared - a.shared)[0]?.lease;
    const lease = best ?? { sequence: await this.#newSequence(), busy: true };
    if (!best) this.#leases.push(lease);
    lease.busy = true;
    return lease;
  }

  give(lease: Lease): void {
    lease.busy = false;
  }

  /** Distributions of the tokens after positions `from`, `from` + 1, … of `tokens`. */
  distributions({ sequence }: Lease, tokens: readonly number[], from: number): Promise<Distribution[]> {
    return this.#while(async () => {
      await sequence.adaptStateToTokens(tokens.slice(0, from) as Token[], false);
      const start = sequence.nextTokenIndex;
      const input = tokens.slice(start).map((token, k) => {
        const wanted = start + k >= from;
        return [token as Token, { generateNext: { probabilities: wanted, options: { temperature: 0 } } }] as [
          Token,
          { generateNext: { probabilities: boolean; options: { temperature: number } } },
        ];
      });
      const outputs = await sequence.controlledEvaluate(input);
      return outputs.slice(from - start).map((output) => this.#distribution(output?.next.probabilities ?? new Map()));
    });
  }

  /** Samples under a grammar, token by token; the tokens that end a text are among them. */
  async *constrained(
    { sequence }: Lease,
    prompt: readonly number[],
    grammar: LlamaGrammar,
    options: { temperature: number; topK: number; topP: number; minP: number; seed: number },
  ): AsyncGenerator<ConstrainedToken> {
    await sequence.adaptStateToTokens(prompt.slice(0, -1) as Token[], false);
    const { topK, topP, minP } = options;
    const state = new LlamaGrammarEvaluationState({ model: this.#model, grammar });
    const tokens = sequence.evaluateWithMetadata(
      prompt.slice(sequence.nextTokenIndex) as Token[],
      { confidence: true, probabilities: true },
      {
        temperature: options.temperature,
        seed: options.seed,
        ...(topK > 0 ? { topK } : {}),
        ...(topP < 1 ? { topP } : {}),
        ...(minP > 0 ? { minP } : {}),
        grammarEvaluationState: state,
        yieldEogToken: true,
      },
    );
    try {
      for (;;) {
        const next = await this.#while(() => tokens.next());
        if (next.done) return;
        const { token, confidence, probabilities } = next.value;
        const allowed = [...probabilities]
          .filter(([, probability]) => probability > 0)
          .map(([id, probability]): [number, number] => [Math.log(probability), id])
          .sort((a, b) => b[0] - a[0]);
        yield { id: token, logprob: Math.log(confidence), allowed };
      }
    } finally {
      await tokens.return();
    }
  }

  async forget(): Promise<void> {
    for (const { sequence, busy } of this.#leases) if (!busy) await sequence.clearHistory();
  }

  /** Frees the memory when nothing is being computed any more. */
  async dispose(): Promise<void> {
    await Promise.allSettled(this.#pending);
    await this.#model.dispose();
    this.#leases = [];
  }

  async #newSequence(): Promise<LlamaContextSequence> {
    // A context each: sequences that share one have been seen to sample from each other's numbers.
    const context = await this.#model.createContext({
      contextSize: this.contextLength,
      sequences: 1,
      batchSize: TOKENS_AT_ONCE,
      threads: 1,
      swaFullCache: true,
      ...arithmeticFor(this.#model),
    });
    return context.getSequence();
  }

  #distribution(probabilities: ReadonlyMap<Token, number>): Distribution {
    const logs = new Float64Array(this.vocabulary.size).fill(LEAST_LOGPROB);
    for (const [id, probability] of probabilities) logs[id] = Math.max(LEAST_LOGPROB, Math.log(probability));
    return logs;
  }

  async #while<T>(work: () => Promise<T>): Promise<T> {
    const running = work();
    this.#pending.add(running);
    try {
      return await running;
    } finally {
      this.#pending.delete(running);
    }
  }
}
