/**
 * New weights on trtllm-serve: a trainer on the same machine moves them (`POST /update_weights` with handles of its own);
 * here the cache is emptied after it. The routes exist where the server was given a control key, and every call to them
 * is signed with it.
 */
import { createHmac } from 'node:crypto';
import { Forbidden, isStudioError, Unavailable } from '../../core/errors';
import { cacheProbe } from './cache-probe';
import type { HttpClient } from './http-client';
import { isObject, writeJson } from './json-body';
import type { WeightRoutes } from './protocol';
import { where } from './server-name';
import type { TensorrtFacts } from './tensorrt-llm-facts';

const HEADER = 'x-trtllm-rl-control-auth';
const MEMORY_TIMEOUT_MS = 5 * 60_000;

/** Null where the server has no such routes. The key is in nothing that is sent, only in what signs it. */
export function tensorrtWeights(facts: TensorrtFacts, controlKey: string): WeightRoutes | null {
  if (!facts.routes.has('control')) return null;
  return {
    sources: ['external'],
    // It has no route for that: our own requests are held back here.
    canPause: false,
    keepsLabel: false,
    version: () => Promise.reject(new Unavailable('trtllm-serve keeps no label of its weights.')),
    pause: () => Promise.resolve(),
    resume: () => Promise.resolve(),
    load: () => Promise.resolve(),
    async flush(http) {
      const prompt = facts.lastPrompt ?? cacheProbe(facts);
      // It may have left the cache since it was read.
      await cachedTokens(http, facts, prompt);
      // What the cache holds goes with its memory.
      await control(http, controlKey, '/release_memory', { tags: ['kv_cache'] });
      await control(http, controlKey, '/resume_memory', { tags: ['kv_cache'] });
      await checkEmpty(http, facts, prompt);
    },
    // Memory of no kind is taken back. A server that wants at least one has read the signature before it says so.
    checkKey: (http) => control(http, controlKey, '/resume_memory', { tags: [] }, [400, 422, 500]),
    stamp: () => Promise.resolve(),
  };
}

async function control(
  http: HttpClient,
  key: string,
  path: string,
  body: Record<string, unknown>,
  accept: number[] = [],
): Promise<void> {
  // Over the very bytes that are sent.
  const signature = createHmac('sha256', key).update(writeJson(body)).digest('hex');
  const headers = { [HEADER]: `sha256=${signature}` };
  try {
    await http.postJson(path, body, { headers, timeoutMs: MEMORY_TIMEOUT_MS, accept, once: true });
  } catch (error) {
    if (!isStudioError(error) || error.code !== 'forbidden') throw error;
    throw new Forbidden(
      `${where(http)} does not accept the control key: it answered POST ${path} with status ${error.details.status}. Give the control key that it was started with.`,
      error.details,
      { cause: error },
    );
  }
}

/** A prompt that the server has read is read again: none of it may come from the cache. */
async function checkEmpty(http: HttpClient, facts: TensorrtFacts, prompt: Int32Array): Promise<void> {
  const cached = await cachedTokens(http, facts, prompt);
  if (cached === 0) return;
  throw new Unavailable(
    cached === null
      ? `${where(http)} does not say whether its prefix cache is empty (no usage.prompt_tokens_details); it may hold what the old weights computed.`
      : `${where(http)} gave up its prefix cache, but took ${cached} of ${prompt.length} tokens of a prompt from it; it holds what the old weights computed.`,
  );
}

async function cachedTokens(
  http: HttpClient,
  { modelName }: TensorrtFacts,
  prompt: Int32Array,
): Promise<number | null> {
  const request = { model: modelName, prompt, max_tokens: 1, temperature: 0, detokenize: false };
  const { body } = await http.postJson('/v1/completions', request);
  const usage = isObject(body) && isObject(body.usage) ? body.usage : {};
  const details = isObject(usage.prompt_tokens_details) ? usage.prompt_tokens_details : {};
  return typeof details.cached_tokens === 'number' ? details.cached_tokens : null;
}
