/** New weights on twins while they serve: which weights made which token, and what is never believed. */
import { createHmac } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Invalid, Unavailable } from '../../core/errors';
import type { GenerationResult, SamplingOptions, WeightUpdate } from '../backend';
import { PLAIN } from '../testing/conformance';
import { startSglangTwin } from '../testing/twin/sglang';
import { startTensorrtTwin } from '../testing/twin/tensorrt';
import type { Twin } from '../testing/twin/twin';
import { TwinFixture } from '../testing/twin/twin-fixture';
import { createHttpClient } from './http-client';
import type { StoredLabels } from './remembered-label';
import type { RemoteBackend } from './remote-backend';
import { sglang } from './sglang';
import { tensorrtLlm, tensorrtLlmWithControl } from './tensorrt-llm';

const fixture = new TwinFixture();
beforeAll(() => fixture.open());
afterAll(() => fixture.close());

const post = async (url: string, body: unknown, headers: Record<string, string> = {}) => {
  const request = { method: 'POST', headers: { 'content-type': 'application/json', ...headers } };
  const response = await fetch(url, { ...request, body: JSON.stringify(body) });
  await response.text();
  return response.status;
};
const tick = () => new Promise((settle) => setTimeout(settle, 5));

async function generate(
  backend: RemoteBackend,
  changes: Partial<SamplingOptions> = {},
): Promise<GenerationResult & { promptIds: Int32Array }> {
  const { ids: promptIds } = await backend.tokenize('Thought: the sea is in there', { special: true });
  const options = { ...PLAIN, maxTokens: 40, ...changes };
  const [settled] = await backend.generate([{ promptIds, options, affinityKey: 'k', rawLogprobs: true }]);
  if (settled?.status !== 'fulfilled') throw settled?.reason;
  return { ...settled.value, promptIds };
}

/**
 * The tokens from `start` to `end` have the numbers of these weights, and not those of the others. A cache of 16 bits and
 * batches of other sizes move them in the third digit; other weights move them by far more.
 */
async function expectMadeBy(
  path: string,
  result: GenerationResult & { promptIds: Int32Array },
  start: number,
  end: number,
): Promise<void> {
  const farthest = async (weights: string) => {
    const promptIds = Int32Array.from([...result.promptIds, ...result.ids.subarray(0, start)]);
    const teacher = await fixture.teacher(weights);
    const [scores] = await teacher.getLogprobs([{ promptIds, completionIds: result.ids.slice(start, end) }]);
    return Math.max(
      ...(scores?.logprobs ?? []).map((value, k) => Math.abs(value - (result.logprobs[start + k] ?? 99))),
    );
  };
  expect(await farthest(path)).toBeLessThan(1e-3);
  expect(await farthest(path === fixture.tiny ? fixture.next : fixture.tiny)).toBeGreaterThan(0.1);
}

