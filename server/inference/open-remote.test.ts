/** The whole way from stored settings to tokens: replicas of SGLang's twin with a real tiny model behind one backend. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { systemAmbient } from '../core/ambient';
import { remoteSettingsSchema } from '../core/inference-settings';
import { silentLogger } from '../observability/logger';
import { openRemote } from './open-remote';
import type { ReplicaRouter } from './router/router';
import { describeBackend, PLAIN } from './testing/conformance';
import { writeTinyModel } from './testing/tiny-model';
import { startSglangTwin } from './testing/twin/sglang';
import type { Twin } from './testing/twin/twin';

const twins: Twin[] = [];
let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'replicas-'));
  await writeTinyModel(join(folder, 'tiny.gguf'));
  await writeTinyModel(join(folder, 'next.gguf'), { seed: 2 });
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
