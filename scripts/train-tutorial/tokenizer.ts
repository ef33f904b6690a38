/**
 * Learns a byte-level BPE vocabulary (Sennrich et al. 2016, on bytes as in GPT-2): all 256 bytes, so that any text can be
 * encoded, and pieces merged from the pairs that are most frequent in the tutorial's own text.
 * It only learns; llama.cpp does the encoding, in training and in serving, so that both see the same ids.
 */
import type { ByteLevelVocabulary } from '../../server/inference/gguf/llama';

export const SPECIAL_TOKENS = ['<|endoftext|>', '<|im_start|>', '<|im_end|>', '<|pad|>'] as const;

/** How llama.cpp splits text before merging when `tokenizer.ggml.pre` is `gpt-2`. */
const PIECES = /'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+/gu;

/** GPT-2's printable stand-in for each byte: printable Latin-1 stands for itself, the rest follow from U+0100. */
export function byteAlphabet(): string[] {
  const printable = (byte: number) => (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
  let next = 256;
  return Array.from({ length: 256 }, (_, byte) => String.fromCharCode(printable(byte) ? byte : next++));
}

/** One distinct piece of the text: its symbols as merged so far, and how often it occurs. */
interface Word {
  symbols: string[];
  count: number;
}

/**
 * `texts` → how often each occurs. Merges until the vocabulary has `size` tokens; ties go to the pair that sorts first, so
 * the result does not depend on the order of the texts. Throws when the text has too few distinct pairs for that size.
 */
export function learnVocabulary(texts: ReadonlyMap<string, number>, size: number): ByteLevelVocabulary {
  const alphabet = byteAlphabet();
  const words = countWords(texts, alphabet);
  const tokens: string[] = [...SPECIAL_TOKENS, ...alphabet];
  const merges: string[] = [];
  while (tokens.length < size) {
    const best = mostFrequentPair(words);
    if (!best) {
      throw new Error(
        `The text has pairs for ${tokens.length} tokens only; ${size} were asked for. Ask for fewer or give more text.`,
      );
    }
    const [left, right] = best.split(' ') as [string, string];
    merges.push(best);
    tokens.push(left + right);
    for (const word of words) word.symbols = mergePair(word.symbols, left, right);
  }
  return {
    tokens,
    specialCount: SPECIAL_TOKENS.length,
    merges,
    endOfText: '<|endoftext|>',
    endOfTurn: '<|im_end|>',
    padding: '<|pad|>',
  };
}

function countWords(texts: ReadonlyMap<string, number>, alphabet: readonly string[]): Word[] {
  const counts = new Map<string, number>();
  for (const [text, times] of texts) {
    for (const [piece] of text.matchAll(PIECES)) counts.set(piece, (counts.get(piece) ?? 0) + times);
  }
  const encoder = new TextEncoder();
  return [...counts].map(([piece, count]) => ({
    symbols: [...encoder.encode(piece)].map((byte) => alphabet[byte] as string),
    count,
  }));
}

function mostFrequentPair(words: readonly Word[]): string | null {
  const counts = new Map<string, number>();
  for (const { symbols, count } of words) {
    for (let i = 0; i + 1 < symbols.length; i++) {
      const pair = `${symbols[i]} ${symbols[i + 1]}`;
      counts.set(pair, (counts.get(pair) ?? 0) + count);
    }
  }
  let best: string | null = null;
  let bestCount = 0;
  for (const [pair, count] of counts) {
    if (count > bestCount || (count === bestCount && best !== null && pair < best)) {
      best = pair;
      bestCount = count;
    }
  }
  return best;
}

function mergePair(symbols: string[], left: string, right: string): string[] {
  const merged: string[] = [];
  for (let i = 0; i < symbols.length; i++) {
    if (symbols[i] === left && symbols[i + 1] === right) {
      merged.push(left + right);
      i++;
    } else {
      merged.push(symbols[i] as string);
    }
  }
  return merged;
}