describe('on SGLang', () => {
  let twin: Twin;
  let backend: RemoteBackend;
  const start = async (options: Partial<Parameters<typeof startSglangTwin>[0]> = {}) => {
    twin = await startSglangTwin({ modelPath: fixture.tiny, ...options });
    backend = await fixture.backendOn(twin, { protocol: sglang });
  };
  const stop = () => twin.close();
  const next = (version: string, changes: Partial<WeightUpdate> = {}): WeightUpdate => ({
    source: { kind: 'checkpoint', path: fixture.next },
    version,
    ...changes,
  });
  /** Settles when so many tokens of a generation that is under way have been sampled. */
  const underWay = async () => {
    while (twin.counters().running === 0) await tick();
    await new Promise((settle) => setTimeout(settle, 120));
  };

  it.each([1, 0.6])(
    'interrupts: every token is of the weights that its span names (temperature %d)',
    async (temperature) => {
      await start({ faults: { msPerToken: 15 } });
      const running = generate(backend, { maxTokens: 60, temperature });
      await underWay();
      await backend.updateWeights(next('v2', { inFlight: 'interrupt' }));
      const result = await running;
      expect(result.logprobKind).toBe('raw');
      expect(result.weightVersions.map(({ version }) => version)).toEqual(['default', 'v2']);
      const [before, after] = result.weightVersions;
      if (!before || !after) return;
      expect(before).toMatchObject({ start: 0, end: after.start });
      expect(before.end).toBeGreaterThan(0);
      expect(after.end).toBe(result.ids.length);
      await expectMadeBy(fixture.tiny, result, before.start, before.end);
      await expectMadeBy(fixture.next, result, after.start, after.end);
      await stop();
    },
  );

  it('interrupts under a constraint: the text is begun anew with the new weights', async () => {
    await start({ faults: { msPerToken: 15 } });
    const constraint = { kind: 'grammar' as const, grammar: 'root ::= [a-z]{30} "."' };
    const running = generate(backend, { maxTokens: 60, constraint });
    await underWay();
    await backend.updateWeights(next('v2', { inFlight: 'interrupt' }));
    const result = await running;
    expect(result.weightVersions).toEqual([{ version: 'v2', start: 0, end: result.ids.length }]);
    expect(new TextDecoder().decode(result.bytes)).toMatch(/^[a-z]{30}\./);
    await stop();
  });

  it.each([1, 0.6])(
    'drains: what runs ends with the old weights, what waits begins with the new (temperature %d)',
    async (temperature) => {
      await start({ faults: { msPerToken: 10 } });
      const running = generate(backend, { maxTokens: 40, temperature });
      await underWay();
      const updating = backend.updateWeights(next('v2'));
      const waiting = generate(backend, { maxTokens: 5, temperature });
      const old = await running;
      await updating;
      expect([old.logprobKind, (await waiting).logprobKind]).toEqual(['raw', 'raw']);
      expect(old.weightVersions).toEqual([{ version: 'default', start: 0, end: old.ids.length }]);
      await expectMadeBy(fixture.tiny, old, 0, old.ids.length);
      const fresh = await waiting;
      expect(fresh.weightVersions).toEqual([{ version: 'v2', start: 0, end: fresh.ids.length }]);
      await expectMadeBy(fixture.next, fresh, 0, fresh.ids.length);
      await stop();
    },
  );

  for (const versionSpans of [false, true])
    it(`says that a generation is mixed when somebody else changes the weights under it (${versionSpans ? 'spans' : 'one label'})`, async () => {
      await start({ faults: { msPerToken: 15 }, versionSpans });
      const running = generate(backend, { maxTokens: 40 });
      await underWay();
      await post(`${twin.url}/pause_generation`, { mode: 'retract' });
      await post(`${twin.url}/update_weights_from_disk`, { model_path: fixture.next, weight_version: 'theirs' });
      await post(`${twin.url}/continue_generation`, {});
      const result = await running;
      const n = result.ids.length;
      const versions = result.weightVersions.map(({ version }) => version);
      expect(versions).toEqual(versionSpans ? ['default', 'theirs'] : ['default→theirs']);
      expect(result.weightVersions.at(-1)?.end).toBe(n);
      const seam = result.weightVersions[1]?.start;
      if (seam !== undefined) {
        await expectMadeBy(fixture.tiny, result, 0, seam);
        await expectMadeBy(fixture.next, result, seam, n);
      }
      await stop();
    });

  it('does not believe a flush: what is served from the old cache fails the update', async () => {
    await start();
    const old = await generate(backend, { temperature: 0 });
    twin.faults.staleCache = true;
    const update = backend.updateWeights(next('v2'));
    await expect(update).rejects.toBeInstanceOf(Unavailable);
    await expect(update).rejects.toThrow(`The backend twin (${twin.url}) did not take the weights v2`);
    await expect(update).rejects.toThrow('POST /flush_cache says that it is empty, but');
    // Nothing is generated by weights that nobody can name.
    expect(backend.trouble()).toContain('stays paused');
    twin.faults.staleCache = false;
    await backend.updateWeights(next('v3'));
    const fresh = await generate(backend, { temperature: 0 });
    expect(fresh.weightVersions[0]?.version).toBe('v3');
    expect(Array.from(fresh.ids)).not.toEqual(Array.from(old.ids));
    await expectMadeBy(fixture.next, fresh, 0, fresh.ids.length);
    await stop();
  });

  it('leaves what runs alone when it names the weights', async () => {
    await start({ faults: { msPerToken: 10 } });
    const running = post(`${twin.url}/generate`, { input_ids: [70, 71], sampling_params: { max_new_tokens: 40 } });
    await underWay();
    const http = createHttpClient({ backend: 'twin', url: twin.url });
    await sglang.weights(await sglang.describe(http, { model: null }))?.stamp(http, 'named');
    await http.close();
    expect(await running).toBe(200);
    expect(twin.counters().aborted).toBe(0);
    expect(await backend.weightVersion()).toBe('named');
    await stop();
  });

  it('pauses for a person and for a trainer', async () => {
    await start();
    await generate(backend);
    await backend.pause();
    const waiting = generate(backend, { maxTokens: 3 });
    expect(twin.engine.scheduler.paused).toBe('in_place');
    await backend.updateWeights({ source: { kind: 'external' }, version: 'trained' });
    expect(twin.engine.scheduler.paused).toBe('in_place');
    await backend.resume();
    expect((await waiting).weightVersions).toEqual([{ version: 'trained', start: 0, end: 3 }]);
    await stop();
  });
});

