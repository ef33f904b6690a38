/**
 * A backend that answers at once, from a script: what is left of a run's time is the harness's own. A token is a
 * byte (id = byte), two more are the control tokens of its ChatML template. Its policy is the script: the scripted
 * token has probability 1 (log-probability 0), every other none.
 */
import { Cancelled, Invalid, Unavailable } from '../../core/errors';
import type { ChatMessage } from '../../core/events';
import type {
  BackendCapabilities,
  CompletionScores,
  EncodedText,
  GenerationRequest,
  GenerationResult,
  InferenceBackend,
  ScoreOptions,
  ScorePair,
} from '../backend';
import { checkSampling } from '../sampling';
import { StopStrings } from '../stop-strings';
import { PLAIN_CAPABILITIES } from './capabilities';

export const TURN_END = 256;
export const TURN_START = 257;
const CONTROL = new Map([
  ['<|im_end|>', TURN_END],
  ['<|im_start|>', TURN_START],
]);
const CONTROL_BYTES = new Map([...CONTROL].map(([text, id]) => [id, new TextEncoder().encode(text)]));
/** The log of a probability of zero, as far as a float32 can say. */
const NEVER = -103;
const VERSION = 'script';

export interface InstantOptions {
  name?: string;
  /** The whole turn that follows a prompt; the end-of-turn token is added. Same prompt, same text. */
  script(promptBytes: Uint8Array): string;
  contextLength?: number;
  maxInFlight?: number;
}

export class InstantBackend implements InferenceBackend {
  readonly name: string;
  readonly #script: InstantOptions['script'];
  readonly #contextLength: number;
  readonly #maxInFlight: number;
  #closed = false;

  constructor(options: InstantOptions) {
    this.name = options.name ?? 'instant';
    this.#script = options.script;
    this.#contextLength = options.contextLength ?? 32_768;
    this.#maxInFlight = options.maxInFlight ?? 64;
  }

