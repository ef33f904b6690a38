/**
 * New weights on SGLang: from a checkpoint folder, or moved by a trainer. Whatever else asks the server waits there while
 * it is paused.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { Invalid, Unavailable } from '../../core/errors';
import type { WeightSource } from '../../core/inference';
import { cacheProbe } from './cache-probe';
import type { HttpClient } from './http-client';
import { isObject, showJson } from './json-body';
import type { WeightRoutes } from './protocol';
import { where } from './server-name';
import { firstOf, textOrNull } from './server-probe';
import { ended } from './server-words';
import { MODEL_INFO, type SglangFacts, UNLABELLED } from './sglang-facts';

/** A load reads the whole checkpoint from a disk or a network, and begins when what runs has ended. */
const LOAD_TIMEOUT_MS = 30 * 60_000;
const IDLE_POLL_MS = 200;
const FLUSH_TRIES = 5;

export function sglangWeights(facts: SglangFacts): WeightRoutes | null {
  const canPause = facts.routes.has('pause');
  // Without labels it could never be said which weights a token is of.
  if (!facts.routes.has('weight-label')) return null;
  const sources: WeightSource[] = [];
  if (facts.routes.has('load')) sources.push('checkpoint');
  if (canPause) sources.push('external');
  if (sources.length === 0) return null;
  return {
    sources,
    canPause,
    async version(http) {
      const { weight_version: label } = await firstOf(http, MODEL_INFO);
      return textOrNull(label) ?? UNLABELLED;
    },
    async pause(http, mode, signal) {
      if (mode === 'interrupt') await hold(http, 'abort', signal);
      else await drain(http, signal);
    },
    resume: (http) => proceed(http),
    async load(http, source, version) {
      if (source.kind === 'checkpoint') await loadFromDisk(http, source.path, version);
    },
    flush: (http) => flush(http, facts, canPause),
    async stamp(http, version) {
      // Left to itself it would end every generation that runs.
      await http.postJson('/update_weight_version', { new_version: version, abort_all_requests: false });
    },
  };
}

/** `abort` ends what runs and waits, and answers when that has ended; `in_place` only stops the clock. */
async function hold(http: HttpClient, mode: 'abort' | 'in_place', signal?: AbortSignal): Promise<void> {
  await http.postJson('/pause_generation', { mode }, { signal, timeoutMs: null });
}

/** There is no way to ask for "when all is done": the cache can be emptied only then. Costs the cache, which new weights would too. */
async function drain(http: HttpClient, signal?: AbortSignal): Promise<void> {
  // What a pause holds that somebody forgot would never end. Whether there is one the server does not say.
  if (!(await emptied(http, signal))) await proceed(http, signal);
  for (;;) {
    while (!(await emptied(http, signal))) await sleep(IDLE_POLL_MS, undefined, { signal });
    await hold(http, 'in_place', signal);
    // Nothing has slipped in between.
    if (await emptied(http, signal)) return;
    await proceed(http, signal);
  }
}

async function proceed(http: HttpClient, signal?: AbortSignal): Promise<void> {
  await http.postJson('/continue_generation', {}, { signal });
}

/** False while requests run or wait. */
async function emptied(http: HttpClient, signal?: AbortSignal): Promise<boolean> {
  const { status } = await http.text('POST', '/flush_cache', undefined, { accept: [400], signal });
  return status < 300;
}

async function loadFromDisk(http: HttpClient, path: string, version: string): Promise<void> {
  const route = '/update_weights_from_disk';
  const request = { model_path: path, weight_version: version, flush_cache: true, abort_all_requests: false };
  const { status, body } = await http.postJson(route, request, {
    accept: [400],
    timeoutMs: LOAD_TIMEOUT_MS,
    once: true,
  });
  if (status < 300 && isObject(body) && body.success === true) return;
  const words = isObject(body) ? (textOrNull(body.message) ?? showJson(body)) : String(body);
  // It puts a full stop of its own behind the words of what failed.
  const why = ended(http.redaction.shorten(words).replace(/(?<=[^.\s])\.\.(?=\s)/g, '.'));
  throw new Invalid(`${where(http)} could not load ${path}: ${why}`, { status });
}

/**
 * Status 200 alone proves nothing, so the last prompt of ours that the server has read is read again: none of it may
 * come from the cache. For that it must serve for a moment; our own requests wait all the while. Somebody else may have
 * sent a prompt that begins alike in between, so it is tried more than once.
 */
async function flush(http: HttpClient, facts: SglangFacts, paused: boolean): Promise<void> {
  const read = async (prompt: Int32Array) => {
    if (!paused) return cachedTokens(http, prompt);
    await proceed(http);
    try {
      return await cachedTokens(http, prompt);
    } finally {
      await hold(http, 'in_place');
    }
  };
  const prompt = facts.lastPrompt ?? cacheProbe(facts);
  if (facts.lastPrompt === null) await read(prompt);
  let said = '';
  for (let attempt = 1; attempt <= FLUSH_TRIES; attempt++) {
    if (attempt > 1) await sleep(IDLE_POLL_MS);
    if (!(await emptied(http))) {
      said = 'POST /flush_cache was refused, as it is while requests run';
      continue;
    }
    const cached = await read(prompt);
    if (cached === 0) return;
    said = `POST /flush_cache says that it is empty, but ${cached ?? 'an unknown number'} of ${prompt.length} tokens of a prompt came from it`;
  }
  throw new Unavailable(
    `${where(http)} did not empty its prefix cache: ${said}. It may hold what the old weights computed.`,
  );
}

async function cachedTokens(http: HttpClient, promptIds: Int32Array): Promise<number | null> {
  const sampling = { max_new_tokens: 1, temperature: 0 };
  const { body } = await http.postJson('/generate', { input_ids: promptIds, sampling_params: sampling, stream: false });
  const meta = isObject(body) ? body.meta_info : null;
  return isObject(meta) && typeof meta.cached_tokens === 'number' ? meta.cached_tokens : null;
}
