/** The whole way from stored settings to tokens: replicas of twins with a real tiny model behind one backend. */
import { createHmac } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { systemAmbient } from '../core/ambient';
import { remoteSettingsSchema } from '../core/inference-settings';
import { silentLogger } from '../observability/logger';
import { openRemote } from './open-remote';
import { checkServer } from './remote/check';
import { protocolsWith } from './remote/protocols';
import type { ReplicaRouter } from './router/router';
import { writeTinyCheckpoint } from './testing/checkpoint';
import { describeBackend, PLAIN } from './testing/conformance';
import { writeTinyModel } from './testing/tiny-model';
import { startSglangTwin } from './testing/twin/sglang';
import { startTensorrtTwin } from './testing/twin/tensorrt';
import type { Twin } from './testing/twin/twin';

const twins: Twin[] = [];
let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'replicas-'));
  await writeTinyModel(join(folder, 'tiny.gguf'));
  await writeTinyModel(join(folder, 'next.gguf'), { seed: 2 });
  await writeTinyCheckpoint(join(folder, 'checkpoint'));
});
afterAll(async () => {
  await Promise.all(twins.map((twin) => twin.close()));
  await rm(folder, { recursive: true, force: true });
});

async function open(count: number, key: string | null = null): Promise<[ReplicaRouter, Twin[]]> {
  const started = await Promise.all(
    Array.from({ length: count }, () => startSglangTwin({ modelPath: join(folder, 'tiny.gguf'), key })),
  );
  twins.push(...started);
  const settings = remoteSettingsSchema.parse({ replicas: started.map(({ url }) => ({ url })), maxInFlight: 8 });
  const keyFor = (url: string) => (url === started[0]?.url ? key : null);
  const options = { name: 'pair', kind: 'sglang' as const, settings, keyFor };
  return [openRemote({ ...options, logger: silentLogger, ambient: systemAmbient() }), started];
}

describeBackend('two replicas behind one backend', async () => (await open(2))[0], {
  lacks: ['seed'],
  weights: {
    get next() {
      return { kind: 'checkpoint' as const, path: join(folder, 'next.gguf') };
    },
    get broken() {
      return { kind: 'checkpoint' as const, path: join(folder, 'not here.gguf') };
    },
  },
});

describe('a backend on servers', () => {
  it('gives the key of an address to the server there and to no other', async () => {
    const [backend, [right, wrong]] = await open(2, 'sk-secret');
    try {
      await backend.health();
      const [first, second] = backend.replicas();
      expect(first?.state).toBe('healthy');
      expect(second).toMatchObject({ state: 'down', reason: expect.stringContaining('does not accept the key') });
      expect(right?.log.every(({ headers }) => headers.authorization === 'Bearer sk-secret')).toBe(true);
      expect(wrong?.log.some(({ headers }) => headers.authorization)).toBe(false);
      expect(JSON.stringify(backend.replicas())).not.toContain('sk-secret');
    } finally {
      await backend.close();
    }
  });

  it('says in one sentence each that no server took new weights, why, and what serves', async () => {
    const [backend, twins] = await open(2);
    try {
      const before = await backend.weightVersion();
      const path = join(folder, 'nope.gguf');
      const update = backend.updateWeights({ source: { kind: 'checkpoint', path }, version: 'step-3' });
      const error = (await update.then(
        () => null,
        (thrown) => thrown,
      )) as Error;
      expect(error.message).toContain('No server of the backend pair took the weights step-3. ');
      expect(error.message).toContain(`${twins[0]?.url}: it could not load ${path}: Failed to update weights: `);
      expect(error.message.endsWith(` The weights ${before} go on serving.`)).toBe(true);
      expect(error.message.match(/go on serving|still/g)).toHaveLength(1);
      expect(error.message).not.toMatch(/\.\.|did not take/);
    } finally {
      await backend.close();
    }
  });

  it('reads the figures of the servers and comes back after one was started again', async () => {
    const [backend, [twin]] = await open(1);
    try {
      const generate = (key: string) =>
        backend.generate([{ promptIds: Int32Array.of(70, 71), options: { ...PLAIN, maxTokens: 4 }, affinityKey: key }]);
      expect((await generate('a'))[0]?.status).toBe('fulfilled');
      while (backend.replicas()[0]?.figures?.running !== 0) await new Promise((next) => setTimeout(next, 5));
      await twin?.kill();
      const waiting = generate('b');
      while (backend.trouble() === null) await new Promise((next) => setTimeout(next, 5));
      expect(backend.trouble()).toContain(twin?.url);
      await twin?.restart();
      expect((await waiting)[0]?.status).toBe('fulfilled');
    } finally {
      await backend.close();
    }
  });
});

