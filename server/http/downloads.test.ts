import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { appendEvents } from '../../db/queries/events';
import { insertToolOutput } from '../../db/queries/tool-outputs';
import { claimTrajectories, finishTrajectory } from '../../db/queries/trajectories';
import type { TokenChunk } from '../core/tokens/chunk';
import { decodeTokens } from '../core/tokens/wire';
import type { LogprobKind } from '../core/vocabulary';
import { settleGroup } from '../rollout/settle';
import { countExported } from '../services/runs/export-run';
import { insertTestRun, type TestRun } from '../services/testing/insert-test-run';
import { openTestApp, type TestApp } from './testing/open-test-app';

let app: TestApp;
let run: TestRun;
let bearer: { authorization: string };
beforeAll(async () => {
  app = await openTestApp();
  const operator = await app.person('operator');
  run = await insertTestRun(operator.ctx);
  bearer = (await app.person('viewer')).bearer;
});
afterAll(() => app.close());

function tokens(n: number): TokenChunk {
  return {
    ids: Int32Array.from({ length: n }, (_, i) => i),
    logprobs: new Float32Array(n).fill(-0.5),
    mask: new Uint8Array(n).fill(1),
    stepIndex: new Int32Array(n),
    segment: new Uint8Array(n).fill(2),
    bytes: new Uint8Array(n).fill(97),
    byteEnds: Uint32Array.from({ length: n }, (_, i) => i + 1),
  };
}

const get = (path: string, headers: Record<string, string> = {}) =>
  fetch(`${app.url}${path}`, { headers: { ...bearer, ...headers } });

interface SequenceFacts {
  logprobKind: LogprobKind;
  truncated: boolean;
  approximate: boolean;
}
const EXACT: SequenceFacts = { logprobKind: 'raw', truncated: false, approximate: false };

/** Ends what is queued; `facts` of one trajectory after the other, then exact ones. */
async function finishAll(length: number, facts: readonly Partial<SequenceFacts>[] = []): Promise<void> {
  const { db } = app.services.database;
  const nowMs = app.services.ambient.now();
  const claims = await claimTrajectories(db, { workerId: 'w', limit: 100, nowMs, leaseMs: 60_000 });
  for (const [at, { trajectoryId }] of claims.entries()) {
    const sequence = { ...tokens(length), index: 0, weightVersions: [], policyLogprobs: null, refLogprobs: null };
    await db.transaction((tx) =>
      finishTrajectory(tx, {
        trajectoryId,
        workerId: 'w',
        status: 'completed',
        nowMs,
        stepRewards: [1],
        stepComponents: [{}],
        stateKeys: ['k'],
        reward: 1,
        rewardComponents: {},
        success: true,
        endReason: 'answer',
        error: null,
        toolFailures: {},
        sandboxLevels: [],
        humanEdited: false,
        sequences: [{ sequence, ...EXACT, ...facts[at] }],
      }),
    );
  }
}

