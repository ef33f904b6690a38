/** Weight updates on vLLM, on replies that a vLLM 0.32.0 gave on 29 November 2026. */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Conflict, Invalid, Unavailable } from '../../core/errors';
import type { Json } from '../../core/vocabulary';
import type { UnfinishedUpdate } from '../backend';
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
  loraEnabled: false,
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
  const ALL: VllmRoute[] = ['pause', 'reload', 'flush', 'lora', 'weight-label'];
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
    // What could not be emptied afterwards is not offered.
    expect(routesOf(factsWith('pause', 'reload', 'lora')).sources).toEqual(['lora']);
  });

  it('pauses in the way that is asked for', async () => {
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

  it('asks for a load once, also where the connection is closed before an answer', async () => {
    const weights = routesOf({ ...factsWith(...ALL), checkpoint: null });
    server.handlers['GET /weight_info'] = { body: { weight_version: 'default' } };
    server.handlers['GET /v1/models'] = { body: MODELS };
    server.handlers['POST /collective_rpc'] = 'closed';
    server.handlers['POST /v1/load_lora_adapter'] = 'closed';
    for (const kind of ['checkpoint', 'lora'] as const)
      expect(await errorOf(weights.load(http, { kind, path: '/new' }, 'v2'))).toBeInstanceOf(Unavailable);
    expect(server.asked.map(({ route }) => route).filter((route) => route.startsWith('POST'))).toEqual([
      'POST /collective_rpc',
      'POST /v1/load_lora_adapter',
    ]);
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
        ...factsWith('pause', 'reload', 'flush', 'weight-label'),
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
    const unloaded = () => server.asked.flatMap(({ route, body }) => (route.includes('unload') ? [body] : []));
    // As long as its label says v1, that adapter must be there.
    expect(unloaded()).toEqual([]);
    expect(await weights.version(http)).toBe('v2');
    server.handlers['GET /v1/models'] = {
      body: { data: [card('tiny'), ...['studio:v1', 'theirs', 'studio:v2'].map(adapter)] },
    };
    server.handlers['POST /update_weight_version'] = { body: { success: true, new_version: 'v2' } };
    await weights.stamp(http, 'v2');
    expect(unloaded()).toEqual([{ lora_name: 'studio:v1' }]);
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

  it('gives an adapter a name that none ever had where the cache cannot be emptied', async () => {
    const facts = factsWith('lora');
    const weights = routesOf(facts);
    server.handlers['POST /v1/load_lora_adapter'] = { body: 'Success: LoRA adapter added successfully.' };
    const names: string[] = [];
    for (let round = 0; round < 2; round++) {
      server.handlers['GET /v1/models'] = { body: MODELS };
      await weights.load(http, { kind: 'lora', path: '/adapter' }, 'v2');
      await weights.flush(http);
      expect(await weights.version(http)).toBe('v2');
      names.push(facts.servedModel);
    }
    expect(new Set(names).size).toBe(2);
    expect(server.asked.map(({ route }) => route)).not.toContain('POST /reset_prefix_cache?reset_external=true');
    // Under whatever name it has that version.
    server.handlers['GET /v1/models'] = { body: { data: [card('tiny'), card(names[0] ?? '', { parent: 'tiny' })] } };
    const again = await errorOf(weights.load(http, { kind: 'lora', path: '/other' }, 'v2'));
    expect(again).toBeInstanceOf(Conflict);
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

  it('loads the folder of the label again after a checkpoint that was cut off', async () => {
    const cut = (version: string, before: UnfinishedUpdate['before'] = []): UnfinishedUpdate => ({
      update: { source: { kind: 'checkpoint', path: `/${version}` }, version },
      before,
    });
    const given = (version: string, kind: 'checkpoint' | 'lora') => ({
      version,
      source: { kind, path: `/${version}` },
    });
    server.handlers['GET /v1/models'] = { body: { data: [card('tiny'), card('studio:v0', { parent: 'tiny' })] } };
    server.handlers['POST /v1/unload_lora_adapter'] = { body: 'Success' };
    server.handlers['POST /collective_rpc'] = { body: { results: [null] } };
    const restored = async (label: string, unfinished: UnfinishedUpdate) => {
      server.asked = [];
      server.handlers['GET /weight_info'] = { body: { weight_version: label } };
      const checkpoint = label === 'default' ? { path: '/served', version: label } : null;
      const facts: VllmFacts = { ...factsWith(...ALL), checkpoint };
      await routesOf(facts).restore?.(http, unfinished);
      expect(server.asked.at(-1)?.body).toEqual({ lora_name: 'studio:v0' });
      return { reloaded: reloaded(), checkpoint: facts.checkpoint?.path };
    };
    // What it was started with, what it was given before, and what it has already.
    expect(await restored('default', cut('v1'))).toEqual({ reloaded: ['/served'], checkpoint: '/served' });
    const before = [given('v1', 'checkpoint'), given('v2', 'checkpoint')];
    expect(await restored('v2', cut('v3', before))).toEqual({ reloaded: ['/v2'], checkpoint: '/v2' });
    expect(await restored('v3', cut('v3', before))).toEqual({ reloaded: [], checkpoint: '/v3' });
    // An adapter's label says nothing of the weights below it, and a trainer's has no folder.
    for (const [label, rows] of [
      ['v1', [given('v1', 'lora')]],
      ['step 7', before],
    ] as const) {
      const lost = await errorOf(restored(label, cut('v3', rows)));
      expect(lost).toBeInstanceOf(Unavailable);
      expect(lost.message).toContain(`is labelled ${label}, but may have the weights v3`);
    }
  });

  it('keeps the adapter that the label names after one that was cut off', async () => {
    const facts: VllmFacts = { ...factsWith(...ALL), servedModel: 'studio:v1' };
    const models = ['studio:v1', 'studio:v2'].map((id) => card(id, { parent: 'tiny' }));
    server.handlers['GET /v1/models'] = { body: { data: [card('tiny'), ...models] } };
    server.handlers['POST /v1/unload_lora_adapter'] = { body: 'Success' };
    await routesOf(facts).restore?.(http, {
      update: { source: { kind: 'lora', path: '/v2' }, version: 'v2' },
      before: [],
    });
    expect(server.asked.at(-1)?.body).toEqual({ lora_name: 'studio:v2' });
    expect(reloaded()).toEqual([]);
  });

  it('knows from the server whether it stands paused', async () => {
    const weights = routesOf(factsWith(...ALL));
    for (const is_paused of [true, false]) {
      server.handlers['GET /is_paused'] = { body: { is_paused } };
      expect(await weights.paused?.(http)).toBe(is_paused);
    }
    // An older one does not say.
    delete server.handlers['GET /is_paused'];
    expect(await weights.paused?.(http)).toBe(false);
    expect(routesOf(factsWith('lora')).paused).toBeUndefined();
  });

  it('stamps and reads the label, where the server keeps one', async () => {
    server.handlers['GET /weight_info'] = { body: { weight_version: 'v8' } };
    server.handlers['POST /update_weight_version'] = { body: { success: true, new_version: 'v9' } };
    const weights = routesOf(factsWith('pause', 'reload', 'flush', 'weight-label'));
    expect(weights.keepsLabel).toBe(true);
    expect(await weights.version(http)).toBe('v8');
    await weights.stamp(http, 'v9');
    expect(server.asked.at(-1)).toEqual({ route: 'POST /update_weight_version', body: { new_version: 'v9' } });
    const without = routesOf(factsWith('pause', 'reload', 'flush'));
    expect(without.keepsLabel).toBe(false);
    server.asked = [];
    await without.stamp(http, 'v9');
    expect(server.asked).toEqual([]);
  });
});