describe('a backend on trtllm-serve', () => {
  const CONTROL = 'c0ntrol-key';
  const external = (version: string) => ({ source: { kind: 'external' as const }, version });
  let twin: Twin;
  beforeAll(async () => {
    twin = await startTensorrtTwin({ modelPath: join(folder, 'tiny.gguf'), controlKey: CONTROL });
    twins.push(twin);
  });

  const logger = silentLogger;
  const ambient = systemAmbient();
  const tokenizer = () => join(folder, 'checkpoint');

  async function withBackend(controlKey: string | null, use: (backend: ReplicaRouter) => Promise<void>) {
    const settings = remoteSettingsSchema.parse({ replicas: [{ url: twin.url }], tokenizer: tokenizer() });
    const kind = 'tensorrt-llm' as const;
    const backend = openRemote({ name: 'trt', kind, settings, keyFor: () => 'sk-1', controlKey, logger, ambient });
    try {
      await use(backend);
    } finally {
      await backend.close();
    }
  }
  const check = (controlKey: string | null) =>
    checkServer({
      url: twin.url,
      key: 'sk-1',
      controlKey,
      kind: null,
      model: null,
      tokenizerFolder: tokenizer(),
      contextLength: null,
      backendName: null,
      logger,
      ambient,
      protocols: protocolsWith(controlKey),
    });
  const aboutWeights = async (controlKey: string | null) => {
    const result = await check(controlKey);
    const item = result.items.find(({ id }) => id === 'weight_updates');
    return { result, status: item?.status, says: item?.says };
  };

  it('takes new weights with its control key, which is sent to nobody', async () => {
    const { result, status } = await aboutWeights(CONTROL);
    expect({ status, ok: result.ok }).toEqual({ status: 'pass', ok: true });
    // It is no backend's yet.
    expect(result.items[0]?.says).toBe(`The server at ${twin.url} answers.`);
    await withBackend(CONTROL, async (backend) => {
      const label = async () => {
        const requests = [{ promptIds: Int32Array.of(70), options: { ...PLAIN, maxTokens: 2 }, affinityKey: 'a' }];
        const [settled] = await backend.generate(requests);
        return settled?.status === 'fulfilled' ? settled.value.weightVersions[0]?.version : settled?.reason;
      };
      expect((await backend.capabilities()).weightSources).toEqual(['external']);
      expect(await label()).toBe('tiny');
      await backend.updateWeights(external('v2'));
      expect(await label()).toBe('v2');
    });
    const signed = twin.log.filter(({ headers }) => headers['x-trtllm-rl-control-auth']);
    const signature = createHmac('sha256', CONTROL).update('{"tags":["kv_cache"]}').digest('hex');
    expect(signed.map(({ path, headers }) => [path, headers['x-trtllm-rl-control-auth']]).slice(-2)).toEqual([
      ['/release_memory', `sha256=${signature}`],
      ['/resume_memory', `sha256=${signature}`],
    ]);
    expect(twin.log.some(({ headers }) => headers.authorization === 'Bearer sk-1')).toBe(true);
    expect(JSON.stringify(twin.log)).not.toContain(CONTROL);
  });

  it('takes none without it, and says what is missing', async () => {
    expect(await aboutWeights(null)).toMatchObject({
      status: 'absent',
      says: expect.stringContaining('want a control key, and none was given'),
    });
    await withBackend(null, async (backend) => {
      expect((await backend.capabilities()).weightSources).toEqual([]);
      await expect(backend.updateWeights(external('v3'))).rejects.toThrow('it takes no new weights at all');
    });
  });

  it('tells a wrong one in a sentence without it, when it is checked and when it is used', async () => {
    const sentence = /does not accept the control key: it answered POST \S+ with status 401\./;
    const { result, status, says } = await aboutWeights('wr0ng-key');
    expect([status, result.ok]).toEqual(['fail', false]);
    expect(says).toMatch(sentence);
    expect(JSON.stringify(result)).not.toContain('wr0ng-key');
    await withBackend('wr0ng-key', async (backend) => {
      await backend.health();
      const error = await backend.updateWeights(external('v3')).catch((reason) => reason);
      expect(error.message).toMatch(sentence);
      expect(`${error.message} ${JSON.stringify(error.details)} ${backend.trouble()}`).not.toContain('wr0ng-key');
    });
    expect(JSON.stringify(twin.log)).not.toContain('wr0ng-key');
  });
});
