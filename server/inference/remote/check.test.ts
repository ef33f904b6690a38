import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { fixedAmbient } from '../../core/ambient';
import { Cancelled, Invalid, Unavailable } from '../../core/errors';
import type { BackendCheck, CheckItem } from '../../core/inference';
import { silentLogger } from '../../observability/logger';
import { writeTinyCheckpoint } from '../testing/checkpoint';
import { writeTinyModel } from '../testing/tiny-model';
import { writeQwenTokenizer } from '../testing/tokenizer-folder';
import { type SglangTwinOptions, startSglangTwin } from '../testing/twin/sglang';
import { startTensorrtTwin, type TensorrtTwinOptions } from '../testing/twin/tensorrt';
import type { Twin } from '../testing/twin/twin';
import { checkServer, type ServerCheckOptions } from './check';
import type { ServerFacts, ServerProtocol } from './protocol';
import { PROTOCOLS } from './protocols';
import { sglang } from './sglang';

let folder: string;
const open: { close(): Promise<unknown> }[] = [];

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'check-'));
  await writeTinyModel(join(folder, 'tiny.gguf'));
  await writeTinyCheckpoint(join(folder, 'tiny'));
  await writeQwenTokenizer(join(folder, 'qwen'));
});
afterEach(async () => {
  await Promise.all(open.splice(0).map((each) => each.close()));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const check = (url: string, changes: Partial<ServerCheckOptions> = {}): Promise<BackendCheck> =>
  checkServer({
    url,
    key: null,
    kind: null,
    model: null,
    tokenizerFolder: null,
    contextLength: null,
    backendName: 'far',
    logger: silentLogger,
    ambient: fixedAmbient(),
    protocols: PROTOCOLS,
    ...changes,
  });

async function sglangTwin(options: Partial<SglangTwinOptions> = {}): Promise<Twin> {
  const twin = await startSglangTwin({ modelPath: join(folder, 'tiny.gguf'), ...options });
  open.push(twin);
  return twin;
}

async function tensorrtTwin(options: Partial<TensorrtTwinOptions> = {}): Promise<Twin> {
  const twin = await startTensorrtTwin({ modelPath: join(folder, 'tiny.gguf'), ...options });
  open.push(twin);
  return twin;
}

async function listen(listener: RequestListener): Promise<string> {
  const server: Server = createServer(listener);
  await new Promise<void>((ready) => server.listen(0, '127.0.0.1', ready));
  open.push({
    close: () => {
      server.closeAllConnections();
      return new Promise((closed) => server.close(closed));
    },
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const item = ({ items }: BackendCheck, id: CheckItem['id']): CheckItem => {
  const found = items.find((each) => each.id === id);
  if (!found) throw new Error(`No item ${id} among ${items.map((each) => each.id).join(', ')}`);
  return found;
};
const statuses = ({ items }: BackendCheck) => Object.fromEntries(items.map(({ id, status }) => [id, status]));
const withSglang = (changes: Partial<ServerProtocol>) => ({ ...PROTOCOLS, sglang: { ...sglang, ...changes } });

describe('the check of a good server', () => {
  it('finds out what it is and can, shows what it asked, and changes nothing there', async () => {
    const twin = await sglangTwin({ key: 'secret-key-of-mine' });
    const result = await check(twin.url, { key: 'secret-key-of-mine' });
    expect(statuses(result)).toEqual({
      reach: 'pass',
      kind: 'pass',
      model: 'pass',
      context_length: 'pass',
      token_round_trip: 'pass',
      tokenizer: 'pass',
      chat_template: 'pass',
      logprob_kind: 'pass',
      scoring: 'pass',
      constraints: 'pass',
      weight_updates: 'pass',
      metrics: 'pass',
      embeddings: 'absent',
    });
    expect(result).toMatchObject({ url: twin.url, kind: 'sglang', ok: true });
    expect(result.fingerprint).toContain('sglang');
    expect(result.capabilities).toMatchObject({
      tokenIds: true,
      logprobs: 'raw',
      canScore: true,
      constraints: ['json_schema', 'regex', 'grammar', 'choice'],
      weightSources: ['checkpoint', 'external'],
      canPause: true,
      embeddings: false,
      contextLength: 1024,
      modelName: 'tiny.gguf',
      batchSize: 1,
    });
    expect(item(result, 'token_round_trip').sent).toMatch(/^POST \/generate \{"rid":"check-\d{8}","input_ids":\[/);
    expect(item(result, 'token_round_trip').received).toMatch(/^200 \{"text":.*more characters\]/);
    expect(item(result, 'chat_template').says).toContain(
      String.raw`"<|im_start|>user\nCount: one, two, three,<|im_end|>\n`,
    );
    expect(item(result, 'logprob_kind').says).toMatch(
      /^Sampled at temperature 1 and at 2, the same token has log-probabilities that differ by \d+(\.\d+)?: they are those after temperature\. At temperature 1 without filters they are the model's own\.$/,
    );
    expect(item(result, 'scoring').says).toMatch(/differ by at most (0|0\.\d{1,4}|\d\.\de-\d) from/);
    for (const { sent, received } of result.items) {
      expect((sent ?? '').length).toBeLessThan(400);
      expect((received ?? '').length).toBeLessThan(400);
    }
    expect(JSON.stringify(result)).not.toContain('secret-key-of-mine');
    const asked = new Set(twin.log.filter(({ status }) => status === 200).map(({ path }) => path));
    for (const path of asked) expect(path).not.toMatch(/update|pause|continue|flush|load|abort/);
  });

  it('says nothing of weight updates that would be stale after the next one', async () => {
    const twin = await sglangTwin();
    const before = item(await check(twin.url), 'weight_updates').says;
    await fetch(`${twin.url}/update_weight_version`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ new_version: 'step-11', abort_all_requests: false }),
    });
    const { weight_version: now } = (await (await fetch(`${twin.url}/model_info`)).json()) as Record<string, unknown>;
    expect(now).toBe('step-11');
    expect(item(await check(twin.url), 'weight_updates').says).toBe(before);
  });

  it('says that a context length that was given is not used where the server tells another', async () => {
    const twin = await sglangTwin();
    const result = await check(twin.url, { contextLength: 100_000 });
    expect(item(result, 'context_length').says).toBe(
      'Its context holds 1024 tokens, as it says itself; the 100000 that you gave are not used.',
    );
    expect(result.capabilities?.contextLength).toBe(1024);
  });

  it('reads tokens with the folder of the model where the server has no route for text', async () => {
    const twin = await tensorrtTwin({ serverInfo: false });
    const result = await check(twin.url, { tokenizerFolder: join(folder, 'tiny'), contextLength: 1024 });
    expect(result.ok).toBe(true);
    expect(item(result, 'context_length').says).toBe('Its context holds 1024 tokens, as you say.');
    expect(item(result, 'tokenizer')).toMatchObject({
      status: 'warn',
      says: expect.stringContaining('cannot be compared'),
    });
    expect(item(result, 'scoring').status).toBe('absent');
    expect(result.capabilities).toMatchObject({ canScore: false, logprobs: 'raw', contextLength: 1024 });
  });

  it('compares the folder with the server where both have a tokenizer', async () => {
    const twin = await sglangTwin();
    const right = await check(twin.url, { tokenizerFolder: join(folder, 'tiny') });
    expect(item(right, 'tokenizer')).toMatchObject({
      status: 'pass',
      says: expect.stringContaining('the ids that the server gives'),
    });
    const wrong = await check(twin.url, { tokenizerFolder: join(folder, 'qwen') });
    expect(item(wrong, 'tokenizer')).toMatchObject({
      status: 'fail',
      says: expect.stringContaining('is of another model'),
    });
    expect(wrong.capabilities).toBeNull();
    const none = await check(twin.url, { tokenizerFolder: join(folder, 'nowhere') });
    expect(item(none, 'tokenizer').says).toContain(`There is no tokenizer.json in ${join(folder, 'nowhere')}`);
  });
});

describe('the check of a service of chat completions', () => {
  it('says what is lost without token ids', async () => {
    const url = await listen(async (request, response) => {
      let text = '';
      for await (const chunk of request) text += chunk;
      const { response_format: format } = text === '' ? {} : JSON.parse(text);
      const content = format ? '{"zqxzqx":"zqxzqx"}' : 'four, five';
      const answers: Record<string, unknown> = {
        '/v1/models': { object: 'list', data: [{ id: 'far-away-1', object: 'model', owned_by: 'a company' }] },
        '/v1/chat/completions': {
          choices: [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }],
          usage: { prompt_tokens: 9, completion_tokens: 4, total_tokens: 13 },
        },
      };
      const answer = answers[request.url ?? ''];
      response.statusCode = answer ? 200 : 404;
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify(answer ?? { error: { message: 'No such route.' } }));
    });
    const result = await check(url, { contextLength: 8192 });
    expect(result).toMatchObject({ kind: 'openai', ok: true });
    expect(item(result, 'token_round_trip')).toMatchObject({
      status: 'warn',
      says: expect.stringContaining('approximate'),
    });
    expect(item(result, 'tokenizer').status).toBe('absent');
    expect(item(result, 'logprob_kind').status).toBe('warn');
    expect(item(result, 'chat_template').says).toMatch(
      /^It is sent messages and puts them into a template of its own,/,
    );
    expect(item(await check(url), 'context_length').says).toContain('--context-length N');
    expect(result.capabilities).toMatchObject({
      tokenIds: false,
      logprobs: 'unknown',
      canScore: false,
      constraints: ['json_schema'],
      contextLength: 8192,
      modelName: 'far-away-1',
      embeddings: false,
    });
  });
});

describe('the check of a service that says what its numbers are by nothing', () => {
  it('names the loss also where they look like those of the model', async () => {
    const twin = await sglangTwin();
    const protocols = withSglang({
      generate: async (http, facts, call) => ({
        ...(await sglang.generate(http, facts, { ...call, options: { ...call.options, temperature: 1 } })),
        logprobKind: 'unknown',
      }),
    });
    expect(item(await check(twin.url, { protocols }), 'logprob_kind')).toMatchObject({
      status: 'warn',
      says: expect.stringMatching(/same log-probabilities.*nothing from it can be trained on as sampled\.$/),
    });
  });
});

describe('the check of a server that gives no answer', () => {
  it('says at once that it is paused where it tells', async () => {
    const twin = await sglangTwin();
    const weights = (facts: ServerFacts) => {
      const routes = sglang.weights(facts);
      return routes && { ...routes, paused: async () => true };
    };
    const result = await check(twin.url, { protocols: withSglang({ weights }) });
    expect(item(result, 'token_round_trip').says).toContain('stands paused');
    expect(twin.log.filter(({ path }) => path === '/generate')).toEqual([]);
  });

  it('says that a paused server looks like that where it does not tell, and how to go on', async () => {
    const twin = await sglangTwin();
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    try {
      const generate: ServerProtocol['generate'] = (_http, _facts, { signal }) =>
        new Promise((_answer, fail) => {
          signal?.addEventListener('abort', () => fail(signal.reason));
          vi.advanceTimersByTime(60_000);
        });
      const result = await check(twin.url, { protocols: withSglang({ generate }) });
      expect(item(result, 'token_round_trip')).toMatchObject({
        status: 'fail',
        says: expect.stringMatching(/did not answer within 60 s\. A paused server looks like that.*resume it/),
      });
    } finally {
      vi.useRealTimers();
    }
  });
});

describe('the check says what is at an address', () => {
  it('nothing', async () => {
    const url = await listen(() => {});
    await Promise.all(open.splice(0).map((each) => each.close()));
    const result = await check(url);
    expect(result).toMatchObject({ ok: false, kind: null, capabilities: null, fingerprint: null });
    expect(statuses(result)).toEqual({ reach: 'fail' });
    expect(item(result, 'reach').says).toContain('refused the connection');
    expect(item(result, 'reach')).toMatchObject({ sent: expect.stringContaining('GET /v1/models'), received: null });
  });

  it('a web page', async () => {
    const twin = await sglangTwin({ faults: { html: true } });
    const result = await check(twin.url);
    expect(statuses(result)).toEqual({ reach: 'fail' });
    expect(item(result, 'reach').says).toContain('is no inference server');
  });

  it('something else that speaks JSON', async () => {
    const url = await listen((_request, response) => response.end('{"hello":"there"}'));
    const result = await check(url);
    expect(statuses(result)).toEqual({ reach: 'pass', kind: 'fail' });
    expect(item(result, 'kind')).toMatchObject({
      sent: 'GET /model_info (one of 4 requests)',
      received: '200 {"hello":"there"}',
    });
    expect(item(result, 'kind').says).toContain('none of the servers that are known here');
  });

  it('a server of another kind than was said', async () => {
    const twin = await sglangTwin();
    const result = await check(twin.url, { kind: 'vllm' });
    expect(result).toMatchObject({ ok: false, kind: 'sglang', capabilities: null });
    expect(statuses(result)).toEqual({ reach: 'pass', kind: 'fail' });
    expect(item(result, 'kind').says).toBe('It is SGLang and not vLLM. Add it as SGLang.');
    expect(twin.log.filter(({ path }) => path === '/generate')).toEqual([]);
  });

  it.each(['constructor', '__proto__', 'toString'])('no server by a word that only looks known: %s', async (owner) => {
    const models = { data: [{ id: 'm', owned_by: owner, max_model_len: 64 }] };
    const url = await listen(({ url: path }, response) => {
      response.statusCode = path === '/v1/models' ? 200 : 404;
      response.end(JSON.stringify(models));
    });
    expect(await check(url)).toMatchObject({ ok: false, kind: 'openai' });
  });

  it('a server with other models, or one that does not say how long its context is', async () => {
    const twin = await sglangTwin();
    const other = await check(twin.url, { model: 'llama-70b' });
    expect(item(other, 'model')).toMatchObject({
      status: 'fail',
      says: expect.stringContaining('does not serve the model llama-70b'),
    });
    const silent = await tensorrtTwin({ serverInfo: false });
    const result = await check(silent.url, { tokenizerFolder: join(folder, 'tiny') });
    expect(item(result, 'context_length')).toMatchObject({
      status: 'fail',
      says: expect.stringContaining('Give the length in tokens'),
    });
    expect(result.ok).toBe(false);
  });

  it('one that wants a key, without showing the one it got back', async () => {
    const url = await listen((request, response) => {
      response.statusCode = 401;
      response.end(JSON.stringify({ error: { message: `The key ${request.headers.authorization} is wrong.` } }));
    });
    const result = await check(url, { key: 'a-very-secret-key' });
    expect(item(result, 'reach').says).toContain('does not accept the key');
    expect(item(result, 'reach').says).toMatch(/The key Bearer \[key\] is wrong\. Give its key with --key-env NAME,/);
    expect(item(result, 'reach').received).toBe('401 The key Bearer [key] is wrong.');
    expect(JSON.stringify(result)).not.toContain('a-very-secret-key');
  });

  it('and is ended by the one who asked for it', async () => {
    const twin = await sglangTwin({ faults: { hang: true, routes: ['/generate'] } });
    const stop = new AbortController();
    const result = check(twin.url, { signal: stop.signal });
    const reason = new Cancelled('Nobody waits for it any more.');
    const waiting = setInterval(() => {
      if (twin.log.some(({ path }) => path === '/generate')) stop.abort(reason);
    }, 5);
    await expect(result).rejects.toBe(reason);
    clearInterval(waiting);
  });
});

describe('the check sees that tokens cannot be trusted', () => {
  it('when a token is put before every prompt', async () => {
    const twin = await sglangTwin({ faults: { addBos: true } });
    const result = await check(twin.url);
    expect(item(result, 'token_round_trip').status).toBe('fail');
    expect(item(result, 'token_round_trip').says).toContain('it adds a beginning-of-text token');
    expect(result.ok).toBe(false);
  });

  it('when replies have no ids, or nothing comes back at all', async () => {
    const twin = await sglangTwin({ faults: { missingIds: true } });
    const result = await check(twin.url);
    expect(item(result, 'token_round_trip')).toMatchObject({ status: 'fail', says: expect.stringContaining('ids') });
    expect(result.items.map(({ id }) => id)).not.toContain('scoring');
    twin.faults.missingIds = false;
    twin.faults.drop = true;
    twin.faults.routes = ['/generate'];
    expect(item(await check(twin.url), 'token_round_trip').says).toContain('closed the connection');
  });

  it('when text comes back as other text', async () => {
    const twin = await sglangTwin();
    const protocols = withSglang({
      tokenize: async (http, facts, text, special) =>
        (await sglang.tokenize?.(http, facts, text.replaceAll(',', ';'), special)) as Int32Array,
    });
    const result = await check(twin.url, { protocols });
    expect(item(result, 'tokenizer')).toMatchObject({
      status: 'fail',
      says: expect.stringContaining('turns the text "," into ids that say ";"'),
    });
  });

  it('when numbers are missing, above 0, or of another distribution than their label says', async () => {
    const twin = await sglangTwin();
    const changed = (change: (value: number, k: number) => number, scores = false) => {
      const over = (raw: { logprobs: Float32Array }) => ({ ...raw, logprobs: raw.logprobs.map(change) });
      const name = scores ? 'score' : 'generate';
      const protocols = withSglang({
        [name]: async (...call: Parameters<ServerProtocol['generate']>) =>
          over(await (sglang[name] as ServerProtocol['generate'])(...call)),
      });
      return check(twin.url, { protocols });
    };
    const missing = await changed((value, k) => (k === 1 ? Number.NaN : value));
    expect(item(missing, 'logprob_kind').says).toContain('gives no log-probability for the sampled token 1');
    const logits = await changed((value) => value + 12);
    expect(item(logits, 'logprob_kind').says).toContain('no log-probability is above 0');
    const other = await changed((value) => value - 3, true);
    expect(item(other, 'scoring')).toMatchObject({
      status: 'fail',
      says: expect.stringContaining('is not what it samples from'),
    });
    const little = await changed((value) => value - 0.3, true);
    expect(item(little, 'scoring').status).toBe('warn');
    expect(little.ok).toBe(true);
    const labelled = await check(twin.url, {
      protocols: withSglang({
        generate: async (...call) => ({ ...(await sglang.generate(...call)), logprobKind: 'raw' }),
      }),
    });
    expect(item(labelled, 'logprob_kind')).toMatchObject({
      status: 'fail',
      says: expect.stringContaining('after temperature'),
    });
    const masked = await check(twin.url, {
      protocols: withSglang({
        generate: async (http, facts, call) => {
          const raw = await sglang.generate(http, facts, call);
          return {
            ...raw,
            logprobKind: 'raw',
            logprobs: call.options.topK === 1 ? raw.logprobs.fill(0) : raw.logprobs,
          };
        },
      }),
    });
    expect(item(masked, 'logprob_kind').says).toContain('those of the filtered distribution');
  });

  it('when a server that can score refuses to', async () => {
    const twin = await sglangTwin();
    const score = () => Promise.reject(new Unavailable('It has no memory left for that.'));
    const result = await check(twin.url, { protocols: withSglang({ score }) });
    expect(item(result, 'scoring')).toMatchObject({
      status: 'warn',
      says: 'It cannot score given tokens: It has no memory left for that.',
    });
    expect(result.capabilities?.canScore).toBe(false);
  });
});

describe('the check tries constraints', () => {
  it('and fails when they are ignored with status 200', async () => {
    const twin = await sglangTwin({ faults: { ignoreConstraints: true } });
    const result = await check(twin.url);
    expect(item(result, 'constraints')).toMatchObject({
      status: 'fail',
      says: expect.stringMatching(
        /^It ignores constraints \(json_schema, regex, grammar, choice\): where only an object was allowed it wrote "/,
      ),
    });
    expect(result.ok).toBe(false);
  });

  it('and offers only those that are not refused', async () => {
    const twin = await tensorrtTwin({ guided: false });
    const result = await check(twin.url, { tokenizerFolder: join(folder, 'tiny') });
    expect(item(result, 'constraints')).toMatchObject({
      status: 'warn',
      says: expect.stringContaining('cannot be used with it'),
    });
    expect(result.capabilities?.constraints).toEqual([]);
    const some = await check((await sglangTwin()).url, {
      protocols: withSglang({
        generate: async (http, facts, call) => {
          if (call.options.constraint?.kind === 'grammar') throw new Invalid('No grammars here.');
          return sglang.generate(http, facts, call);
        },
      }),
    });
    expect(item(some, 'constraints').says).toBe(
      'It keeps to json_schema, regex, choice. It refuses constraints of the kind grammar: No grammars here.',
    );
    expect(some.capabilities?.constraints).toEqual(['json_schema', 'regex', 'choice']);
  });
});

describe('the check goes on', () => {
  it('when an answer is of a shape that nobody thought of', async () => {
    const twin = await sglangTwin();
    let asked = 0;
    const weights = () => {
      // Asked first whether it stands paused.
      if (++asked === 1) return null;
      throw new TypeError('x is not a function');
    };
    const result = await check(twin.url, { protocols: withSglang({ weights }) });
    expect(item(result, 'weight_updates')).toMatchObject({
      status: 'fail',
      says: 'Its answer could not be read: x is not a function',
    });
    expect(item(result, 'metrics').status).toBe('pass');
  });

  it('without metrics, and says what is lost', async () => {
    const twin = await tensorrtTwin({ metrics: false });
    const result = await check(twin.url, { tokenizerFolder: join(folder, 'tiny') });
    expect(item(result, 'metrics')).toMatchObject({
      status: 'warn',
      says: expect.stringContaining('only those counted here'),
    });
  });
});
