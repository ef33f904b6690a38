/** The main job on a real language model: the whole studio without pages, SmolLM2-135M-Instruct, Python in a sandbox. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { systemAmbient } from '../core/ambient';
import { SEGMENT_KINDS } from '../core/vocabulary';
import { EmbeddedBackend } from '../inference/embedded/embedded-backend';
import { silentLogger } from '../observability/logger';
import { createSandboxPool } from '../sandbox/pool';
import { startedStudio } from '../testing/started-studio';

const model = process.env.STUDIO_TEST_MODEL ?? '';
const TASKS = 2;
const GROUP = 4;
/** Limit against hanging. */
const HANG_MS = 600_000;

if (model === '')
  console.log(
    'The real small model is not here (STUDIO_TEST_MODEL): its test is skipped. Fetch it with: node scripts/fetch-model.mjs',
  );

async function hasPythonSandbox(): Promise<boolean> {
  const pool = await createSandboxPool({
    logger: silentLogger,
    ambient: systemAmbient(),
    size: 1,
    searchPath: process.env.PATH ?? '',
  });
  const process_ = pool.levels().find((level) => level.level === 'process');
  await pool.close();
  return process_?.available === true && process_.kinds.includes('python');
}

describe.skipIf(model === '')('the main job on a real model', () => {
  it('stores the ids that were sampled, their mask, their log-probabilities and the steps', {
    timeout: HANG_MS,
  }, async () => {
    const dataDir = await mkdtemp(join(tmpdir(), 'studio-real-'));
    const { client, ended, tokensOf, stop } = await startedStudio(dataDir);
    try {
      await client.backends.add.mutate({ name: 'smollm2', kind: 'embedded', settings: { modelPath: model } });
      const { runId } = await client.runs.start.mutate({
        skill: 'python-arithmetic',
        dataset: 'python-arithmetic',
        backend: 'smollm2',
        tasks: TASKS,
        groupSize: GROUP,
        seed: 3,
      });
      const rows = await ended(runId, HANG_MS);
      expect(rows).toHaveLength(TASKS * GROUP);

      const scorer = await EmbeddedBackend.open({
        name: 'scorer',
        modelPath: model,
        threads: 1,
        logger: silentLogger,
        maxSequences: 2,
      });
      const canRunPython = await hasPythonSandbox();
      let calls = 0;
      for (const row of rows) {
        const detail = await client.trajectories.get.query({ trajectoryId: row.trajectoryId });
        expect(detail.sequences.every((sequence) => sequence.logprobKind === 'raw' && !sequence.approximate)).toBe(
          true,
        );
        expect(detail.steps.length).toBeGreaterThan(0);
        for (const step of detail.steps) {
          // Constrained turns parse: a call that did not was cut off, and says so.
          for (const action of step.actions)
            if (action.arguments === null) expect(step.results[action.index]?.error).toMatch(/truncated|cut off/);
          for (const result of step.results) if (result.sandboxLevel !== null) calls++;
          expect(step.reward).not.toBeNull();
        }
        const tokens = await tokensOf(row.trajectoryId);
        const sampled = [...tokens.mask].flatMap((mask, k) => (mask === 1 ? [k] : []));
        expect(sampled.length).toBeGreaterThan(0);
        for (let k = 0; k < tokens.ids.length; k++) {
          const kind = SEGMENT_KINDS[tokens.segment[k] ?? -1];
          if (tokens.mask[k] === 1) {
            expect(['thought', 'action', 'answer', 'stop']).toContain(kind);
            expect(tokens.logprobs[k]).toBeLessThanOrEqual(1e-4);
            expect(tokens.logprobs[k]).toBeGreaterThan(-104);
          } else expect(tokens.logprobs[k]).toBeNaN();
        }
        // What was stored is what the model says of these very ids: score the first turn again.
        const first = sampled[0] ?? 0;
        const end = sampled.find((k, i) => sampled[i + 1] !== k + 1) ?? first;
        const [again] = await scorer.getLogprobs([
          { promptIds: tokens.ids.slice(0, first), completionIds: tokens.ids.slice(first, end + 1) },
        ]);
        again?.logprobs.forEach((value, i) => {
          expect(Math.abs(value - (tokens.logprobs[first + i] ?? 0))).toBeLessThan(1e-3);
        });
      }
      await scorer.close();
      if (canRunPython) expect(calls).toBeGreaterThan(0);
    } finally {
      await stop();
      await rm(dataDir, { recursive: true, force: true });
    }
  });
});
