/** Weight updates on vLLM, on replies that a vLLM 0.32.0 gave on 29 November 2026. */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Conflict, Invalid, Unavailable } from '../../core/errors';
import type { Json } from '../../core/vocabulary';
import { encodeSafetensors } from '../gguf/safetensors';
import { type Answer, type CannedServer, errorOf, startCannedServer } from '../testing/canned-server';
import { createHttpClient, type HttpClient } from './http-client';
import { isObject } from './json-body';
import { vllm } from './vllm';
import type { VllmFacts, VllmRoute } from './vllm-facts';

const card = (id: string, changes: object = {}) => ({ id, owned_by: 'vllm', parent: null, ...changes });
const MODELS = { object: 'list', data: [card('tiny')] };
const factsWith = (...routes: VllmRoute[]): VllmFacts => ({
  modelName: 'tiny',
  contextLength: 1024,
  version: '0.32.0',
  fingerprint: '',
  logprobs: 'raw',
  routes: new Set(routes),
  servedModel: 'tiny',
  checkpoint: null,
  device: null,
});

let http: HttpClient;
let server: CannedServer;

beforeEach(async () => {
  server = await startCannedServer();
  http = createHttpClient({ backend: 'lab', url: server.url });
});
afterEach(async () => {
  await http.close();
  await server.close();
});

