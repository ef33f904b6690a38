/**
 * A backend whose policy is a script, with the corners real servers have: tokens of more than a byte that its own
 * tokenizer would never choose (so text read back gives other ids), a template that may drop earlier thinking or one of
 * a public model, delays, failures, numbers that are no log-probabilities, requests that do not listen to their signal.
 */
import { Template } from '@huggingface/jinja';
import { Cancelled, Invalid, Unavailable } from '../../core/errors';
import type { ChatMessage } from '../../core/events';
import type { WeightSpan } from '../../core/tokens/chunk';
import type { LogprobKind } from '../../core/vocabulary';
import type { ModelChat } from '../../harness/testing/model-chat';
import type {
  BackendCapabilities,
  CompletionScores,
  EncodedText,
  GenerationRequest,
  GenerationResult,
  InferenceBackend,
  TemplateOptions,
} from '../../inference/backend';
import { StopStrings } from '../../inference/stop-strings';

export const TURN_END = 256;
export const TURN_START = 257;
const CHATML = { controls: ['<|im_end|>', '<|im_start|>'], ends: ['<|im_end|>'] };
/** Ids of the policy's own longer tokens; `tokenize` never gives one. */
const FIRST_PIECE = 300;

export interface ScriptedReply {
  /** The turn; the end-of-turn token follows it. With a model's template its control tokens are sampled as such. */
  text: string;
  /** Another end-of-turn token than the usual; null: the engine keeps it to itself. */
  endToken?: string | null;
  delayMs?: number;
  /** Instead of a turn. */
  error?: Error;
  /** Does not stop when it is asked to. */
  deaf?: boolean;
  /** Tokens after which this server stops by itself, as if the limit were lower. */
  mostTokens?: number;
  logprob?: (k: number) => number;
  /** Which weights made which of n tokens; absent: `w1` made them all. */
  weights?: (n: number) => WeightSpan[];
}

export interface ScriptInput {
  /** The text of all prompt tokens, control tokens spelled out. */
  prompt: string;
  /** Observations the agent has had since the task, counted in the prompt; with a model's template, prompts before this. */
  turn: number;
  /** 1 for the first request of this trajectory at this prompt. */
  attempt: number;
  affinityKey: string;
  seed: number;
}

export interface ScriptedOptions {
  script(input: ScriptInput): string | ScriptedReply;
  /** Longer tokens the policy samples wherever its text has them. */
  pieces?: readonly string[];
  /** The template leaves `<think>…</think>` out of every assistant turn but the one being written. */
  dropsThinking?: boolean;
  /** Instead: the template and control tokens of a model. */
  chat?: ModelChat;
  constraints?: BackendCapabilities['constraints'];
  canScore?: boolean;
  kind?: LogprobKind;
  /** What scoring gives for token k. */
  score?: (k: number) => number;
  contextLength?: number;
  maxInFlight?: number;
  batchSize?: number;
}

export class ScriptedBackend implements InferenceBackend {
  readonly name = 'scripted';
  /** Sizes of the calls, and the most requests there were at once. */
  readonly calls: number[] = [];
  readonly requests: GenerationRequest[] = [];
  mostInFlight = 0;
  readonly #options: ScriptedOptions;
  readonly #pieces: readonly { bytes: Uint8Array; id: number }[];
  readonly #controls: ReadonlyMap<string, number>;
  readonly #controlPattern: RegExp;
  readonly #template: Template | null;
  readonly #attempts = new Map<string, number>();
  #inFlight = 0;

