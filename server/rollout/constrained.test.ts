/** A real engine on a model with random weights: under the grammar even noise can only write turns that parse. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { systemAmbient } from '../core/ambient';
import { MemoryStore } from '../harness/memory-store';
import { QWEN25 } from '../harness/testing/chatml-templates';
import { LLAMA31 } from '../harness/testing/llama-template';
import { MISTRAL_SMALL } from '../harness/testing/mistral-templates';
import type { ModelChat } from '../harness/testing/model-chat';
import type { InferenceBackend } from '../inference/backend';
import { EmbeddedBackend } from '../inference/embedded/embedded-backend';
import { writeTinyModel } from '../inference/testing/tiny-model';
import { silentLogger } from '../observability/logger';
import { AsyncRolloutEngine } from './engine';
import { eventsOf, testEngine, testSkill } from './testing/rollouts';
import { ScriptedBackend } from './testing/scripted-backend';

describe('a model with random weights under the grammar', () => {
  let folder: string;
  let backend: EmbeddedBackend;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'constrained-'));
    await writeTinyModel(join(folder, 'tiny.gguf'), { context: 4096 });
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

  const cases: [string, ModelChat | null, string][] = [
    ['ReAct', null, 'react'],
    ['Qwen', QWEN25, 'hermes'],
    ['Llama', LLAMA31, 'llama3'],
    ['Mistral', MISTRAL_SMALL, 'mistral'],
  ];
  for (const [name, chat, format] of cases)
    it(`writes only turns that parse or that the token limit cut off, with the numbers of the free policy: ${name}`, async () => {
      const { prompt } = testEngine(() => '');
      const skill = testSkill({
        actionFormat: 'auto',
        stop: null,
        availableTools: ['double', 'say'],
        // A template's prompt is long for a vocabulary of bytes: once is enough.
        maxRounds: chat === null ? 2 : 1,
        constrainActions: true,
        sampling: { temperature: 1, topP: 1, topK: 0, minP: 0, maxTokensPerTurn: 500 },
      });
      const engine = new AsyncRolloutEngine({
        backend: chat === null ? backend : withTemplate(backend, chat),
        capabilities: await backend.capabilities(),
        store: new MemoryStore(),
        toolWorkers: 2,
        ambient: systemAmbient(),
        logger: silentLogger,
      });
      const [group] = await engine.collectBatch([prompt({ skill })], chat === null ? 4 : 2, { seed: 3 });
      await engine.close();
      let whole = 0;
      for (const { session, end } of group ?? []) {
        expect(['completed', 'truncated'], end.reason).toContain(end.status);
        expect(session.state.format.name).toBe(format);
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

/** The same engine and vocabulary under the template of another model; its control tokens are plain text to it. */
function withTemplate(backend: InferenceBackend, chat: ModelChat): InferenceBackend {
  const template = new ScriptedBackend({ chat, script: () => '' });
  return new Proxy(backend, {
    get(target, name) {
      if (name === 'applyTemplate') return template.applyTemplate.bind(template);
      const value: unknown = Reflect.get(target, name);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}
