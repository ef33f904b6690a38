/** What is shown is what is stored: the page, the token data, the export and the loss speak of the same numbers. */
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Page } from '@playwright/test';
import { decodeTokens } from '../server/core/tokens/wire';
import { SEGMENT_KINDS } from '../server/core/vocabulary';
import { chosenToken, expect, type FinishedRun, open, pageHeader, test, tokenFact } from './journey';
import { root } from './server';

interface Line {
  trajectory_id: string;
  group_id: string;
  sequence_index: number;
  token_ids: number[];
  generation_mask: number[];
  step_index: number[];
  segment_kind: string[];
  logprobs: (number | null)[];
  advantages: number[];
  step_rewards: number[];
  reward: number;
}

/** By the page's button, as a person does it. */
async function exported(page: Page, run: FinishedRun): Promise<{ file: string; lines: Line[] }> {
  await open(page, `/runs/${run.runId}`);
  const download = page.waitForEvent('download');
  await page.getByRole('link', { name: 'Export' }).click();
  const file = test.info().outputPath((await download).suggestedFilename());
  await (await download).saveAs(file);
  const lines = (await readFile(file, 'utf8')).trimEnd().split('\n');
  return { file, lines: lines.map((line) => JSON.parse(line) as Line) };
}

const shown = (value: number): string => String(value).replace('-', '−');

test('the export button gives a file that parses, with every trajectory in it', async ({ page, finished }) => {
  const { file, lines } = await exported(page, finished);
  expect(file).toContain(`${finished.runId}.jsonl`);
  expect(new Set(lines.map((line) => line.trajectory_id))).toEqual(new Set(finished.trajectoryIds));
  for (const line of lines)
    for (const column of [line.generation_mask, line.step_index, line.segment_kind, line.logprobs])
      expect(column).toHaveLength(line.token_ids.length);
});

test('tokens, export, inspector and loss agree to the last digit', async ({ page, finished, client }) => {
  const { file, lines } = await exported(page, finished);
  const { stdout } = await promisify(execFile)(
    process.execPath,
    [join(root, 'dist', 'cli.js'), 'loss', file, '--assume-on-policy', '--json'],
    { env: { ...process.env, NODE_ENV: 'production' } },
  );
  const loss = JSON.parse(stdout) as { advantages: Record<string, number[]>; masked_tokens: number };
  let sampledTokens = 0;

  for (const line of lines) {
    const answer = await page.request.get(
      `/api/trajectories/${line.trajectory_id}/tokens?sequence=${line.sequence_index}`,
    );
    expect(answer.headers()['x-tokens-final']).toBe('1');
    const tokens = decodeTokens(new Uint8Array(await answer.body()));
    expect([...tokens.ids]).toEqual(line.token_ids);
    expect([...tokens.mask]).toEqual(line.generation_mask);
    expect([...tokens.stepIndex]).toEqual(line.step_index);
    const segments = [...tokens.segment].map((code) => SEGMENT_KINDS[code]);
    expect(segments).toEqual(line.segment_kind);
    line.logprobs.forEach((value, at) => {
      // A float32 written in decimal reads back as itself.
      if (value === null) expect(tokens.logprobs[at]).toBeNaN();
      else expect(Math.fround(value)).toBe(tokens.logprobs[at]);
      expect(value === null).toBe(tokens.mask[at] === 0);
    });
    segments.forEach((segment, at) => {
      const written = ['thought', 'action', 'answer', 'stop'].includes(segment ?? '');
      expect(tokens.mask[at], `${segment} at ${at}`).toBe(written ? 1 : 0);
    });
    const detail = await client.trajectories.get.query({ trajectoryId: line.trajectory_id });
    expect(detail.steps.map((step) => step.advantage)).toEqual(line.advantages);
    expect(detail.steps.map((step) => step.reward)).toEqual(line.step_rewards);
    const computed = loss.advantages[line.trajectory_id] ?? [];
    expect(computed).toHaveLength(line.advantages.length);
    for (const [step, value] of line.advantages.entries()) expect(computed[step]).toBeCloseTo(value, 12);
    sampledTokens += line.generation_mask.reduce((sum, bit) => sum + bit, 0);
  }
  expect(loss.masked_tokens).toBe(sampledTokens);

  for (const line of [lines[0], lines.at(-1)] as Line[]) {
    const tokens = decodeTokens(
      new Uint8Array(
        await (await page.request.get(`/api/trajectories/${line.trajectory_id}/tokens?sequence=0`)).body(),
      ),
    );
    const sampled = line.generation_mask.flatMap((bit, at) => (bit === 1 ? [at] : []));
    for (const at of [0, sampled[0], sampled[Math.floor(sampled.length / 2)], sampled.at(-1)] as number[]) {
      await open(page, `/runs/${finished.runId}/trajectories/${line.trajectory_id}?token=${at}`);
      await expect(chosenToken(page)).toHaveText(`Token ${at}`);
      await expect(tokenFact(page, 'id')).toHaveText(String(line.token_ids[at]));
      const bytes = [...tokens.bytes.subarray(at === 0 ? 0 : tokens.byteEnds[at - 1], tokens.byteEnds[at])];
      await expect(tokenFact(page, 'bytes')).toHaveText(
        bytes.length === 0 ? '–' : bytes.map((byte) => byte.toString(16).padStart(2, '0')).join(' '),
      );
      await expect(tokenFact(page, 'mask')).toHaveText(line.generation_mask[at] === 1 ? '1 · sampled' : /^0 /);
      const logprob = line.logprobs[at];
      if (logprob === null || logprob === undefined) await expect(tokenFact(page, 'log p')).toHaveText('–');
      else {
        const title = (await tokenFact(page, 'log p').getAttribute('title')) ?? '';
        expect(Math.fround(Number(title.replace('−', '-')))).toBe(tokens.logprobs[at]);
        const advantage = line.advantages[line.step_index[at] as number] as number;
        await expect(tokenFact(page, /^advantage A/)).toHaveAttribute('title', shown(advantage));
      }
    }
    await expect(pageHeader(page)).toContainText(`generated ${sampled.length} of ${line.token_ids.length} tokens`);
  }
});