describe('weights of vLLM', () => {
  const ALL: VllmRoute[] = ['pause', 'reload', 'lora', 'weight-label'];
  const workerFailed = (what: string): Answer => ({
    status: 500,
    body: {
      error: {
        message: `Call to collective_rpc method failed: Worker failed with error '${what}', please check the stack trace above for the root cause`,
        type: 'InternalServerError',
        param: null,
        code: 500,
      },
    },
  });
  const reloaded = () =>
    server.asked.flatMap(({ route, body }) =>
      route === 'POST /collective_rpc' && isObject(body) && isObject(body.kwargs) ? [body.kwargs.weights_path] : [],
    );
  const routesOf = (facts: VllmFacts) => {
    const weights = vllm.weights(facts);
    if (!weights) throw new Error('No weight routes.');
    return weights;
  };

  it('offers what the routes allow', () => {
    expect(vllm.weights(factsWith('tokenize'))).toBeNull();
    expect(routesOf(factsWith('lora'))).toMatchObject({ sources: ['lora'], canPause: false });
    expect(routesOf(factsWith(...ALL))).toMatchObject({ sources: ['checkpoint', 'lora', 'external'], canPause: true });
  });

  it('pauses in the way that is server.asked for', async () => {
    const weights = routesOf(factsWith(...ALL));
    for (const mode of ['wait', 'abort'])
      server.handlers[`POST /pause?mode=${mode}&clear_cache=true`] = { body: { status: 'paused' } };
    server.handlers['POST /resume'] = { body: { status: 'resumed' } };
    await weights.pause(http, 'drain');
    await weights.pause(http, 'interrupt');
    await weights.resume(http);
    expect(server.asked.map(({ route }) => route.split('&')[0])).toEqual([
      'POST /pause?mode=wait',
      'POST /pause?mode=abort',
      'POST /resume',
    ]);
  });

  it('loads a checkpoint, and loads the one before again when that fails', async () => {
    const facts: VllmFacts = { ...factsWith(...ALL), checkpoint: { path: '/served', version: 'default' } };
    const weights = routesOf(facts);
    server.handlers['GET /weight_info'] = { body: { weight_version: 'default' } };
    server.handlers['GET /v1/models'] = { body: MODELS };
    server.handlers['POST /collective_rpc'] = { body: { results: [null] } };
    await weights.load(http, { kind: 'checkpoint', path: '/new' }, 'v2');
    expect(facts.checkpoint).toEqual({ path: '/new', version: 'v2' });
    server.handlers['GET /weight_info'] = { body: { weight_version: 'v2' } };
    server.handlers['POST /collective_rpc'] = (body) =>
      JSON.stringify(body).includes('/gone') ? workerFailed('No such file') : { body: { results: [null] } };
    const failure = await errorOf(weights.load(http, { kind: 'checkpoint', path: '/gone' }, 'v3'));
    expect(failure).toBeInstanceOf(Unavailable);
    expect(failure.message).toContain('No such file');
    expect(failure).not.toHaveProperty('details.weightsUnknown');
    expect(reloaded()).toEqual(['/new', '/gone', '/new']);
    expect(facts.checkpoint).toEqual({ path: '/new', version: 'v2' });
  });

  it('says that the weights are lost when the one before cannot be loaded again, or is not known', async () => {
    const facts: VllmFacts = { ...factsWith(...ALL), checkpoint: { path: '/served', version: 'default' } };
    server.handlers['GET /weight_info'] = { body: { weight_version: 'default' } };
    server.handlers['POST /collective_rpc'] = workerFailed('start (0) + length (256) exceeds dimension size (9).');
    const lost = await errorOf(routesOf(facts).load(http, { kind: 'checkpoint', path: '/other-shape' }, 'v2'));
    expect(lost).toMatchObject({ details: { weightsUnknown: true } });
    expect(lost.message).toMatch(/lost the weights.*start the server again.*exceeds dimension/);
    // A trainer moved tensors and labelled them itself: no folder holds what served.
    server.handlers['GET /weight_info'] = { body: { weight_version: 'step-7' } };
    const unknown = await errorOf(routesOf(facts).load(http, { kind: 'checkpoint', path: '/x' }, 'v2'));
    expect(unknown.message).toContain('not known here');
    expect(reloaded()).toEqual(['/other-shape', '/served', '/x']);
  });

  it('looks at a folder before the server does, where it can', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'vllm-checkpoint-'));
    const write = (name: string, bytes: Uint8Array) => writeFile(join(folder, name, 'model.safetensors'), bytes);
    try {
      for (const name of ['served', 'same', 'shape', 'missing', 'cut', 'empty', 'tied'])
        await mkdir(join(folder, name), { recursive: true });
      const tensor = (name: string, ...shape: number[]) => ({
        name,
        shape,
        data: new Float32Array(shape.reduce((a, b) => a * b)),
      });
      const whole = encodeSafetensors([tensor('a', 2, 3), tensor('b', 4)]);
      await write('served', whole);
      await write('same', encodeSafetensors([tensor('b', 4), tensor('a', 2, 3), tensor('lm_head.weight', 1)]));
      await write('shape', encodeSafetensors([tensor('a', 3, 2), tensor('b', 4)]));
      await write('missing', encodeSafetensors([tensor('a', 2, 3)]));
      await write('cut', whole.subarray(0, whole.length - 5));
      const facts: VllmFacts = {
        ...factsWith('pause', 'reload', 'weight-label'),
        checkpoint: { path: join(folder, 'served'), version: 'default' },
      };
      server.handlers['GET /weight_info'] = { body: { weight_version: 'default' } };
      server.handlers['POST /collective_rpc'] = { body: { results: [null] } };
      const load = (name: string) =>
        routesOf(facts).load(http, { kind: 'checkpoint', path: join(folder, name) }, 'default');
      for (const [name, says] of [
        ['shape', 'a of shape 3×2 where 2×3 serves'],
        ['missing', 'lacks b'],
        ['cut', 'damaged'],
        ['empty', 'no weights'],
      ] as const) {
        const refused = await errorOf(load(name));
        expect(refused).toBeInstanceOf(Invalid);
        expect(refused.message).toContain(says);
      }
      expect(reloaded()).toEqual([]);
      facts.device = 'cpu';
      await write('tied', whole);
      expect((await errorOf(load('tied'))).message).toContain('no output layer of its own');
      expect(reloaded()).toEqual([]);
      await load('same');
      expect(reloaded()).toHaveLength(1);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  });

  it('loads an adapter under a name of its own, asks for it from then on and says its version of every token', async () => {
    const facts: VllmFacts = {
      ...factsWith('tokens-in-tokens-out', ...ALL),
      checkpoint: { path: '/b', version: 'v1' },
    };
    const weights = routesOf(facts);
    const adapter = (id: string) => card(id, { parent: 'tiny', root: '/a' });
    server.handlers['GET /v1/models'] = { body: { data: [card('tiny'), adapter('studio:v1'), adapter('theirs')] } };
    server.handlers['POST /v1/load_lora_adapter'] = { body: "Success: LoRA adapter 'studio:v2' added successfully." };
    server.handlers['POST /v1/unload_lora_adapter'] = {
      body: "Success: LoRA adapter 'studio:v1' removed successfully.",
    };
    await weights.load(http, { kind: 'lora', path: '/adapter' }, 'v2');
    const sent = Object.fromEntries(server.asked.map(({ route, body }) => [route, body]));
    expect(sent['POST /v1/load_lora_adapter']).toEqual({ lora_name: 'studio:v2', lora_path: '/adapter' });
    expect(server.asked.filter(({ route }) => route.includes('unload')).map(({ body }) => body)).toEqual([
      { lora_name: 'studio:v1' },
    ]);
    expect(await weights.version(http)).toBe('v2');
    expect(facts.checkpoint).toEqual({ path: '/b', version: 'v2' });
    server.handlers['POST /inference/v1/generate'] = {
      body: {
        model: 'studio:v2',
        usage: { prompt_tokens: 1 },
        choices: [
          {
            finish_reason: 'length',
            stop_reason: null,
            token_ids: [153],
            // Another update may have stamped its label while this one ran.
            weight_versions: [{ version: 'v1', start: 0, end: 1 }],
            logprobs: { content: [{ token_id: 153, logprob: -2.1 }] },
          },
        ],
      },
    };
    const options = { maxTokens: 1, temperature: 1, topP: 1, topK: 0, minP: 0, seed: 7, stop: [] };
    const reply = await vllm.generate(http, facts, {
      promptIds: Int32Array.of(40),
      options,
      requestId: 'r1',
      affinityKey: 'one',
    });
    expect(reply.weightVersions).toBe('v2');
    expect(server.asked.at(-1)?.body).toMatchObject({ model: 'studio:v2' });
    server.handlers['GET /v1/models'] = { body: { data: [card('tiny'), adapter('studio:v2')] } };
    expect(await errorOf(weights.load(http, { kind: 'lora', path: '/other' }, 'v2'))).toBeInstanceOf(Conflict);
  });

  it('keeps the adapter before when a new one cannot be loaded', async () => {
    const facts: VllmFacts = { ...factsWith(...ALL), servedModel: 'studio:v1' };
    server.handlers['GET /v1/models'] = { body: MODELS };
    server.handlers['POST /v1/load_lora_adapter'] = {
      status: 404,
      body: {
        error: {
          message: 'Loading lora bad failed: No adapter found for <path>',
          type: 'NotFoundError',
          param: null,
          code: 404,
        },
      },
    };
    const failure = await errorOf(routesOf(facts).load(http, { kind: 'lora', path: '/nowhere' }, 'v2'));
    expect(failure.message).toContain('No adapter found');
    expect(facts.servedModel).toBe('studio:v1');
  });

  it('takes only success for an emptied prefix cache', async () => {
    const weights = routesOf(factsWith(...ALL));
    const answers: Json[] = [{ success: false }, { success: true }];
    server.handlers['POST /reset_prefix_cache?reset_external=true'] = () => ({ body: answers.shift() ?? null });
    await weights.flush(http);
    expect(answers).toHaveLength(0);
    // An older server answers with an empty body.
    expect((await errorOf(weights.flush(http))).message).toContain('does not say');
    server.handlers['POST /reset_prefix_cache?reset_external=true'] = { body: { success: false } };
    const refused = await errorOf(weights.flush(http));
    expect(refused).toBeInstanceOf(Unavailable);
    expect(refused.message).toContain('old weights');
  });

  it('stamps and reads the label, where the server keeps one', async () => {
    server.handlers['GET /weight_info'] = { body: { weight_version: 'v8' } };
    server.handlers['POST /update_weight_version'] = { body: { success: true, new_version: 'v9' } };
    const weights = routesOf(factsWith(...ALL));
    expect(weights.keepsLabel).toBe(true);
    expect(await weights.version(http)).toBe('v8');
    await weights.stamp(http, 'v9');
    expect(server.asked.at(-1)).toEqual({ route: 'POST /update_weight_version', body: { new_version: 'v9' } });
    const without = routesOf(factsWith('pause', 'reload'));
    expect(without.keepsLabel).toBe(false);
    server.asked = [];
    await without.stamp(http, 'v9');
    expect(server.asked).toEqual([]);
  });
});
