/** The twins themselves, spoken to with a plain fetch: what is known of the servers, and the switches. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { noFaults } from './faults';
import { startSglangTwin } from './sglang';
import { startTensorrtTwin } from './tensorrt';
import type { Twin } from './twin';
import { TwinFixture } from './twin-fixture';
import { startTwinProcess } from './twin-process';

const fixture = new TwinFixture();
beforeAll(() => fixture.open());
afterAll(() => fixture.close());

interface Answer {
  status: number;
  text: string;
  json: unknown;
}

async function call(url: string, body?: unknown, signal?: AbortSignal): Promise<Answer> {
  const headers = { 'content-type': 'application/json' };
  const response = await fetch(
    url,
    body === undefined ? {} : { method: 'POST', headers, body: JSON.stringify(body), signal: signal ?? null },
  );
  const text = await response.text();
  return { status: response.status, text, json: text.startsWith('{') || text.startsWith('[') ? JSON.parse(text) : {} };
}

const until = async (met: () => boolean) => {
  while (!met()) await new Promise((settle) => setTimeout(settle, 5));
};

describe('the SGLang twin', () => {
  let twin: Twin;
  beforeAll(async () => {
    twin = await startSglangTwin({ modelPath: fixture.tiny, disconnectPollMs: 20 });
  });
  afterEach(() => Object.assign(twin.faults, noFaults()));
  afterAll(() => twin.close());
  const generate = (changes: object = {}, sampling: object = {}) =>
    call(`${twin.url}/generate`, {
      input_ids: [70, 71, 72],
      sampling_params: { max_new_tokens: 5, ...sampling },
      return_logprob: true,
      ...changes,
    });

  it('samples at a temperature with the numbers of that temperature', async () => {
    const { json } = await generate({}, { temperature: 0.6, max_new_tokens: 1 });
    const [[logprob, id]] = (json as { meta_info: { output_token_logprobs: [[number, number]] } }).meta_info
      .output_token_logprobs;
    // The whole distribution from a teacher that knows of no temperature.
    const teacher = await fixture.teacher(fixture.tiny);
    const size = twin.engine.vocabularySize;
    const promptIds = Int32Array.of(70, 71, 72);
    const pairs = Array.from({ length: size }, (_, token) => ({ promptIds, completionIds: Int32Array.of(token) }));
    const scores = await teacher.getLogprobs(pairs);
    const scaled = scores.map((score) => (score.logprobs[0] ?? 0) / 0.6);
    const norm = Math.log(scaled.reduce((sum, value) => sum + Math.exp(value), 0));
    expect(logprob).toBeCloseTo((scaled[id] ?? 0) - norm, 2);
  });

  it('keeps to the window of prompt numbers, whose first is null', async () => {
    const { json } = await generate({ logprob_start_len: 1, top_logprobs_num: 2 }, { max_new_tokens: 0 });
    const meta = (json as { meta_info: Record<string, unknown[]> }).meta_info;
    expect(meta.input_token_logprobs).toEqual([
      [null, 71, null],
      [expect.any(Number), 72, null],
    ]);
    expect(meta.input_top_logprobs?.[0]).toBeNull();
    expect(meta.input_top_logprobs?.[1]).toHaveLength(2);
    expect(json).toMatchObject({ output_ids: [], meta_info: { finish_reason: { type: 'length', length: 0 } } });
  });

  it('streams all so far with each chunk and ends with a marker, unless it is cut', async () => {
    const chunks = async () =>
      (await generate({ stream: true }, { temperature: 0 })).text.split('\n\n').filter((line) => line !== '');
    const whole = await chunks();
    expect(whole.at(-1)).toBe('data: [DONE]');
    const ids = whole.slice(0, -1).map((line) => JSON.parse(line.slice(6)).output_ids.length);
    expect(ids).toEqual([1, 2, 3, 4, 5]);
    twin.faults.cutStream = true;
    const cut = await chunks().catch(() => ['broken']);
    expect(cut.at(-1)).not.toBe('data: [DONE]');
  });

  it('answers a batch with a list, and several samples too', async () => {
    expect((await generate({ input_ids: [[70], [71, 72]] })).json).toHaveLength(2);
    expect((await generate({}, { n: 3 })).json).toHaveLength(3);
  });

  it('refuses what SGLang refuses, in the shape of the route', async () => {
    const nested = async (sampling: object, changes: object = {}) => {
      const { status, json } = await generate(changes, sampling);
      expect(status).toBe(400);
      return (json as { error?: { message?: string } }).error?.message;
    };
    expect(await nested({ seed: 1 })).toContain("unexpected keyword argument 'seed'");
    expect(await nested({ regex: 'a', ebnf: 'root ::= "a"' })).toContain('Only one of');
    expect(await nested({ max_new_tokens: 2000 })).toContain(
      "exceeds the model's maximum context length of 1024 tokens",
    );
    const long = { input_ids: new Array(1024).fill(70) };
    expect(await nested({}, long)).toContain("longer than the model's context length (1024 tokens)");
    expect(await nested({}, { text: 'both' })).toContain('Either text, input_ids or input_embeds');
    const flat = await call(`${twin.url}/tokenize`, { prompt: 'a', messages: [] });
    expect(flat.json).toMatchObject({ object: 'error', code: 400, type: 'BadRequestError' });
    expect((await call(`${twin.url}/nowhere`)).json).toEqual({ detail: 'Not Found' });
    expect((await call(`${twin.url}/generate`)).status).toBe(405);
    expect((await call(`${twin.url}/load_lora_adapter`, { lora_name: 'a', lora_path: '/a' })).json).toMatchObject({
      success: false,
    });
  });

  it('stops by the beginning of a name, keeps what was sampled, and flushes only when idle', async () => {
    twin.faults.msPerToken = 10;
    const running = generate({ rid: 'r10' }, { max_new_tokens: 500, ignore_eos: true });
    await until(() => twin.counters().running > 0);
    expect((await call(`${twin.url}/flush_cache`, {})).status).toBe(400);
    await new Promise((settle) => setTimeout(settle, 40));
    await call(`${twin.url}/abort_request`, { rid: 'r1' });
    const { json } = await running;
    expect(json).toMatchObject({ meta_info: { finish_reason: { type: 'abort' } } });
    expect((json as { output_ids: number[] }).output_ids.length).toBeGreaterThan(0);
    expect((await call(`${twin.url}/flush_cache`, {})).status).toBe(200);
    await generate();
    expect((await generate()).json).toMatchObject({ meta_info: { cached_tokens: 2 } });
    await call(`${twin.url}/flush_cache`, {});
    expect((await generate()).json).toMatchObject({ meta_info: { cached_tokens: 0 } });
  });

  it('lets what runs end before new weights, unless it is paused, and ends all when only the label is set', async () => {
    twin.faults.msPerToken = 5;
    const running = generate({}, { max_new_tokens: 30, ignore_eos: true });
    await until(() => twin.counters().running > 0);
    const update = { model_path: fixture.next, weight_version: 'v2' };
    expect((await call(`${twin.url}/update_weights_from_disk`, update)).json).toMatchObject({ success: true });
    expect(twin.counters().running).toBe(0);
    expect((await running).json).toMatchObject({ meta_info: { completion_tokens: 30 } });
    expect((await call(`${twin.url}/model_info`)).json).toMatchObject({ weight_version: 'v2' });
    const broken = await call(`${twin.url}/update_weights_from_disk`, {
      model_path: fixture.missing,
      weight_version: 'v3',
    });
    expect(broken).toMatchObject({ status: 400, json: { success: false } });
    expect((await call(`${twin.url}/model_info`)).json).toMatchObject({
      weight_version: 'v2',
      model_path: fixture.next,
    });
    const ended = generate({}, { max_new_tokens: 500, ignore_eos: true });
    await until(() => twin.counters().running > 0);
    await call(`${twin.url}/update_weight_version`, { new_version: 'v4' });
    expect((await ended).json).toMatchObject({ meta_info: { finish_reason: { type: 'abort' }, weight_version: 'v4' } });
  });

  it('ends what a client has left', async () => {
    twin.faults.msPerToken = 10;
    const stop = new AbortController();
    const left = call(
      `${twin.url}/generate`,
      { input_ids: [70], sampling_params: { max_new_tokens: 900, ignore_eos: true } },
      stop.signal,
    );
    await until(() => twin.counters().running > 0);
    stop.abort();
    await expect(left).rejects.toThrow();
    await until(() => twin.counters().running === 0);
  });
});

describe('the trtllm-serve twin', () => {
  let twin: Twin;
  beforeAll(async () => {
    twin = await startTensorrtTwin({ modelPath: fixture.tiny });
  });
  afterAll(() => twin.close());
  const complete = (changes: object = {}) =>
    call(`${twin.url}/v1/completions`, { model: 'any', prompt: [70, 71], max_tokens: 4, ...changes });

  it('gives ids only instead of text, and numbers from 1 on', async () => {
    const choice = async (changes: object) =>
      ((await complete(changes)).json as { choices: Record<string, unknown>[] }).choices[0] ?? {};
    expect(await choice({})).toMatchObject({ token_ids: null, logprobs: null, text: expect.stringMatching(/./s) });
    expect(await choice({ logprobs: 0 })).toMatchObject({ logprobs: null });
    const ids = await choice({ detokenize: false, logprobs: 1, ignore_eos: true });
    expect(ids).toMatchObject({ text: '', token_ids: expect.any(Array), finish_reason: 'length' });
    expect(ids.token_ids).toHaveLength(4);
    expect(Object.keys(ids.logprobs as object)).toEqual(['tokens', 'token_logprobs', 'text_offset', 'top_logprobs']);
  });

  it('refuses fields that it does not know, with a string', async () => {
    expect(await complete({ return_token_ids: true })).toMatchObject({
      status: 400,
      json: { error: expect.stringContaining('Extra inputs are not permitted') },
    });
    expect(await complete({ max_tokens: 5000 })).toMatchObject({ status: 400, json: { object: 'error' } });
  });

  it('fails over its own answer when it cuts a stop string off the ids', async () => {
    const { json } = await complete({ temperature: 0 });
    const stop = String((json as { choices?: { text: string }[] }).choices?.[0]?.text).slice(1, 2);
    const wanted = { temperature: 0, detokenize: false, logprobs: 1, stop };
    expect(await complete(wanted)).toMatchObject({
      status: 400,
      json: { message: expect.stringContaining('AssertionError') },
    });
    expect(await complete({ ...wanted, include_stop_str_in_output: true })).toMatchObject({ status: 200 });
  });

  it('tells its iterations once, and its figures as text', async () => {
    await complete();
    expect((await call(`${twin.url}/metrics`)).json).not.toHaveLength(0);
    expect((await call(`${twin.url}/metrics`)).json).toHaveLength(0);
    expect((await call(`${twin.url}/prometheus/metrics`)).text).toContain('trtllm_num_requests_running');
    expect((await call(`${twin.url}/update_weights`, { weights: null })).status).toBe(404);
    expect((await call(`${twin.url}/tokenize`, { prompt: 'a' })).status).toBe(404);
  });
});

describe('a service model in a process of its own', () => {
  it('takes the time its tokens take, serves so many at once, and comes back on its port', async () => {
    const serviceModel = { msPerToken: 2, slots: 2, tokens: 20 };
    const twin = await startTwinProcess({ kind: 'sglang', options: { serviceModel, keepLog: false } });
    const request = { input_ids: [65], sampling_params: { max_new_tokens: 64 }, return_logprob: true };
    const began = performance.now();
    const replies = await Promise.all(Array.from({ length: 6 }, () => call(`${twin.url}/generate`, request)));
    // Six requests of 40 ms each, two at a time.
    expect(performance.now() - began).toBeGreaterThan(115);
    for (const { json } of replies)
      expect(json).toMatchObject({ meta_info: { completion_tokens: 20, finish_reason: { type: 'stop' } } });
    expect(await twin.counters()).toMatchObject({ requests: 6, mostRunning: 2, generatedTokens: 120, running: 0 });
    await twin.kill();
    await expect(call(`${twin.url}/health`)).rejects.toThrow();
    await twin.restart();
    expect((await call(`${twin.url}/health`)).status).toBe(200);
    await twin.setFaults({ unavailableNext: 1 });
    expect((await call(`${twin.url}/generate`, request)).status).toBe(503);
    await twin.close();
  });
});
