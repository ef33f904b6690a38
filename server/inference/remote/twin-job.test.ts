/**
 * The main job on twins: the whole studio without pages, the tutorial's policy and tasks. Every number that is exported,
 * and the loss of it, is held against llama.cpp's own and a few lines of arithmetic.
 */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { connect } from '../../commands/client';
import { runLoss } from '../../commands/loss';
import { rollout } from '../../commands/rollout';
import type { BatchLine } from '../../core/batch/line';
import { parseBatchLine } from '../../core/batch/parse';
import { silentLogger } from '../../observability/logger';
import { packageRoot, type StartedStudio, startedStudio } from '../../testing/started-studio';
import { EmbeddedBackend } from '../embedded/embedded-backend';
import { decodeGguf } from '../gguf/read';
import { writeCheckpoint } from '../gguf/to-checkpoint';
import { encodeGguf } from '../gguf/write';
import { startTwinProcess, type TwinProcess, type TwinStart } from '../testing/twin/twin-process';

const TUTORIAL = join(packageRoot, 'samples', 'models', 'tutorial.gguf');
/** llama.cpp computes both sides, in batches of other sizes. Other weights differ by tenths and more. */
const CLOSE = 1e-3;
/** Limit against hanging. */
const HANG_MS = 300_000;

describe('the main job on twins', { timeout: HANG_MS }, () => {
  let folder: string;
  let studio: StartedStudio;
  let client: StartedStudio['client'];
  let twin: TwinProcess;
  const teachers = new Map<string, EmbeddedBackend>();
  const twins: TwinProcess[] = [];

  const startTwin = async (kind: TwinStart['kind']) => {
    const started = await startTwinProcess({ kind, options: { modelPath: TUTORIAL } });
    twins.push(started);
    return started;
  };

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'studio-twin-'));
    const next = join(folder, 'next.gguf');
    const file = decodeGguf(await readFile(TUTORIAL), TUTORIAL);
    const tensors = file.tensors.map(({ data, ...tensor }) => ({
      ...tensor,
      data: data.map((value, k) => value * (1 + 0.12 * Math.sin(7.3 * k))),
    }));
    await writeFile(next, encodeGguf({ ...file, tensors }));
    await writeCheckpoint(join(folder, 'tokenizer'), file);
    studio = await startedStudio(join(folder, 'data'));
    client = studio.client;
    // As the twin calls its first weights, and as the updates below call the others.
    for (const [label, modelPath] of [
      ['default', TUTORIAL],
      ['next', next],
    ] as const)
      teachers.set(
        label,
        await EmbeddedBackend.open({ name: label, modelPath, threads: 1, logger: silentLogger, maxSequences: 2 }),
      );
    await client.backends.add.mutate({ name: 'reference', kind: 'embedded', settings: { modelPath: next } });
    twin = await startTwin('sglang');
    await client.backends.add.mutate({ name: 'remote', kind: 'auto', urls: [twin.url] });
    const tutorial = await readFile(join(packageRoot, 'samples', 'skills', 'tutorial.yaml'), 'utf8');
    for (const [name, from, to] of [
      ['filtered', 'top_k: 0', 'top_k: 3'],
      ['constrained', 'constrain_actions: false', 'constrain_actions: true'],
    ] as const) {
      const yaml = tutorial.replace('skill_name: tutorial', `skill_name: ${name}`).replace(from, to);
      expect(yaml).toContain(to);
      await client.skills.save.mutate({ yaml });
    }
  }, HANG_MS);
  afterAll(async () => {
    for (const teacher of teachers.values()) await teacher.close();
    await studio?.stop();
    for (const one of twins) await one.close();
    await rm(folder, { recursive: true, force: true });
  }, HANG_MS);

  const start = async (changes: { backend?: string; skill?: string; temperature?: number; tasks?: number } = {}) => {
    const { backend = 'remote', skill = 'tutorial', temperature, tasks = 2 } = changes;
    const wanted = { skill, dataset: 'tutorial', backend, tasks, groupSize: 4, seed: 3, temperature };
    return (await client.runs.start.mutate(wanted)).runId;
  };
  const ended = (runId: string) => studio.ended(runId, HANG_MS);
  const exported = async (runId: string, all = false): Promise<BatchLine[]> => {
    const { url, headers } = studio;
    const response = await fetch(`${url}/api/runs/${runId}/export${all ? '?all=true' : ''}`, { headers });
    const text = await response.text();
    await writeFile(join(folder, `${runId}.jsonl`), text);
    return text
      .split('\n')
      .filter((line) => line !== '')
      .map((line, k) => parseBatchLine(line, k + 1));
  };
  /** What the weights of this label say of every token behind the first sampled one; NaN before it. */
  const taught = async (label: string, { tokens: { ids, mask } }: BatchLine): Promise<Float32Array> => {
    const first = mask.indexOf(1);
    const pair = { promptIds: ids.slice(0, first), completionIds: ids.slice(first) };
    const [scores] = (await teachers.get(label)?.getLogprobs([pair])) ?? [];
    const numbers = new Float32Array(ids.length).fill(Number.NaN);
    numbers.set(scores?.logprobs ?? [], first);
    return numbers;
  };
  /** Every sampled token has the number of the weights that its span names. Returns how many tokens each weights made. */
  const expectTaught = async (lines: readonly BatchLine[]): Promise<Record<string, number>> => {
    const made: Record<string, number> = {};
    for (const line of lines) {
      expect(line).toMatchObject({ logprobKind: 'raw', approximate: false });
      const { mask, logprobs } = line.tokens;
      let covered = 0;
      for (const { version, start: from, end } of line.weightVersions ?? []) {
        const numbers = await taught(version, line);
        for (let k = from; k < end; k++) {
          if (!mask[k]) continue;
          expect(Math.abs((logprobs?.[k] ?? Number.NaN) - (numbers[k] ?? Number.NaN)), `token ${k}`).toBeLessThan(
            CLOSE,
          );
          made[version] = (made[version] ?? 0) + 1;
          covered++;
        }
      }
      expect(covered).toBe(mask.reduce((sum, on) => sum + on, 0));
      mask.forEach((on, k) => {
        if (!on) expect(logprobs?.[k]).toBeNaN();
      });
    }
    return made;
  };

  it.each([
    { skill: 'tutorial' },
    { skill: 'tutorial', temperature: 0.6 },
    { skill: 'tutorial', temperature: 0 },
    { skill: 'filtered', temperature: 0.8 },
    { skill: 'constrained' },
  ])('exports the raw numbers of the weights, whatever shaped the sampling: %o', async (changes) => {
    const runId = await start(changes);
    const rows = await ended(runId);
    const lines = await exported(runId);
    expect(lines).toHaveLength(rows.length);
    expect(Object.keys(await expectTaught(lines))).toEqual(['default']);
  });

  it('starts on a backend that is paused, says why it waits, and samples when that is resumed', async () => {
    const name = 'remote';
    await client.backends.pause.mutate({ name });
    expect((await client.backends.list.query()).find((one) => one.name === name)?.health).toMatchObject({
      ok: false,
      held: true,
    });
    const { url, token } = studio;
    const told: string[] = [];
    const watched = rollout(
      connect({ url, publicUrl: url, token, lasting: true }),
      { skill: 'tutorial', dataset: 'tutorial', backend: name, tasks: 1, groupSize: 4, seed: 3 },
      { signal: new AbortController().signal, tell: (notice) => told.push(notice) },
    );
    await expect
      .poll(() => told.join(' '), { timeout: HANG_MS, interval: 50 })
      .toContain('This run waits: An operator paused the backend remote');
    await client.backends.resume.mutate({ name });
    expect((await watched).report).toMatchObject({ trajectories: 4, failed: 0 });
    // Once each, however long it lasts.
    expect(new Set(told).size).toBe(told.length);
  });

  it('gives the loss that a few lines of arithmetic give, with scores of the policy and of a reference', async () => {
    const runId = await start({ temperature: 0.6 });
    const rows = await ended(runId);
    for (const [as, backend] of [
      ['policy', 'remote'],
      ['ref', 'reference'],
    ] as const) {
      await client.runs.score.mutate({ runId, as, backend });
      await expect
        .poll(() => client.runs.scoreStatus.query({ runId }), { timeout: HANG_MS, interval: 50 })
        .toMatchObject({ status: 'succeeded', error: null, scored: rows.length });
    }
    const lines = await exported(runId);
    let gain = 0;
    let reinforce = 0;
    let kl = 0;
    let ratios = 0;
    let tokens = 0;
    let clips = 0;
    for (const line of lines) {
      const [policy, ref] = [await taught('default', line), await taught('next', line)];
      const { mask, stepIndex, policyLogprobs, refLogprobs } = line.tokens;
      for (let k = 0; k < mask.length; k++) {
        if (!mask[k]) continue;
        const [p, q] = [policy[k] as number, ref[k] as number];
        expect(Math.abs((policyLogprobs?.[k] ?? Number.NaN) - p)).toBeLessThan(CLOSE);
        expect(Math.abs((refLogprobs?.[k] ?? Number.NaN) - q)).toBeLessThan(CLOSE);
        const advantage = line.advantages?.[stepIndex[k] as number] ?? Number.NaN;
        const ratio = Math.exp(p - q);
        const clipped = Math.min(Math.max(ratio, 0.8), 1.2);
        gain += Math.min(ratio * advantage, clipped * advantage);
        clips += clipped * advantage < ratio * advantage ? 1 : 0;
        reinforce += p * advantage;
        kl += Math.exp(q - p) - (q - p) - 1;
        ratios += ratio;
        tokens++;
      }
    }
    const loss = await runLoss(join(folder, `${runId}.jsonl`));
    expect(loss.masked_tokens).toBe(tokens);
    expect(loss.policy_loss).toBeCloseTo(-gain / lines.length, 2);
    expect(loss.kl).toBeCloseTo(kl / tokens, 4);
    expect(loss.kl).toBeGreaterThan(1e-3);
    expect(loss.ratio_mean).toBeCloseTo(ratios / tokens, 3);
    expect(loss.reinforce_loss).toBeCloseTo(-reinforce / tokens, 3);
    expect(Math.abs(loss.clip_fraction - clips / tokens)).toBeLessThan(0.01);
    // The same weights sampled: token by token the ratio is one.
    const old = await runLoss(join(folder, `${runId}.jsonl`), { denominator: 'old', klCoef: 0 });
    expect(old.ratio_mean).toBeCloseTo(1, 4);
    expect(old).toMatchObject({ clip_fraction: 0, clamped: 0 });
  });

  it.each([
    { inFlight: 'drain', skill: 'constrained' },
    { inFlight: 'interrupt', temperature: 0.6 },
  ] as const)(
    'exports of each token the number of the weights that sampled it, through an update: %o',
    async (changes) => {
      const { inFlight, ...wanted } = changes;
      const own = await startTwin('sglang');
      await client.backends.add.mutate({ name: inFlight, kind: 'auto', urls: [own.url] });
      await own.setFaults({ msPerToken: 10 });
      const runId = await start({ ...wanted, backend: inFlight, tasks: 3 });
      const generated = async () => (await client.runs.get.query({ runId })).generatedTokens;
      await expect.poll(generated, { timeout: HANG_MS, interval: 10 }).toBeGreaterThan(60);
      const source = { kind: 'checkpoint' as const, path: join(folder, 'next.gguf') };
      await client.backends.updateWeights.mutate({ name: inFlight, version: 'next', source, inFlight });
      await own.setFaults({ msPerToken: 0 });
      const rows = await ended(runId);
      const lines = await exported(runId);
      expect(lines).toHaveLength(rows.length);
      const made = await expectTaught(lines);
      expect(made.default).toBeGreaterThan(60);
      expect(made.next).toBeGreaterThan(0);
      expect(lines.some(({ weightVersions }) => (weightVersions?.length ?? 0) > 1)).toBe(true);
    },
  );

  it('keeps numbers of another kind out of an export where the server cannot score, and labelled in one of all', async () => {
    const own = await startTwin('tensorrt-llm');
    const tokenizer = join(folder, 'tokenizer');
    const address = { name: 'unscored', kind: 'auto' as const, urls: [own.url], tokenizer, contextLength: 512 };
    await client.backends.add.mutate(address);
    const runId = await start({ backend: 'unscored', skill: 'constrained' });
    const rows = await ended(runId);
    expect(await exported(runId)).toEqual([]);
    const lines = await exported(runId, true);
    expect(lines.map(({ logprobKind }) => logprobKind)).toEqual(rows.map(() => 'constrained'));
    const loss = runLoss(join(folder, `${runId}.jsonl`), { denominator: 'old', assumeOnPolicy: false, klCoef: 0 });
    await expect(loss).rejects.toThrow(/policy_logprobs/);
  });
});
