/** Cuts an observation to a number of tokens: its head, its tail, and between them a line that says how much is gone. */
import type { ToolResult } from '../core/events';
import type { InferenceBackend } from '../inference/backend';

/** No token of any vocabulary in use is longer, so this much text always holds enough tokens to cut from. */
const LONGEST_TOKEN_BYTES = 64;
const HEAD_SHARE = 0.6;

export async function truncateByTokens(
  backend: Pick<InferenceBackend, 'tokenize'>,
  text: string,
  maxTokens: number,
  saveOutput: (content: Uint8Array) => Promise<string>,
): Promise<{ text: string; truncated: ToolResult['truncated'] }> {
  const bytes = new TextEncoder().encode(text);
  if (bytes.length <= maxTokens) return { text, truncated: null };
  const window = maxTokens * LONGEST_TOKEN_BYTES;
  if (bytes.length <= window && (await backend.tokenize(text, { special: false })).ids.length <= maxTokens)
    return { text, truncated: null };

  const headTokens = Math.max(1, Math.floor(maxTokens * HEAD_SHARE));
  const tailTokens = Math.max(0, maxTokens - headTokens);
  const head = await firstTokens(backend, bytes.subarray(0, Math.min(bytes.length, window)), headTokens);
  const tail = await lastTokens(backend, bytes.subarray(Math.max(head.length, bytes.length - window)), tailTokens);
  const keptBytes = head.length + tail.length;
  if (keptBytes >= bytes.length) return { text, truncated: null };
  const outputId = await saveOutput(bytes);
  const notice = `\n[${bytes.length - keptBytes} of ${bytes.length} bytes cut here]\n`;
  return { text: decode(head) + notice + decode(tail), truncated: { keptBytes, totalBytes: bytes.length, outputId } };
}

async function firstTokens(
  backend: Pick<InferenceBackend, 'tokenize'>,
  bytes: Uint8Array,
  count: number,
): Promise<Uint8Array> {
  const whole = bytes.subarray(0, characterStart(bytes, bytes.length));
  const { ids, byteEnds } = await backend.tokenize(decode(whole), { special: false });
  const end = ids.length <= count ? whole.length : (byteEnds[count - 1] as number);
  return whole.subarray(0, characterStart(whole, end));
}

async function lastTokens(
  backend: Pick<InferenceBackend, 'tokenize'>,
  bytes: Uint8Array,
  count: number,
): Promise<Uint8Array> {
  if (count === 0) return bytes.subarray(0, 0);
  const whole = bytes.subarray(characterAfter(bytes, 0));
  const { ids, byteEnds } = await backend.tokenize(decode(whole), { special: false });
  const start = ids.length <= count ? 0 : (byteEnds[ids.length - count - 1] as number);
  return whole.subarray(characterAfter(whole, start));
}

const continues = (byte: number | undefined): boolean => byte !== undefined && (byte & 0xc0) === 0x80;

/** The start of the character that the offset lies in, when it would be split; else the offset. */
function characterStart(bytes: Uint8Array, offset: number): number {
  let at = offset;
  while (at > 0 && at < bytes.length && continues(bytes[at])) at--;
  return at;
}

function characterAfter(bytes: Uint8Array, offset: number): number {
  let at = offset;
  while (at < bytes.length && continues(bytes[at])) at++;
  return at;
}

function decode(bytes: Uint8Array): string {
  return new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes);
}
