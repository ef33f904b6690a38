/** What a tokenizer.json says, as far as it is read here: the bytes of its tokens and where it splits text. */
import { Invalid } from '../../core/errors';

export interface AddedToken {
  id: number;
  content: string;
  special?: boolean;
}

export interface TokenizerJson {
  model: {
    type?: string;
    vocab: Record<string, number> | [string, number][];
    merges?: unknown;
    byte_fallback?: boolean;
  };
  added_tokens: AddedToken[];
  normalizer: unknown;
  pre_tokenizer: unknown;
  post_processor: unknown;
  decoder: unknown;
}

interface Step {
  type?: string;
  [field: string]: unknown;
}

const GPT2_SPLIT = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

/**
 * The tokenizer package has GPT-2's split built in as a JavaScript pattern, whose \s is not that of the original
 * (U+FEFF is in, U+0085 is not); written out as a split of its own it is translated as it should be.
 */
export function withSplitOfOwn(json: TokenizerJson): TokenizerJson {
  return { ...json, pre_tokenizer: splitOfOwn(json.pre_tokenizer as Step | null) };
}

function splitOfOwn(step: Step | null): Step | null {
  if (step?.type === 'Sequence' && Array.isArray(step.pretokenizers))
    return { ...step, pretokenizers: step.pretokenizers.map((inner: Step) => splitOfOwn(inner)) };
  if (step?.type !== 'ByteLevel' || step.use_regex === false || step.add_prefix_space === true) return step;
  const split = { type: 'Split', pattern: { Regex: GPT2_SPLIT }, behavior: 'Isolated', invert: false };
  return { type: 'Sequence', pretokenizers: [split, { ...step, use_regex: false }] };
}

/** The bytes of every token, by id. Throws Invalid for a tokenizer whose tokens cannot be told as bytes. */
export function bytesOfVocabulary(folder: string, json: TokenizerJson): (Uint8Array | undefined)[] {
  const { model } = json;
  const steps = [...stepsOf(json.decoder, 'decoders'), ...stepsOf(json.pre_tokenizer, 'pretokenizers')];
  const has = (type: string) => steps.some((step) => step.type === type);
  const kind = has('ByteLevel') ? 'byte-level' : marksBlanks(json, steps) ? 'sentencepiece' : null;
  if (kind === null || model.type === 'WordPiece' || model.type === 'WordLevel')
    throw new Invalid(
      `The tokenizer in ${folder} is of a kind (${model.type ?? 'no type'}) whose tokens cannot be told as bytes; byte-level BPE and SentencePiece can be used.`,
    );
  const decode = kind === 'byte-level' ? byteLevelBytes : sentencePieceBytes;
  const bytes: (Uint8Array | undefined)[] = [];
  if (Array.isArray(model.vocab)) for (const [id, [text]] of model.vocab.entries()) bytes[id] = decode(text);
  else for (const [text, id] of Object.entries(model.vocab)) bytes[id] = decode(text);
  for (const { id, content } of json.added_tokens) bytes[id] = new TextEncoder().encode(content);
  return bytes;
}

function stepsOf(step: unknown, list: string): Step[] {
  if (typeof step !== 'object' || step === null) return [];
  const inner = (step as Step)[list];
  return Array.isArray(inner) ? inner.flatMap((each) => stepsOf(each, list)) : [step as Step];
}

/** SentencePiece writes ▁ for a blank; a vocabulary that has it, or bytes to fall back on, is of that kind. */
function marksBlanks({ model }: TokenizerJson, steps: Step[]): boolean {
  return model.byte_fallback === true || steps.some(({ type }) => type === 'Metaspace' || type === 'ByteFallback');
}

function sentencePieceBytes(text: string): Uint8Array {
  const byte = /^<0x([0-9A-Fa-f]{2})>$/.exec(text);
  return byte
    ? Uint8Array.of(Number.parseInt(byte[1] ?? '0', 16))
    : new TextEncoder().encode(text.replaceAll('▁', ' '));
}

function byteLevelBytes(text: string): Uint8Array {
  const out: number[] = [];
  for (const character of text) {
    const byte = BYTE_OF_CHARACTER.get(character);
    if (byte === undefined) out.push(...new TextEncoder().encode(character));
    else out.push(byte);
  }
  return Uint8Array.from(out);
}

/** GPT-2's table: printable bytes stand for themselves, the others for characters from U+0100 on, in order. */
const BYTE_OF_CHARACTER: ReadonlyMap<string, number> = (() => {
  let next = 256;
  return new Map(
    Array.from({ length: 256 }, (_, byte) => {
      const printable = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
      return [String.fromCodePoint(printable ? byte : next++), byte];
    }),
  );
})();
