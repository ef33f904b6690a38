import { describe, expect, it } from 'vitest';
import { Unavailable } from '../core/errors';
import type { GenerationRequest } from '../inference/backend';
import { InferenceSide } from './inference-side';
import { ScriptedBackend, type ScriptedOptions } from './testing/scripted-backend';

function open(options: Omit<ScriptedOptions, 'script'> & Partial<Pick<ScriptedOptions, 'script'>>) {
  const backend = new ScriptedBackend({ script: () => 'ok', ...options });
  const { maxInFlight, batchSize } = backend.capabilitiesNow();
  return { backend, side: new InferenceSide(backend, { maxInFlight, batchSize }, Date.now) };
}

const request = (key: string, signal?: AbortSignal): GenerationRequest => ({
  promptIds: Int32Array.of(65, key.length),
  affinityKey: key,
  ...(signal ? { signal } : {}),
  options: { maxTokens: 10, temperature: 1, topP: 1, topK: 0, minP: 0, seed: 1, stop: [] },
});

describe('the inference side', () => {
  it('merges what waits into calls of the size the backend wants', async () => {
    const { backend, side } = open({ maxInFlight: 8, batchSize: 4, script: () => ({ text: 'ok', delayMs: 5 }) });
    await Promise.all(Array.from({ length: 18 }, (_, i) => side.generate(request(`r${i}`))));
    expect(backend.calls.slice(0, 4)).toEqual([4, 4, 4, 4]);
    expect(backend.calls.reduce((a, b) => a + b)).toBe(18);
  });

  it('never has more in flight than the backend can use, nor fewer while there is work', async () => {
    const { backend, side } = open({ maxInFlight: 5, batchSize: 4, script: () => ({ text: 'ok', delayMs: 2 }) });
    await Promise.all(Array.from({ length: 40 }, (_, i) => side.generate(request(`r${i}`))));
    expect(backend.mostInFlight).toBe(5);
    expect(side.stats()).toEqual({ inFlight: 0, waiting: 0 });
  });

  it('gives each request its own result and its own failure', async () => {
    const { side } = open({
      batchSize: 4,
      script: ({ affinityKey }) =>
        affinityKey === 'bad' ? { text: '', error: new Unavailable('not now') } : `text of ${affinityKey}`,
    });
    const results = await Promise.allSettled(['a', 'bad', 'c'].map((key) => side.generate(request(key))));
    expect(results.map((r) => r.status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
    const texts = results.map((r) =>
      r.status === 'fulfilled' ? new TextDecoder().decode(r.value.result.bytes) : null,
    );
    expect(texts).toEqual(['text of a<|im_end|>', null, 'text of c<|im_end|>']);
  });

  it('does not bring an aborted request to the backend', async () => {
    const { backend, side } = open({ maxInFlight: 1, script: () => ({ text: 'ok', delayMs: 20 }) });
    const stop = new AbortController();
    const first = side.generate(request('first'));
    const second = side.generate(request('second', stop.signal));
    stop.abort(new Error('enough'));
    await expect(second).rejects.toThrow('enough');
    await first;
    await side.generate(request('third'));
    expect(backend.requests.map((r) => r.affinityKey)).toEqual(['first', 'third']);
  });

  it('lets go at once of a request whose backend does not listen', async () => {
    const { side } = open({ script: () => ({ text: 'ok', delayMs: 200, deaf: true }) });
    const stop = new AbortController();
    const asked = side.generate(request('a', stop.signal));
    setTimeout(() => stop.abort(new Error('enough')), 20);
    await expect(asked).rejects.toThrow('enough');
    // Its place is taken until the backend has let go.
    expect(side.stats().inFlight).toBe(1);
    await side.close();
    expect(side.stats().inFlight).toBe(0);
  });

  it('refuses what comes after it was closed, instead of leaving it waiting for ever', async () => {
    const { side } = open({});
    await side.close();
    await expect(side.generate(request('late'))).rejects.toThrow('closed');
  });
});