describe('on trtllm-serve', () => {
  const CONTROL = 'c0ntrol-key';
  const signed = (body: unknown) => ({
    'x-trtllm-rl-control-auth': `sha256=${createHmac('sha256', CONTROL).update(JSON.stringify(body)).digest('hex')}`,
  });
  const start = async (controlKey: string) => {
    const twin = await startTensorrtTwin({ modelPath: fixture.tiny, controlKey: CONTROL });
    const protocol = tensorrtLlmWithControl(controlKey);
    return { twin, backend: await fixture.backendOn(twin, { protocol, tokenizerFolder: fixture.tokenizer }) };
  };
  const external = (version: string): WeightUpdate => ({ source: { kind: 'external' }, version });

  it('empties the cache after a trainer and remembers the version', async () => {
    const { twin, backend } = await start(CONTROL);
    const old = await generate(backend, { temperature: 0 });
    expect(old.weightVersions[0]?.version).toBe('tiny');
    const body = { weights: { cuda0: fixture.next } };
    expect(await post(`${twin.url}/update_weights`, body)).toBe(401);
    expect(await post(`${twin.url}/update_weights`, body, signed(body))).toBe(200);
    await backend.updateWeights(external('v2'));
    const fresh = await generate(backend, { temperature: 0 });
    expect(fresh.weightVersions).toEqual([{ version: 'v2', start: 0, end: fresh.ids.length }]);
    await expectMadeBy(fixture.next, fresh, 0, fresh.ids.length);
    await twin.close();
  });

  it('names the weights of a server that keeps no label also when it is opened anew, until the server is started again', async () => {
    const kept = new Map<string, { fingerprint: string; version: string }>();
    const labels: StoredLabels = {
      labelOf: async (url, fingerprint) => {
        const label = kept.get(url);
        return label?.fingerprint === fingerprint ? label.version : null;
      },
      keepLabel: async (url, fingerprint, version) => void kept.set(url, { fingerprint, version }),
    };
    const options = {
      protocol: tensorrtLlmWithControl(CONTROL),
      tokenizerFolder: fixture.tokenizer,
      labels,
    };
    const twin = await startTensorrtTwin({ modelPath: fixture.tiny, controlKey: CONTROL });
    const before = await fixture.backendOn(twin, options);
    const cut = { update: external('v2'), before: [] };
    // It was given nothing yet: an update that was cut off was one of an earlier start of the server.
    await before.settle(cut);
    expect(await before.weightVersion()).toBe('tiny');
    await before.updateWeights(external('v1'));
    await before.close();

    const after = await fixture.backendOn(twin, options);
    expect((await generate(after)).weightVersions[0]?.version).toBe('v1');
    await expect(after.settle(cut)).rejects.toThrow('nobody can say whether those of v2 are in');
    expect(after.trouble()).toContain('It stays paused');
    await after.updateWeights(external('v3'));
    expect((await generate(after)).weightVersions[0]?.version).toBe('v3');

    const [label] = kept.values();
    await twin.close();
    const again = await startTensorrtTwin({ modelPath: fixture.tiny, controlKey: CONTROL });
    // As if it had come back at the same address.
    if (label) kept.set(again.url, label);
    expect(await (await fixture.backendOn(again, options)).weightVersion()).toBe('tiny');
    await again.close();
  });

  it('fails the update when the old cache still answers, or the control key is another', async () => {
    const { twin, backend } = await start(CONTROL);
    await generate(backend);
    twin.faults.staleCache = true;
    const body = { weights: { cuda0: fixture.next } };
    await post(`${twin.url}/update_weights`, body, signed(body));
    await expect(backend.updateWeights(external('v2'))).rejects.toThrow('took');
    // Nor is it believed by one that has asked the server for nothing yet.
    const fresh = await fixture.backendOn(twin, {
      protocol: tensorrtLlmWithControl(CONTROL),
      tokenizerFolder: fixture.tokenizer,
    });
    await expect(fresh.updateWeights(external('v3'))).rejects.toThrow('tokens of a prompt from it');
    await twin.close();
    const wrong = await start('other-key');
    const error = await wrong.backend.updateWeights(external('v2')).catch((reason) => reason);
    expect(error.message).toContain('status 401');
    expect(error.message).not.toContain('other-key');
    await wrong.twin.close();
  });

  it('labels what is sampled after an update of which nobody knows whether it is in with both, also when it is opened anew', async () => {
    const kept: string[] = [];
    const labels: StoredLabels = {
      labelOf: async () => kept.at(-1) ?? null,
      keepLabel: async (_url, _fingerprint, version) => void kept.push(version),
    };
    const options = { protocol: tensorrtLlmWithControl(CONTROL), tokenizerFolder: fixture.tokenizer, labels };
    const twin = await startTensorrtTwin({ modelPath: fixture.tiny, controlKey: CONTROL });
    const backend = await fixture.backendOn(twin, options);
    const sampledBy = async (by: RemoteBackend) => (await generate(by)).weightVersions.map(({ version }) => version);
    twin.faults.staleCache = true;
    await expect(backend.updateWeights(external('v2'))).rejects.toThrow('It stays paused');
    await backend.resume();
    expect(await sampledBy(backend)).toEqual(['tiny→v2']);
    await backend.close();

    const after = await fixture.backendOn(twin, options);
    expect(await sampledBy(after)).toEqual(['tiny→v2']);
    await expect(after.updateWeights(external('v3'))).rejects.toThrow('It stays paused');
    await after.resume();
    expect(await sampledBy(after)).toEqual(['tiny→…→v3']);
    twin.faults.staleCache = false;
    await after.updateWeights(external('v4'));
    expect(await sampledBy(after)).toEqual(['v4']);
    // A studio that is cut off in between finds both.
    expect(kept).toEqual(['tiny→v2', 'tiny→…→v3', 'tiny→…→v4', 'v4']);
    await twin.close();
  });

  it('gives a server that was started again under the update the label of its first weights', async () => {
    const twin = await startTensorrtTwin({ modelPath: fixture.tiny, controlKey: CONTROL });
    const labels: StoredLabels = {
      labelOf: async () => null,
      keepLabel: async (_url, _fingerprint, version) => (version === 'v2' ? twin.restart() : undefined),
    };
    const options = { protocol: tensorrtLlmWithControl(CONTROL), tokenizerFolder: fixture.tokenizer, labels };
    const backend = await fixture.backendOn(twin, options);
    await backend.updateWeights(external('v2'));
    expect((await generate(backend)).weightVersions[0]?.version).toBe('tiny');
    // One that nobody had noticed until the update.
    await twin.kill();
    await twin.restart();
    await backend.updateWeights(external('v3'));
    expect((await generate(backend)).weightVersions[0]?.version).toBe('v3');
    await twin.close();
  });

  it('offers no update without a control key', async () => {
    const twin = await startTensorrtTwin({ modelPath: fixture.tiny });
    const backend = await fixture.backendOn(twin, { protocol: tensorrtLlm, tokenizerFolder: fixture.tokenizer });
    expect((await backend.capabilities()).weightSources).toEqual([]);
    await expect(backend.updateWeights(external('v2'))).rejects.toBeInstanceOf(Invalid);
    await twin.close();
  });
});
