/** A real engine on a model with random weights: under the grammar even noise can only write turns that parse. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { systemAmbient } from '../core/ambient';
import { MemoryStore } from '../harness/memory-store';
import { EmbeddedBackend } from '../inference/embedded/embedded-backend';
import { writeTinyModel } from '../inference/testing/tiny-model';
import { silentLogger } from '../observability/logger';
import { AsyncRolloutEngine } from './engine';
import { eventsOf, testEngine, testSkill } from './testing/rollouts';

describe('a model with random weights under the grammar', () => {
  let folder: string;
  let backend: EmbeddedBackend;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'constrained-'));
    await writeTinyModel(join(folder, 'tiny.gguf'), { context: 2048 });
    backend = await EmbeddedBackend.open({
      name: 'tiny',
      modelPath: join(folder, 'tiny.gguf'),
      threads: 1,
      maxSequences: 4,
      logger: silentLogger,
    });
  });
  afterAll(async () => {
    await backend?.close();
    await rm(folder, { recursive: true, force: true });
  });

  it('writes only turns that parse or that the token limit cut off, and their numbers are those of the free policy', async () => {
    const { prompt } = testEngine(() => '');
    const skill = testSkill({
      availableTools: ['double', 'say'],
      maxRounds: 2,
      constrainActions: true,
      sampling: { temperature: 1, topP: 1, topK: 0, minP: 0, maxTokensPerTurn: 500 },
    });
    const store = new MemoryStore();
    const engine = new AsyncRolloutEngine({
      backend,
      capabilities: await backend.capabilities(),
      store,
      toolWorkers: 2,
      ambient: systemAmbient(),
      logger: silentLogger,
    });
    const [group] = await engine.collectBatch([prompt({ skill })], 4, { seed: 3 });
    await engine.close();
    let whole = 0;
    for (const { session, end } of group ?? []) {
      expect(['completed', 'truncated']).toContain(end.status);
      const turns = eventsOf(await session.getEvents(), 'generation.completed');
      session.state.steps.forEach((step, k) => {
        if (turns[k]?.data.finishReason === 'length') return;
        whole++;
        expect(step.problem).toBeNull();
        for (const call of step.actions) expect(call.error).toBeNull();
        for (const result of step.results) expect(result.status).toBe('success');
      });
      const sequence = session.state.sequences[0]?.finish();
      expect(new Set(session.state.logprobKinds)).toEqual(new Set(['raw']));
      sequence?.mask.forEach((m, k) => {
        expect(Number.isNaN(sequence.logprobs[k])).toBe(m === 0);
      });
    }
    expect(whole).toBeGreaterThan(0);
  });
});