  constructor(options: ScriptedOptions) {
    this.#options = options;
    const { controls } = options.chat ?? CHATML;
    this.#controls = new Map(controls.map((text, k) => [text, TURN_END + k]));
    const escaped = controls.map((text) => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));
    this.#controlPattern = new RegExp(`(${escaped.join('|')})`);
    this.#template = options.chat ? new Template(options.chat.template) : null;
    this.#pieces = (options.pieces ?? [])
      .map((piece, k) => ({ bytes: new TextEncoder().encode(piece), id: FIRST_PIECE + k }))
      .sort((a, b) => b.bytes.length - a.bytes.length);
  }

  async generate(requests: GenerationRequest[]): Promise<PromiseSettledResult<GenerationResult>[]> {
    this.calls.push(requests.length);
    this.requests.push(...requests);
    this.#inFlight += requests.length;
    this.mostInFlight = Math.max(this.mostInFlight, this.#inFlight);
    const results = await Promise.allSettled(requests.map((request) => this.#generate(request)));
    this.#inFlight -= requests.length;
    return results;
  }

  async getLogprobs(pairs: { completionIds: Int32Array }[]): Promise<CompletionScores[]> {
    if (!this.#options.canScore) throw new Unavailable('The scripted backend was told not to score.');
    return pairs.map(({ completionIds }) => ({
      logprobs: Float32Array.from(completionIds, (_, k) => this.#options.score?.(k) ?? -2),
      entropy: null,
      alternatives: null,
    }));
  }

  async weightVersion(): Promise<string> {
    return 'script';
  }

  async updateWeights(): Promise<void> {
    throw new Invalid('The scripted backend has no weights.');
  }

  async tokenize(text: string, { special }: { special: boolean }): Promise<EncodedText> {
    return this.#encoded(special ? this.#spelled(text) : [...new TextEncoder().encode(text)]);
  }

  async applyTemplate(messages: ChatMessage[], { addGenerationPrompt, tools = [] }: TemplateOptions): Promise<string> {
    const { chat, dropsThinking } = this.#options;
    if (this.#template && chat) {
      try {
        return this.#template.render({
          messages,
          add_generation_prompt: addGenerationPrompt,
          ...(tools.length > 0 ? { tools: tools.map((tool) => ({ type: 'function', function: tool })) } : {}),
          bos_token: chat.bos,
          eos_token: chat.ends[0] ?? '',
        });
      } catch (error) {
        throw new Invalid(`The template refuses these messages: ${error instanceof Error ? error.message : error}.`);
      }
    }
    const turns = messages.map(({ role, content }) => {
      const kept =
        dropsThinking && role === 'assistant' ? content.replace(/<think>[\s\S]*?<\/think>\n?/g, '') : content;
      return `<|im_start|>${role}\n${kept}<|im_end|>\n`;
    });
    return turns.join('') + (addGenerationPrompt ? '<|im_start|>assistant\n' : '');
  }

  async health(): Promise<{ ok: boolean; message: string }> {
    return { ok: true, message: 'Follows a script.' };
  }

  async capabilities(): Promise<BackendCapabilities> {
    return this.capabilitiesNow();
  }

  capabilitiesNow(): BackendCapabilities {
    const {
      kind = 'raw',
      canScore = false,
      constraints = [],
      contextLength = 100_000,
      maxInFlight = 16,
      batchSize = 1,
    } = this.#options;
    return {
      tokenIds: true,
      logprobs: kind,
      canScore,
      entropy: false,
      constraints,
      weightSources: [],
      canPause: false,
      seeded: true,
      embeddings: false,
      contextLength,
      modelName: 'script',
      batchSize,
      maxInFlight,
    };
  }

  async close(): Promise<void> {}

  async #generate(request: GenerationRequest): Promise<GenerationResult> {
    const { promptIds, options, affinityKey, signal, rawLogprobs = false } = request;
    if (signal?.aborted) throw new Cancelled('The generation was stopped on request.');
    const key = `${affinityKey} ${promptIds.length}`;
    const attempt = (this.#attempts.get(key) ?? 0) + 1;
    this.#attempts.set(key, attempt);
    const prompt = new TextDecoder().decode(this.#encoded([...promptIds]).bytes);
    const turn = this.#template ? this.#turnsBefore(affinityKey, promptIds.length) : observationsIn(prompt);
    const said = this.#options.script({ prompt, turn, attempt, affinityKey, seed: options.seed });
    const reply: ScriptedReply = typeof said === 'string' ? { text: said } : said;
    if (reply.delayMs !== undefined) await wait(reply.delayMs, reply.deaf ? undefined : signal);
    if (reply.error) throw reply.error;
    const most = Math.min(options.maxTokens, reply.mostTokens ?? Number.POSITIVE_INFINITY);
    const stops = new StopStrings(options.stop);
    const ids: number[] = [];
    let finishReason: GenerationResult['finishReason'] = 'length';
    let stopString: string | null = null;
    const { ends } = this.#options.chat ?? CHATML;
    const endIds = ends.map((text) => this.#controls.get(text));
    const endToken = this.#controls.get(reply.endToken ?? ends[0] ?? '') ?? TURN_END;
    for (const id of [...this.#sample(reply.text), endToken]) {
      if (ids.length === most) break;
      if (endIds.includes(id)) finishReason = 'eos';
      if (finishReason === 'eos' && reply.endToken === null) break;
      ids.push(id);
      if (finishReason !== 'eos') stopString = stops.push(this.#bytesOf(id));
      if (stopString !== null) finishReason = 'stop';
      if (finishReason !== 'length') break;
    }
    const { kind = 'raw', canScore = false, score } = this.#options;
    const sampled = Float32Array.from(ids, (_, k) => reply.logprob?.(k) ?? -1);
    const again = rawLogprobs && canScore && (kind !== 'raw' || sampled.some((value) => Number.isNaN(value)));
    return {
      ...this.#encoded(ids),
      logprobs: again ? sampled.map((_, k) => score?.(k) ?? -2) : sampled,
      logprobKind: again ? 'raw' : kind,
      finishReason,
      endTokenSampled: finishReason === 'eos' && reply.endToken !== null,
      stopString,
      weightVersions: reply.weights?.(ids.length) ?? [{ version: 'w1', start: 0, end: ids.length }],
    };
  }

  /** Prompts of other lengths that this trajectory was asked with before. */
  #turnsBefore(affinityKey: string, length: number): number {
    const keys = [...this.#attempts.keys()].filter((key) => key.startsWith(`${affinityKey} `));
    return keys.filter((key) => key !== `${affinityKey} ${length}`).length;
  }

  /** Control strings as control tokens, all else byte by byte. */
  #spelled(text: string): number[] {
    return text
      .split(this.#controlPattern)
      .flatMap((part, k) => (k % 2 === 1 ? [this.#controls.get(part) ?? 0] : [...new TextEncoder().encode(part)]));
  }

  /** Longest piece first: not the way its tokenizer splits the same text. */
  #sample(text: string): number[] {
    if (this.#template) return this.#spelled(text);
    const bytes = new TextEncoder().encode(text);
    const ids: number[] = [];
    for (let at = 0; at < bytes.length; ) {
      const piece = this.#pieces.find((p) => p.bytes.every((byte, k) => bytes[at + k] === byte));
      ids.push(piece?.id ?? (bytes[at] as number));
      at += piece?.bytes.length ?? 1;
    }
    return ids;
  }

  #bytesOf(id: number): Uint8Array {
    const piece = this.#pieces.find((p) => p.id === id);
    if (piece) return piece.bytes;
    for (const [text, control] of this.#controls) if (control === id) return new TextEncoder().encode(text);
    return Uint8Array.of(id);
  }

  #encoded(ids: readonly number[]): EncodedText {
    const parts = ids.map((id) => this.#bytesOf(id));
    let total = 0;
    const byteEnds = Uint32Array.from(parts, (part) => {
      total += part.length;
      return total;
    });
    const bytes = new Uint8Array(total);
    parts.forEach((part, k) => void bytes.set(part, (byteEnds[k] as number) - part.length));
    return { ids: Int32Array.from(ids), bytes, byteEnds };
  }
}

function observationsIn(prompt: string): number {
  return prompt.slice(prompt.indexOf('<|im_start|>user')).split('Observation:').length - 1;
}

function wait(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms);
    const stop = (): void => {
      clearTimeout(timer);
      reject(new Cancelled('The generation was stopped on request.'));
    };
    signal?.addEventListener('abort', stop, { once: true });
  });
}
