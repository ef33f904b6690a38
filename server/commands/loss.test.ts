import { appendFile, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Command } from 'commander';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { NotFound } from '../core/errors';
import { addLossOptions, type GivenLossOptions, runLoss } from './loss';
import { readLines } from './read-lines';

let folder = '';
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'loss '));
});
afterAll(() => rm(folder, { recursive: true }));

const line = (id: string, more: object = {}): Record<string, unknown> => ({
  group_id: 'g',
  trajectory_id: id,
  step_rewards: [1],
  token_ids: [1, 2],
  generation_mask: [0, 1],
  step_index: [-1, 0],
  logprobs: [null, -1],
  policy_logprobs: [null, -1],
  ref_logprobs: [null, -1.5],
  ...more,
});

async function lossOf(lines: (object | string)[], options: GivenLossOptions = {}) {
  const path = join(folder, 'batch.jsonl');
  await writeFile(path, lines.map((l) => (typeof l === 'string' ? l : JSON.stringify(l))).join('\n'));
  return runLoss(path, options);
}

const a = 0.5 / (0.5 + 1e-8);

describe('studio loss', () => {
  it('prints exactly the fields of the format', async () => {
    const report = await lossOf([line('t1'), line('t2', { step_rewards: [0] }), '']);
    expect(Object.keys(report).sort()).toEqual(
      [
        'advantages',
        'clip_fraction',
        'clamped',
        'groups_without_signal',
        'kl',
        'loss',
        'masked_tokens',
        'policy_loss',
        'ratio_mean',
        'reinforce_loss',
      ].sort(),
    );
    expect(report.advantages).toEqual({ t1: [a], t2: [-a] });
    expect(report.policy_loss).toBeCloseTo(-(1.2 * a - Math.exp(0.5) * a) / 2, 12);
    expect(report.kl).toBeCloseTo(Math.exp(-0.5) - 0.5, 12);
    expect(report.reinforce_loss).toBeCloseTo(0, 12);
  });

  it('counts a trajectory of several lines once, and its tokens all', async () => {
    const report = await lossOf([
      line('t1', { sequence_index: 0 }),
      line('t2', { step_rewards: [0] }),
      line('t1', { sequence_index: 1 }),
    ]);
    expect(report.advantages).toEqual({ t1: [a], t2: [-a] });
    expect(report.masked_tokens).toBe(3);
    await expect(lossOf([line('t1', { sequence_index: 0 }), line('t1', { sequence_index: 0 })])).rejects.toThrow(
      /Line 2: sequence 0 of trajectory t1.*twice/,
    );
    await expect(lossOf([line('t1'), line('t1', { step_rewards: [2] })])).rejects.toThrow(
      /Line 2: step_rewards of trajectory t1 differs from line 1/,
    );
  });

  it('leaves failed and edited trajectories out, whatever their tokens hold', async () => {
    const counted = [line('t1'), line('t2', { step_rewards: [0], status: 'truncated' })];
    const others = [
      line('x', { status: 'failed', step_rewards: null, policy_logprobs: [null, null] }),
      line('y', { human_edited: true, step_rewards: [9], policy_logprobs: undefined }),
    ];
    expect(await lossOf([...others, ...counted])).toEqual(await lossOf(counted));
  });

  it('says which log-probabilities are absent, and goes on with --assume-on-policy', async () => {
    const bare = [line('t1', { policy_logprobs: null, ref_logprobs: undefined }), line('t2', { step_rewards: [0] })];
    await expect(lossOf(bare)).rejects.toThrow(
      /Line 1: trajectory t1 has no policy_logprobs and no ref_logprobs.*--assume-on-policy/,
    );
    const report = await lossOf(bare, { assumeOnPolicy: true });
    expect(report.ratio_mean).toBeCloseTo((1 + Math.exp(0.5)) / 2, 12);
    const nothing = [line('t1', { policy_logprobs: null, logprobs: null })];
    await expect(lossOf(nothing, { assumeOnPolicy: true })).rejects.toThrow(
      /no policy_logprobs, which .* no logprobs either/,
    );
  });

  it('needs nothing of a line in which nothing was sampled; its trajectory still counts in N', async () => {
    const silent = line('t3', { generation_mask: [0, 0], logprobs: null, policy_logprobs: null, ref_logprobs: null });
    const two = [line('t1', { group_id: 'h' }), line('t2', { group_id: 'h', step_rewards: [0] })];
    const report = await lossOf([...two, silent]);
    expect(report.policy_loss).toBeCloseTo(((await lossOf(two)).policy_loss * 2) / 3, 12);
    expect(report.advantages.t3).toEqual([0]);
    await expect(lossOf([silent])).rejects.toThrow(/no trainable token/);
  });

  it('needs only what its options use', async () => {
    const noRef = [line('t1', { ref_logprobs: null }), line('t2', { step_rewards: [0], ref_logprobs: null })];
    const report = await lossOf(noRef, { denominator: 'old', klCoef: 0 });
    expect(report).toMatchObject({ kl: null, ratio_mean: 1 });
    await expect(lossOf(noRef, { denominator: 'old' })).rejects.toThrow(/no ref_logprobs/);
    await expect(lossOf([line('t1', { logprobs: null })], { denominator: 'old' })).rejects.toThrow(
      /no logprobs, which/,
    );
  });

  it('refuses a ratio between unlike kinds of log-probabilities', async () => {
    const sampled = [line('t1', { logprob_kind: 'sampled' })];
    await expect(lossOf(sampled, { denominator: 'old' })).rejects.toThrow(/logprobs of kind sampled/);
    await expect(
      lossOf([line('t1', { logprob_kind: 'constrained', policy_logprobs: null })], { assumeOnPolicy: true }),
    ).rejects.toThrow(/kind constrained/);
    // Turns of more than one kind, or a server that does not say.
    await expect(lossOf([line('t1', { logprob_kind: 'unknown' })], { denominator: 'old' })).rejects.toThrow(
      /kind unknown/,
    );
    expect((await lossOf(sampled)).masked_tokens).toBe(1);
    expect((await lossOf([line('t1', { logprob_kind: 'raw' })], { denominator: 'old' })).ratio_mean).toBe(1);
  });

  it('names line, trajectory, position and value of a number that is none', async () => {
    for (const [text, shown] of [
      ['null', 'missing'],
      ['NaN', 'missing'],
      ['Infinity', 'Infinity'],
      ['-9999.0', '-9999'],
      ['1e999', 'Infinity'],
    ] as const) {
      const bad = JSON.stringify(line('t7', { policy_logprobs: [null, 'X'] })).replace('"X"', text);
      await expect(lossOf([line('t1'), bad])).rejects.toThrow(
        `Line 2: Trajectory t7, token 1: its policy_logprobs is ${shown}`,
      );
    }
  });

  it('refuses an empty batch, a broken line, and a file that is not there', async () => {
    await expect(lossOf([])).rejects.toThrow(/no trainable token/);
    await expect(lossOf([line('t1'), '{"group_id":'])).rejects.toThrow(/^Line 2 is not JSON/);
    await expect(runLoss(join(folder, 'none.jsonl'))).rejects.toThrow(NotFound);
  });

  it('says that a line is too long to be read, whatever it holds', async () => {
    const path = join(folder, 'endless.jsonl');
    await writeFile(path, `${JSON.stringify(line('t1'))}\n${'x'.repeat(3_000_000)}`);
    const read = async () => {
      for await (const _ of readLines(path, 2_000_000));
    };
    await expect(read()).rejects.toThrow(`Line 2 of ${path} is longer than 2000000 bytes.`);
  });

  it('splits lines at line feeds only, and characters may lie across the pieces a file is read in', async () => {
    const path = join(folder, 'long.jsonl');
    await writeFile(path, '');
    for (let i = 0; i < 30; i++)
      await appendFile(
        path,
        `${JSON.stringify(line(`t${i}`, { step_rewards: [i % 2], note: `é\u2028日${'é'.repeat(40_000 + i)}` }))}\r\n`,
      );
    const report = await runLoss(path);
    expect(Object.keys(report.advantages)).toHaveLength(30);
    expect(report.masked_tokens).toBe(30);
  });
});

