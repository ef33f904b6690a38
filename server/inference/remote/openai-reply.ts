/** Reading a reply of `POST /v1/chat/completions`: text, what it says of its tokens, and why it ended. */
import { Unavailable } from '../../core/errors';
import type { HttpClient } from './http-client';
import { isObject } from './json-body';
import type { RawGeneration } from './protocol';
import { where } from './server-name';
import { broken, numberOrNaN } from './server-probe';

/** @param maxTokens bytes, for each is a token here; the service counts in its own tokens and may write more */
export function readReply(http: HttpClient, body: unknown, maxTokens: number): RawGeneration {
  const choices: unknown = isObject(body) ? body.choices : null;
  const choice: unknown = Array.isArray(choices) ? choices[0] : null;
  const message = isObject(choice) ? choice.message : null;
  if (!isObject(choice) || !isObject(message)) throw broken(http, '/v1/chat/completions', 'it holds no message');
  const reason = String(choice.finish_reason);
  if (reason === 'content_filter')
    throw new Unavailable(
      `${where(http)} kept its answer back: its content filter ended it. Word the task in another way.`,
      { retry: false, reached: true },
    );
  const whole = new TextEncoder().encode(typeof message.content === 'string' ? message.content : '');
  const bytes = whole.subarray(0, maxTokens);
  const cut = bytes.length < whole.length || reason === 'length';
  return {
    ids: Int32Array.from(bytes),
    logprobs: logprobsOf(choice.logprobs, whole).subarray(0, maxTokens),
    logprobKind: 'unknown',
    finish: cut ? 'length' : 'eos',
    endTokenSampled: false,
    stopString: null,
    promptTokens: null,
    weightVersions: null,
    tokenBytes: Array.from(bytes, (byte) => Uint8Array.of(byte)),
  };
}

/** The number of a token stands at its first byte and 0 at the others, so that sums are those of the service. */
function logprobsOf(said: unknown, bytes: Uint8Array): Float32Array {
  const logprobs = new Float32Array(bytes.length).fill(Number.NaN);
  const tokens: unknown[] = isObject(said) && Array.isArray(said.content) ? said.content : [];
  let at = 0;
  for (const token of tokens) {
    if (!isObject(token)) break;
    const own = Array.isArray(token.bytes)
      ? Uint8Array.from(token.bytes)
      : new TextEncoder().encode(String(token.token ?? ''));
    // Tokens that are not in the text: of thinking, or the end of the turn.
    if (own.length === 0 || !own.every((byte, k) => bytes[at + k] === byte)) break;
    logprobs.fill(0, at, at + own.length);
    logprobs[at] = numberOrNaN(token.logprob);
    at += own.length;
  }
  return logprobs;
}
