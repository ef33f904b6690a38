/**
 * An engine without a neural network: canned ids and log-probabilities, and a fixed time a token. What is left of the
 * time of a bench is the client's. A token is a byte; two more are the control tokens of its ChatML template.
 */
import { type EngineGeneration, type EngineRequest, type EngineToken, type TwinEngine, TwinError } from './engine';
import type { TwinFaults } from './faults';
import { Scheduler, Ticket } from './scheduler';

export interface ServiceModel {
  msPerToken: number;
  /** Requests served at once; the rest wait. */
  slots: number;
  /** Tokens of a completion, at most what was asked for. */
  tokens: number;
  /** Default 32,768. */
  contextLength?: number;
}

const CONTROL = ['<|im_end|>', '<|im_start|>'];
const TURN_END = 256;
const WORDS = 'Thought: the sea is in there, and the answer is not. ';

export class ServiceEngine implements TwinEngine {
  readonly scheduler: Scheduler;
  readonly modelName = 'service-model';
  readonly contextLength: number;
  readonly vocabularySize = 256 + CONTROL.length;
  readonly beginOfText = 257;
  readonly endOfText = TURN_END;
  modelPath = 'service-model';
  weightVersion = 'default';
  readonly #model: ServiceModel;
  readonly #faults: TwinFaults;
  #tokens: EngineToken[] = [];
  #tokensOf = '';

  constructor(model: ServiceModel, faults: TwinFaults) {
    this.#model = model;
    this.#faults = faults;
    this.contextLength = model.contextLength ?? 32_768;
    this.scheduler = new Scheduler(model.slots);
  }

  async generate(request: EngineRequest): Promise<EngineGeneration> {
    if (request.constraint || request.scoreFrom !== null)
      throw new TwinError(400, 'The service model has no distribution: it can neither be constrained nor score.');
    const ticket = new Ticket(request.id);
    const leave = () => this.scheduler.stop((other) => other === ticket, 'The client has disconnected.');
    request.signal.addEventListener('abort', leave, { once: true });
    await this.scheduler.admit(ticket);
    try {
      const wanted = Math.min(request.maxTokens, this.#model.tokens);
      const began = performance.now();
      const msPerToken = Math.max(this.#model.msPerToken, this.#faults.msPerToken);
      const { onToken } = request;
      if (onToken) {
        for (let count = 1; count <= wanted && ticket.stopped === null; count++) {
          await ticket.sleep(began + count * msPerToken - performance.now());
          // The last one comes with the end.
          if (count < wanted) onToken(this.#generation(request, count, null));
        }
      } else await ticket.sleep(wanted * msPerToken);
      if (ticket.stopped !== null) {
        const done = msPerToken > 0 ? Math.floor((performance.now() - began) / msPerToken) : 0;
        return this.#generation(request, Math.min(done, wanted), { kind: 'abort', message: ticket.stopped });
      }
      const ends = wanted === this.#model.tokens && wanted < request.maxTokens;
      return this.#generation(request, wanted, ends ? { kind: 'stop', matched: TURN_END } : { kind: 'length' });
    } finally {
      request.signal.removeEventListener('abort', leave);
      this.scheduler.release(ticket);
    }
  }

  tokenize(text: string): number[] {
    return text
      .split(/(<\|im_end\|>|<\|im_start\|>)/)
      .flatMap((part) => (CONTROL.includes(part) ? [256 + CONTROL.indexOf(part)] : [...Buffer.from(part)]));
  }

  detokenize(ids: readonly number[], skipSpecial: boolean): string {
    const parts = ids.map((id) =>
      id < 256 ? Buffer.of(id) : Buffer.from(skipSpecial ? '' : (CONTROL[id - 256] ?? '')),
    );
    return Buffer.concat(parts).toString();
  }

  render(messages: unknown, options: { addGenerationPrompt: boolean }): string {
    const turns = (messages as { role: string; content: string }[])
      .map(({ role, content }) => `<|im_start|>${role}\n${content}<|im_end|>\n`)
      .join('');
    return options.addGenerationPrompt ? `${turns}<|im_start|>assistant\n` : turns;
  }

  async load(path: string): Promise<void> {
    this.modelPath = path;
  }

  async flush(): Promise<void> {}

  async reset(): Promise<void> {
    this.modelPath = 'service-model';
    this.weightVersion = 'default';
  }

  async close(): Promise<void> {}

  #generation(request: EngineRequest, count: number, finish: EngineGeneration['finish']): EngineGeneration {
    const tokens = this.#canned().slice(0, count);
    const last = tokens.at(-1);
    // A completion that ends by itself ends with the end-of-turn token.
    if (finish?.kind === 'stop' && last) tokens[count - 1] = { ...last, id: TURN_END };
    return { tokens, finish, promptTokens: request.promptIds.length, cachedTokens: 0, promptLogprobs: [] };
  }

  #canned(): EngineToken[] {
    if (this.#tokensOf === this.weightVersion) return this.#tokens;
    this.#tokensOf = this.weightVersion;
    this.#tokens = Array.from({ length: this.#model.tokens }, (_, k) => {
      const logprob = -0.125 - (k % 64) / 32;
      const id = WORDS.charCodeAt(k % WORDS.length);
      return {
        id,
        sampled: logprob,
        raw: logprob,
        sampledAlternatives: [[logprob, id]],
        rawAlternatives: [[logprob, id]],
        weightVersion: this.weightVersion,
      };
    });
    return this.#tokens;
  }
}