describe('its options on the command line', () => {
  const read = (...words: string[]) =>
    addLossOptions(new Command().exitOverride().configureOutput({ writeErr: () => {} }))
      .parse(words, { from: 'user' })
      .opts<GivenLossOptions>();

  it('have the defaults of the loss', async () => {
    const lines = [line('t1'), line('t2', { step_rewards: [0] })];
    expect(await lossOf(lines, read())).toEqual(await lossOf(lines));
  });

  it('set both ends of the clip range at once, or each', async () => {
    const lines = [line('t1'), line('t2', { step_rewards: [0] })];
    expect(await lossOf(lines, read('--clip', '0.3'))).toEqual(await lossOf(lines, { clipLow: 0.3, clipHigh: 0.3 }));
    expect(await lossOf(lines, read('--clip', '0.3', '--clip-high', '0.1'))).toEqual(
      await lossOf(lines, { clipLow: 0.3, clipHigh: 0.1 }),
    );
  });

  it('are read from their words', () => {
    const words =
      '--kl-coef 0 --kl k1 --denominator old --aggregate token-mean --unbiased --assume-on-policy --estimator leave-one-out --gamma 1 --step-weight 0.5';
    expect(read(...words.split(' '))).toEqual({
      estimator: 'leave-one-out',
      denominator: 'old',
      klCoef: 0,
      kl: 'k1',
      aggregate: 'token-mean',
      unbiased: true,
      assumeOnPolicy: true,
      stepWeight: 0.5,
      gamma: 1,
    });
  });

  it('refuse other words', () => {
    expect(() => read('--estimator', 'magic')).toThrow(/step-group/);
    expect(() => read('--clip', 'wide')).toThrow(/number/);
    expect(() => read('--clip', '-1')).toThrow(/at least 0/);
  });
});