describe('downloads', () => {
  it('sends the tokens of a running trajectory as far as they are, and of an ended one as they stay', async () => {
    const member = run.groups[0]?.members[0];
    const path = `/api/trajectories/${member?.trajectoryId}/tokens?sequence=0`;
    expect(decodeTokens(await (await get(path)).arrayBuffer()).ids).toHaveLength(0);
    const common = { atMs: 1, sessionId: member?.sessionId ?? '', runId: run.runId };
    await appendEvents(app.services.database.db, [
      { ...common, seq: 0, type: 'prompt.rendered', data: { sequenceIndex: 0 }, tokens: tokens(3) },
      { ...common, seq: 1, type: 'generation.completed', data: { stepNumber: 0, text: 'aa' }, tokens: tokens(2) },
    ]);
    const running = await get(path);
    expect(running.headers.get('x-tokens-final')).toBe('0');
    expect([...decodeTokens(await running.arrayBuffer()).ids]).toEqual([0, 1, 2, 0, 1]);
    expect((await get(`/api/trajectories/${member?.trajectoryId}/tokens?sequence=1`)).status).toBe(404);
    expect((await get(`/api/trajectories/${member?.trajectoryId}/tokens?sequence=-1`)).status).toBe(400);

    await finishAll(5);
    const ended = await get(path);
    expect(ended.headers.get('x-tokens-final')).toBe('1');
    expect(ended.headers.get('content-type')).toBe('application/octet-stream');
    expect(decodeTokens(await ended.arrayBuffer()).ids).toHaveLength(5);
    expect((await get(path, { 'if-none-match': ended.headers.get('etag') ?? '' })).status).toBe(304);
  });

  it('exports every ended trajectory as a line, to be saved', async () => {
    const res = await get(`/api/runs/${run.runId}/export`);
    expect(res.headers.get('content-disposition')).toBe(`attachment; filename="${run.runId}.jsonl"`);
    const lines = (await res.text())
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(lines).toHaveLength(4);
    expect(lines[0]).toMatchObject({ run_id: run.runId, status: 'completed', token_ids: [0, 1, 2, 3, 4] });
    expect((await get(`/api/runs/${app.services.ambient.newId('run')}/export`)).status).toBe(404);
    expect((await get('/api/runs/..%2f..%2fx/export')).status).toBe(404);
  });

  it('leaves out of an export what no loss can be exact with, counts it, and takes it in when asked to', async () => {
    const operator = await app.person('operator');
    const mixed = await insertTestRun(operator.ctx, { groupSize: 6 });
    await finishAll(4, [
      { logprobKind: 'sampled' },
      { logprobKind: 'constrained' },
      { logprobKind: 'unknown' },
      { approximate: true },
      { approximate: true, logprobKind: 'sampled' },
    ]);
    const read = async (query: string) => {
      const text = await (await get(`/api/runs/${mixed.runId}/export${query}`)).text();
      return text.split('\n').filter((line) => line !== '');
    };
    const trajectories = mixed.groups.reduce((sum, group) => sum + group.members.length, 0);
    const exact = await read('');
    expect(exact).toHaveLength(trajectories - 5);
    for (const line of exact) expect(JSON.parse(line)).toMatchObject({ logprob_kind: 'raw', approximate: false });
    const all = (await read('?all=1')).map((line) => JSON.parse(line) as { logprob_kind: string });
    expect(all).toHaveLength(trajectories);
    expect(new Set(all.map((line) => line.logprob_kind))).toEqual(
      new Set(['raw', 'sampled', 'constrained', 'unknown']),
    );
    expect(await countExported({ ctx: operator.ctx, input: { runId: mixed.runId } })).toEqual({
      sequences: trajectories,
      approximate: 2,
      notRaw: 3,
      withoutSignal: 0,
      unfinished: 0,
    });
  });

  it('leaves groups without signal out where the run says so, counts them, and takes them in when asked to', async () => {
    const operator = await app.person('operator');
    const run = await insertTestRun(operator.ctx, { groupSize: 2, options: { dropNoSignal: true } });
    await finishAll(4);
    const { db } = app.services.database;
    // Equal rewards in every group: no advantage says anything.
    for (const group of run.groups) await db.transaction((tx) => settleGroup(tx, group.groupId, 1));
    const lines = async (query: string) =>
      (await (await get(`/api/runs/${run.runId}/export${query}`)).text()).split('\n').length - 1;
    const trajectories = run.groups.reduce((sum, group) => sum + group.members.length, 0);
    expect(await lines('')).toBe(0);
    expect(await lines('?all=1')).toBe(trajectories);
    expect(await countExported({ ctx: operator.ctx, input: { runId: run.runId } })).toMatchObject({
      sequences: trajectories,
      withoutSignal: trajectories,
    });
  });

  it('breaks the connection when an export fails in the middle, so that it never looks whole', async () => {
    const original = app.services.database.db.select;
    let selects = 0;
    // The real database, which goes away after the first page.
    app.services.database.db.select = ((...args: Parameters<typeof original>) => {
      if (++selects > 4) throw new Error('the database went away');
      return original.apply(app.services.database.db, args);
    }) as typeof original;
    try {
      const operator = await app.person('operator');
      const large = await insertTestRun(operator.ctx, { groupSize: 40 });
      selects = -1_000_000;
      await finishAll(20);
      selects = 0;
      const res = await get(`/api/runs/${large.runId}/export`);
      expect(res.status).toBe(200);
      await expect(res.text()).rejects.toThrow();
    } finally {
      app.services.database.db.select = original;
    }
  });

  it('stops reading when the reader goes away', async () => {
    const operator = await app.person('operator');
    const large = await insertTestRun(operator.ctx, { groupSize: 30 });
    await finishAll(20_000);
    await new Promise<void>((resolve, reject) => {
      const socket = connect(app.port, '127.0.0.1', () => {
        socket.write(
          `GET /api/runs/${large.runId}/export HTTP/1.1\r\nHost: 127.0.0.1:${app.port}\r\nAuthorization: ${bearer.authorization}\r\n\r\n`,
        );
      });
      socket.once('data', () => {
        socket.destroy();
        resolve();
      });
      socket.once('error', reject);
    });
    expect((await get('/healthz')).status).toBe(200);
  });

  it('gives a whole tool output as text to be saved, never as a page', async () => {
    const id = app.services.ambient.newId('out');
    const content = new TextEncoder().encode('<script>alert(1)</script>\u0000');
    await insertToolOutput(app.services.database.db, { id, sessionId: 's', content });
    const res = await get(`/api/outputs/${id}`);
    expect(res.headers.get('content-type')).toBe('text/plain; charset=utf-8');
    expect(res.headers.get('content-disposition')).toBe(`attachment; filename="${id}.txt"`);
    expect(res.headers.get('content-security-policy')).toContain('sandbox');
    expect(new Uint8Array(await res.arrayBuffer())).toEqual(content);
  });

  it('shows metrics without ids or names in their labels', async () => {
    const text = await (await get('/api/metrics')).text();
    expect(text).toContain('studio_http_request_seconds_count{route="runs/export",status="200"}');
    expect(text).not.toContain(run.runId);
  });
});