  async generate(requests: GenerationRequest[]): Promise<PromiseSettledResult<GenerationResult>[]> {
    for (const request of requests) checkSampling(request.options);
    return Promise.allSettled(requests.map(async (request) => this.#generate(request)));
  }

  async getLogprobs(pairs: ScorePair[], { alternatives: k = 0 }: ScoreOptions = {}): Promise<CompletionScores[]> {
    this.#checkOpen();
    return pairs.map(({ promptIds, completionIds }) => {
      const turn = this.#turnAfter(promptIds);
      const off = completionIds.findIndex((id, i) => turn[i] !== id);
      const certain = (i: number) => off === -1 || i < off;
      return {
        logprobs: Float32Array.from(completionIds, (_, i) => (certain(i) ? 0 : NEVER)),
        entropy: null,
        alternatives: k === 0 ? null : likeliest(completionIds, k, certain),
      };
    });
  }

  async weightVersion(): Promise<string> {
    return 'script';
  }

  async updateWeights(): Promise<void> {
    throw new Invalid('The instant backend follows a script and has no weights to change.');
  }

  async tokenize(text: string, options: { special: boolean }): Promise<EncodedText> {
    this.#checkOpen();
    const parts = options.special ? text.split(/(<\|im_end\|>|<\|im_start\|>)/) : [text];
    const ids: number[] = [];
    for (const part of parts) {
      const control = options.special ? CONTROL.get(part) : undefined;
      if (control === undefined) for (const byte of new TextEncoder().encode(part)) ids.push(byte);
      else ids.push(control);
    }
    return encoded(Int32Array.from(ids));
  }

  async applyTemplate(messages: ChatMessage[], options: { addGenerationPrompt: boolean }): Promise<string> {
    this.#checkOpen();
    const turns = messages.map(({ role, content }) => `<|im_start|>${role}\n${content}<|im_end|>\n`).join('');
    return options.addGenerationPrompt ? `${turns}<|im_start|>assistant\n` : turns;
  }

  async health(): Promise<{ ok: boolean; message: string }> {
    return { ok: !this.#closed, message: this.#closed ? 'Closed.' : 'Answers at once, from a script.' };
  }

  async capabilities(): Promise<BackendCapabilities> {
    return {
      ...PLAIN_CAPABILITIES,
      contextLength: this.#contextLength,
      modelName: 'script',
      maxInFlight: this.#maxInFlight,
    };
  }

  async close(): Promise<void> {
    this.#closed = true;
  }

  #generate({ promptIds, options, signal }: GenerationRequest): GenerationResult {
    this.#checkOpen();
    if (signal?.aborted) throw new Cancelled('The generation was stopped on request.');
    if (promptIds.length === 0) throw new Invalid('The prompt is empty: at least one token is needed to go on from.');
    const unknown = promptIds.find((id) => id < 0 || id > TURN_START);
    if (unknown !== undefined) throw new Invalid(`The token id ${unknown} is in no vocabulary of the instant backend.`);
    if (options.constraint) throw new Invalid('The instant backend follows a script and cannot be constrained.');
    const room = this.#contextLength - promptIds.length;
    if (room <= 0)
      throw new Invalid(
        `The context of the script holds ${this.#contextLength} tokens and this prompt has ${promptIds.length}.`,
      );
    const turn = this.#turnAfter(promptIds);
    const most = Math.min(options.maxTokens, room);
    const stops = new StopStrings(options.stop);
    let length = 0;
    let finishReason: GenerationResult['finishReason'] = 'length';
    let stopString: string | null = null;
    while (length < most) {
      const id = turn[length++] ?? TURN_END;
      if (id === TURN_END) {
        finishReason = 'eos';
        break;
      }
      stopString = stops.push(Uint8Array.of(id));
      if (stopString !== null) {
        finishReason = 'stop';
        break;
      }
    }
    return {
      ...encoded(turn.slice(0, length)),
      logprobs: new Float32Array(length),
      logprobKind: 'raw',
      finishReason,
      endTokenSampled: finishReason === 'eos',
      stopString,
      weightVersions: [{ version: VERSION, start: 0, end: length }],
    };
  }

  /** The scripted turn with the token that ends it. */
  #turnAfter(promptIds: Int32Array): Int32Array {
    const text = new TextEncoder().encode(this.#script(encoded(promptIds).bytes));
    const turn = new Int32Array(text.length + 1);
    turn.set(text);
    turn[text.length] = TURN_END;
    return turn;
  }

  #checkOpen(): void {
    if (this.#closed) throw new Unavailable(`The backend ${this.name} is closed.`);
  }
}

function encoded(ids: Int32Array): EncodedText {
  const byteEnds = new Uint32Array(ids.length);
  let total = 0;
  for (let k = 0; k < ids.length; k++) {
    total += CONTROL_BYTES.get(ids[k] ?? 0)?.length ?? 1;
    byteEnds[k] = total;
  }
  const bytes = new Uint8Array(total);
  for (let k = 0; k < ids.length; k++) {
    const id = ids[k] ?? 0;
    const start = k > 0 ? (byteEnds[k - 1] ?? 0) : 0;
    const control = CONTROL_BYTES.get(id);
    if (control) bytes.set(control, start);
    else bytes[start] = id;
  }
  return { ids, bytes, byteEnds };
}

/** The scripted token where one is certain, then others that never come. */
function likeliest(
  tokens: Int32Array,
  k: number,
  certain: (i: number) => boolean,
): NonNullable<CompletionScores['alternatives']> {
  const ids = new Int32Array(tokens.length * k);
  const logprobs = new Float32Array(ids.length).fill(NEVER);
  for (const [i, token] of tokens.entries()) {
    const first = certain(i) ? [token] : [];
    const others = Array.from({ length: k + 1 }, (_, id) => id).filter((id) => !first.includes(id));
    ids.set([...first, ...others].slice(0, k), i * k);
    if (first.length > 0) logprobs[i * k] = 0;
  }
  return { k, ids, logprobs };
}
