/**
 * The bytes of tokens, found out from a server that only turns ids into text.
 *
 * Ids are decoded between separators, many in one request: nothing at the beginning of a text is dropped from them and no
 * token's bytes run into another's. A token that holds only a part of a character decodes to U+FFFD; it is decoded again
 * with single bytes around it that may complete the character, and those are taken off.
 */
import { Invalid } from '../../core/errors';
import { quoted } from './server-words';
import { sideBySide } from './side-by-side';

export interface TokenSource {
  /** Name and address, for sentences. */
  who: string;
  /** Ids of a text with no control tokens in it, none added. */
  encode(text: string): Promise<Int32Array>;
  /** Text of ids, special tokens included. */
  decode(ids: Int32Array): Promise<string>;
}

/** No beginning of it is an end of it, so it is found where it was put whatever stands beside it. */
const SEPARATOR = 'qxjkvbz';
const REPLACEMENT = '\uFFFD';
const IDS_A_REQUEST = 64;
const FRAGMENTS_A_REQUEST = 8;
/** Characters of four bytes that no vocabulary has merged: their tokens are single bytes. The first byte of each may begin any. */
const RARE = ['\u{C0000}', '\u{40000}', '\u{80000}'];

interface Framing {
  separator: Int32Array;
  /** Its text between tokens (SentencePiece puts a blank in front). */
  text: string;
  probes: Probe[];
}

/** Ids around a fragment of a character, and how many bytes they are. */
interface Probe {
  before: number[];
  after: number[];
}

export class TokenBytes {
  readonly #source: TokenSource;
  readonly #known = new Map<number, Uint8Array>();
  readonly #asked = new Map<number, Promise<void>>();
  #framing: Promise<Framing> | null = null;

  constructor(source: TokenSource) {
    this.#source = source;
  }

  /** Bytes of an id that has been looked up; throws when it has not. */
  get(id: number): Uint8Array {
    const bytes = this.#known.get(id);
    if (!bytes) throw new Error(`Token ${id} was read before it was looked up.`);
    return bytes;
  }

