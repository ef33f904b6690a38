/**
 * Whole runs on servers that are many, change their weights, go away or say what cannot be: the studio without pages, the
 * tutorial's policy, twins of SGLang.
 */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { WireTokens } from '../core/tokens/wire';
import { decodeGguf } from '../inference/gguf/read';
import { encodeGguf } from '../inference/gguf/write';
import { REPLICA_TIMES } from '../inference/router/replica';
import { noFaults } from '../inference/testing/twin/faults';
import { startSglangTwin } from '../inference/testing/twin/sglang';
import type { Twin } from '../inference/testing/twin/twin';
import { packageRoot, type StartedStudio, startedStudio } from '../testing/started-studio';

const TUTORIAL = join(packageRoot, 'samples', 'models', 'tutorial.gguf');
/** Limit against hanging. */
const HANG_MS = 300_000;

describe('a run', { timeout: HANG_MS }, () => {
  let folder: string;
  let next: string;
  let studio: StartedStudio;
  const twins: Twin[] = [];
  const toClose: Twin[] = [];
  const startTwin = async (): Promise<Twin> => {
    const twin = await startSglangTwin({ modelPath: TUTORIAL, disconnectPollMs: 50 });
    toClose.push(twin);
    return twin;
  };

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'studio-runs-'));
    next = join(folder, 'next.gguf');
    const file = decodeGguf(await readFile(TUTORIAL), TUTORIAL);
    const tensors = file.tensors.map(({ data, ...tensor }) => ({
      ...tensor,
      data: data.map((value, k) => value * (1 + 0.01 * Math.sin(7.3 * k))),
    }));
    await writeFile(next, encodeGguf({ ...file, tensors }));
    studio = await startedStudio(join(folder, 'data'));
    for (const name of ['one', 'other']) {
      const twin = await startTwin();
      twins.push(twin);
      await studio.client.backends.add.mutate({ name, kind: 'auto', urls: [twin.url] });
    }
    const urls = twins.map(({ url }) => url);
    await studio.client.backends.add.mutate({ name: 'both', kind: 'auto', urls });
  }, HANG_MS);
  afterEach(() => {
    for (const { faults } of twins) Object.assign(faults, noFaults());
  });
  afterAll(async () => {
    await studio?.stop();
    for (const twin of toClose) await twin.close();
    await rm(folder, { recursive: true, force: true });
  }, HANG_MS);

  const twinOf = (name: 'one' | 'other'): Twin => {
    const twin = twins[name === 'one' ? 0 : 1];
    if (!twin) throw new Error('The twin was not started.');
    return twin;
  };
  const start = async (
    backend: 'one' | 'other' | 'both' | 'hanging' | 'silent',
    changes: object = {},
  ): Promise<string> => {
    const wanted = { skill: 'tutorial', dataset: 'tutorial', backend, tasks: 8, groupSize: 1, seed: 3, ...changes };
    return (await studio.client.runs.start.mutate(wanted)).runId;
  };
  const get = (runId: string) => studio.client.runs.get.query({ runId });
  const until = async (runId: string, reached: (run: Awaited<ReturnType<typeof get>>) => boolean) => {
    await expect.poll(async () => reached(await get(runId)), { timeout: HANG_MS, interval: 10 }).toBe(true);
    return get(runId);
  };
  const rowsOf = async (runId: string) => {
    const run = await until(runId, ({ finishedAtMs }) => finishedAtMs !== null);
    return run.groups.flatMap(({ trajectories }) => trajectories);
  };
  /** Labels of the weights that sampled it, of all its sequences. */
  const weightsOf = async (trajectoryId: string): Promise<string[]> => {
    const { sequences } = await studio.client.trajectories.get.query({ trajectoryId });
    return [...new Set(sequences.flatMap(({ weightVersions }) => weightVersions.map(({ version }) => version)))];
  };

  const turnsOf = ({ mask }: WireTokens): number =>
    mask.filter((sampled, k) => sampled === 1 && mask[k - 1] === 0).length;
  /** How many generations each server answered for a trajectory: every task has words of its own, so a prompt is of one. */
  const answeredFor = ({ ids, mask }: WireTokens, servers: readonly Twin[] = twins): number[] =>
    servers.map(({ log }) => {
      const answered = log.filter(({ path, status }) => path === '/generate' && status === 200);
      const prompts = answered.map(({ body }) => (body as { input_ids: number[] }).input_ids);
      return prompts.filter((prompt) => prompt.length >= mask.indexOf(1) && prompt.every((id, k) => id === ids[k]))
        .length;
    });

  it('sends all turns of a trajectory to one server, and its trajectories to all of them', async () => {
    for (const { log } of twins) log.length = 0;
    const rows = await studio.ended(await start('both'), HANG_MS);
    const homes: number[] = [];
    let most = 0;
    for (const { trajectoryId } of rows) {
      const tokens = await studio.tokensOf(trajectoryId);
      const turns = turnsOf(tokens);
      most = Math.max(most, turns);
      const counts = answeredFor(tokens);
      expect(counts.toSorted((a, b) => a - b)).toEqual([0, turns]);
      homes.push(counts.indexOf(turns));
    }
    expect(most).toBeGreaterThan(2);
    expect(new Set(homes)).toEqual(new Set([0, 1]));
  });

  it.each(['redo', 'drop'] as const)(
    'whose trajectories fall behind the weights has them begun anew or dropped, as it was asked: %s',
    async (stale) => {
      const name = stale === 'redo' ? 'one' : 'other';
      const { faults } = twinOf(name);
      faults.msPerToken = 25;
      const runId = await start(name, { maxStaleness: 0, stale });
      await until(runId, ({ generatedTokens }) => generatedTokens > 20);
      const source = { kind: 'checkpoint' as const, path: next };
      await studio.client.backends.updateWeights.mutate({ name, version: 'next', source });
      faults.msPerToken = 0;
      const rows = await rowsOf(runId);
      const { redone } = await get(runId);
      const behind = 'Its first tokens came from weights default, 1 update ago; this run takes at most 0.';
      const dropped = rows.filter(({ errorMessage }) => errorMessage === behind);
      if (stale === 'redo') {
        expect(redone).toBeGreaterThan(0);
        expect(rows.map(({ status }) => status)).toEqual(rows.map(() => expect.stringMatching(/completed|truncated/)));
        for (const { trajectoryId } of rows) expect(await weightsOf(trajectoryId)).toHaveLength(1);
      } else {
        expect(redone).toBe(0);
        expect(dropped.length).toBeGreaterThan(0);
        expect(dropped.map(({ status, reward }) => [status, reward])).toEqual(dropped.map(() => ['cancelled', null]));
        for (const { trajectoryId } of dropped) expect(await weightsOf(trajectoryId)).toEqual(['default', 'next']);
      }
    },
  );

  it('begins a trajectory anew three times, and drops it when the weights move faster than it can end', async () => {
    const { faults } = twinOf('one');
    faults.msPerToken = 25;
    const runId = await start('one', { maxStaleness: 0, stale: 'redo', tasks: 4 });
    const asked = () => twinOf('one').log.filter(({ path }) => path === '/generate').length;
    const source = { kind: 'external' as const };
    for (let moved = 0; (await get(runId)).finishedAtMs === null; moved++) {
      const before = asked();
      await until(runId, ({ finishedAtMs }) => finishedAtMs !== null || asked() > before);
      await studio.client.backends.updateWeights.mutate({ name: 'one', version: `moved-${moved}`, source });
    }
    const rows = await rowsOf(runId);
    const details = await Promise.all(
      rows.map(({ trajectoryId }) => studio.client.trajectories.get.query({ trajectoryId })),
    );
    expect(Math.max(...details.map(({ redone }) => redone))).toBe(3);
    const dropped = details.filter(({ status }) => status === 'cancelled');
    expect(dropped.length).toBeGreaterThan(0);
    expect(dropped.map(({ redone }) => redone)).toEqual(dropped.map(() => 3));
    for (const { endReason } of dropped) expect(endReason).toContain('this run takes at most 0');
  });

  it('waits while its server is away, says why, and goes on; answers of 503 or cut in the middle cost it nothing', async () => {
    const twin = twinOf('other');
    Object.assign(twin.faults, { msPerToken: 5, routes: ['/generate'], unavailableNext: 3 });
    const runId = await start('other');
    const asked = () => twin.log.filter(({ path }) => path === '/generate').length;
    await until(runId, ({ generatedTokens }) => generatedTokens > 0);
    const before = asked();
    twin.faults.cutBody = true;
    while (asked() < before + 2) await new Promise((settle) => setTimeout(settle, 2));
    twin.faults.cutBody = false;
    await twin.kill();
    const waiting = await until(runId, ({ notices }) => notices.some((notice) => notice.startsWith('This run waits')));
    expect(waiting.status).toBe('running');
    expect(waiting.notices.at(-1)).toContain(twin.url);
    await twin.restart();
    twin.faults.msPerToken = 0;
    for (const { trajectoryId } of await studio.ended(runId, HANG_MS)) {
      const { ids, mask, logprobs, stepIndex } = await studio.tokensOf(trajectoryId);
      expect([mask.length, logprobs.length, stepIndex.length]).toEqual(Array(3).fill(ids.length));
      expect(Array.from(logprobs, Number.isNaN)).toEqual(Array.from(mask, (sampled) => sampled === 0));
    }
    expect((await get(runId)).notices).toEqual([]);
  });

  it.each([
    // As when its GPU has stopped: what needs no engine is still answered.
    ['generations', ['/generate', '/health']],
    ['anything', null],
  ])(
    'goes on with its other server when one takes requests and no longer answers %s; nothing is lost or doubled',
    async (_what, routes) => {
      // Of its own: none is asked for anything but this run.
      const pair = [await startTwin(), await startTwin()] as const;
      const [hung, other] = pair;
      const name = routes ? 'hanging' : 'silent';
      await studio.client.backends.add.mutate({ name, kind: 'auto', urls: pair.map(({ url }) => url) });
      for (const { log, faults } of pair) {
        log.length = 0;
        faults.msPerToken = 5;
      }
      // It has these from when it is opened, with its first run.
      const usual = { ...REPLICA_TIMES };
      Object.assign(REPLICA_TIMES, { lookMs: 200, answerMs: 2_000, hungMs: 2_000 });
      const runId = await start(name).finally(() => Object.assign(REPLICA_TIMES, usual));
      const generations = ({ log }: Twin, status: number) =>
        log.filter((logged) => logged.path === '/generate' && logged.status === status).length;
      await expect.poll(() => generations(hung, 200), { timeout: HANG_MS, interval: 2 }).toBeGreaterThan(0);
      Object.assign(hung.faults, { hang: true, routes });
      const rows = await studio.ended(runId, HANG_MS);
      const { replicas, health } = await studio.client.backends.get.query({ name });
      expect(replicas.map(({ state }) => state)).toEqual(['down', 'healthy']);
      expect(health.message).toContain(hung.url);
      expect(new Set(rows.map(({ trajectoryId }) => trajectoryId)).size).toBe(8);
      const all = await Promise.all(rows.map(({ trajectoryId }) => studio.tokensOf(trajectoryId)));
      for (const tokens of all) {
        const [before = 0, after = 0] = answeredFor(tokens, pair);
        expect(after).toBeLessThanOrEqual(turnsOf(tokens));
        expect(before + after).toBeGreaterThanOrEqual(turnsOf(tokens));
        expect(Array.from(tokens.logprobs, Number.isNaN)).toEqual(Array.from(tokens.mask, (one) => one === 0));
      }
      const sum = (numbers: number[]) => numbers.reduce((total, one) => total + one, 0);
      expect((await get(runId)).generatedTokens).toBe(sum(all.flatMap(({ mask }) => [...mask])));
      if (!routes) return;
      // Some were given up there, and some trajectories have turns of both; what was answered is a turn each.
      expect(generations(hung, -1)).toBeGreaterThan(0);
      expect(all.filter((tokens) => !answeredFor(tokens, pair).includes(0)).length).toBeGreaterThan(0);
      expect(generations(hung, 200) + generations(other, 200)).toBe(sum(all.map(turnsOf)));
    },
  );

  it.each([-9999, 0.5, Number.MAX_VALUE])(
    'keeps no token whose number is no log-probability, and names trajectory, position and value: %d',
    async (logprob) => {
      twinOf('one').faults.logprob = logprob;
      const rows = await rowsOf(await start('one', { tasks: 2 }));
      expect(rows).toHaveLength(2);
      for (const { trajectoryId, status, reward, errorMessage } of rows) {
        expect({ status, reward }).toEqual({ status: 'failed', reward: null });
        const { ids, mask } = await studio.tokensOf(trajectoryId);
        expect(mask).not.toContain(1);
        // The second token that was sampled. A number too large for 32 bits is infinite.
        expect(errorMessage).toContain(
          `The log-probability ${Math.fround(logprob)} at token ${ids.length + 1} of trajectory ${trajectoryId} is none`,
        );
      }
    },
  );
});