  /** Bytes that the server itself gave. */
  learn(id: number, bytes: Uint8Array): void {
    if (!this.#known.has(id)) this.#known.set(id, bytes);
  }

  /** Finds out what is not known yet of these ids. */
  async lookUp(ids: Iterable<number>): Promise<void> {
    const wanted = [...new Set(ids)].filter((id) => !this.#known.has(id));
    const unasked = wanted.filter((id) => !this.#asked.has(id));
    for (let from = 0; from < unasked.length; from += IDS_A_REQUEST) {
      const some = unasked.slice(from, from + IDS_A_REQUEST);
      const answer = this.#find(some).finally(() => {
        for (const id of some) this.#asked.delete(id);
      });
      for (const id of some) this.#asked.set(id, answer);
    }
    await Promise.all(wanted.map((id) => this.#asked.get(id)));
  }

  readonly #decode = sideBySide((ids: Int32Array) => this.#source.decode(ids));

  async #find(ids: number[]): Promise<void> {
    this.#framing ??= this.#frame().catch((error: unknown) => {
      this.#framing = null;
      throw error;
    });
    const framing = await this.#framing;
    const texts = await this.#texts(
      framing,
      ids.map((id) => [id]),
    );
    const fragments: number[] = [];
    for (const [k, id] of ids.entries()) {
      const text = texts[k] ?? '';
      if (text.includes(REPLACEMENT)) fragments.push(id);
      else this.learn(id, new TextEncoder().encode(text));
    }
    const groups: number[][] = [];
    for (let k = 0; k < fragments.length; k += FRAGMENTS_A_REQUEST)
      groups.push(fragments.slice(k, k + FRAGMENTS_A_REQUEST));
    await Promise.all(groups.map((group) => this.#complete(framing, group)));
    const whole = fragments.filter((id) => !this.#known.has(id));
    await Promise.all(whole.map((id) => this.#spelled(framing, id, texts[ids.indexOf(id)] ?? '')));
  }

  /** Texts of runs of ids, each run between two separators. */
  async #texts(framing: Framing, runs: number[][]): Promise<string[]> {
    if (runs.length === 0) return [];
    const ids = [...framing.separator];
    for (const run of runs) ids.push(...run, ...framing.separator);
    const text = await this.#decode(Int32Array.from(ids));
    const texts: string[] = [];
    // The first separator stands at the beginning, where the blank in front of it may be dropped.
    let from = text.indexOf(SEPARATOR);
    if (from >= 0) from += SEPARATOR.length;
    for (let to = text.indexOf(framing.text, from); from >= 0 && to >= 0; to = text.indexOf(framing.text, from)) {
      texts.push(text.slice(from, to));
      from = to + framing.text.length;
    }
    if (texts.length === runs.length) return texts;
    if (runs.length === 1)
      throw new Invalid(
        `${this.#source.who} does not give the text of token ${runs[0]?.join(' ')}: between separators it came back as ${quoted(text, 200)}.`,
      );
    const half = runs.length >> 1;
    const [left, right] = await Promise.all([
      this.#texts(framing, runs.slice(0, half)),
      this.#texts(framing, runs.slice(half)),
    ]);
    return [...left, ...right];
  }

  /** Fragments of characters: decoded with bytes before and after that complete them. */
  async #complete(framing: Framing, ids: number[]): Promise<void> {
    const { probes } = framing;
    const runs = ids.flatMap((id) => probes.map(({ before, after }) => [...before, id, ...after]));
    const texts = await this.#texts(framing, runs);
    for (const [k, id] of ids.entries()) {
      const at = probes.findIndex((_, p) => !texts[k * probes.length + p]?.includes(REPLACEMENT));
      const probe = probes[at];
      if (!probe) continue;
      const bytes = new TextEncoder().encode(texts[k * probes.length + at]);
      this.learn(id, bytes.slice(probe.before.length, bytes.length - probe.after.length));
    }
  }

  /**
   * What no byte around it completes is either a token that has U+FFFD as a character, which the text's encoding tells,
   * or has bytes that are part of no character (C0, C1, F5 to FF): each of them stands as FF and reads as U+FFFD as well.
   */
  async #spelled({ separator }: Framing, id: number, text: string): Promise<void> {
    const [alone, behind] = await Promise.all([this.#source.encode(text), this.#source.encode(SEPARATOR + text)]);
    const is =
      (alone.length === 1 && alone[0] === id) ||
      (behind.length === separator.length + 1 &&
        behind.at(-1) === id &&
        separator.every((each, k) => behind[k] === each));
    const parts = text.split(REPLACEMENT).map((part) => [...new TextEncoder().encode(part)]);
    this.learn(
      id,
      is
        ? new TextEncoder().encode(text)
        : Uint8Array.from(parts.flatMap((part, k) => (k > 0 ? [0xff, ...part] : part))),
    );
  }

  async #frame(): Promise<Framing> {
    const separator = await this.#source.encode(SEPARATOR);
    const twice = await this.#decode(Int32Array.from([...separator, ...separator]));
    const first = twice.indexOf(SEPARATOR);
    const text = first < 0 ? '' : twice.slice(first + SEPARATOR.length);
    if (first > 1 || text.trimStart() !== SEPARATOR || text.length > SEPARATOR.length + 1)
      throw new Invalid(
        `${this.#source.who} does not give back the text that it turned into ids: ${JSON.stringify(SEPARATOR)} twice came back as ${quoted(twice, 200)}. Perhaps it adds tokens of its own.`,
      );
    return { separator, text, probes: await this.#probes(separator) };
  }

  /** Single bytes: the first of a character of four (F1 to F3), 80 and BF. Empty when the vocabulary has no such tokens. */
  async #probes(separator: Int32Array): Promise<Probe[]> {
    const bytesOf = async (character: string) => {
      const ids = await this.#source.encode(SEPARATOR + character);
      const own = [...ids.slice(separator.length)];
      return separator.every((id, k) => ids[k] === id) && own.length === 4 ? own : null;
    };
    for (const character of RARE) {
      const last = String.fromCodePoint((character.codePointAt(0) ?? 0) + 0x3f);
      const [low, high] = await Promise.all([bytesOf(character), bytesOf(last)]);
      if (!low || !high) continue;
      const [first = 0, x80 = 0] = low;
      const xBF = high[3] ?? 0;
      // One to three bytes that end a character begin the token, one to three that a character lacks come after it.
      const befores = [[], [first, x80, x80], [first, x80], [first]];
      // The second byte of some characters may not be 80, of some not BF; every later one may be 80.
      const afters = [[], [x80], [x80, x80], [xBF, x80], [x80, x80, x80], [xBF, x80, x80]];
      return befores.flatMap((before) => afters.map((after) => ({ before, after }))).slice(1);
    }
    return [];
  }
}
