import { createTRPCClient, createWSClient, type TRPCClient, wsLink } from '@trpc/client';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { appendEvents } from '../../db/queries/events';
import { transformer } from '../core/transformer';
import type { RunFeedEntry } from '../core/views';
import { openTestApp, type TestApp } from '../http/testing/open-test-app';
import type { AppRouter } from '../routers/app-router';
import { insertTestRun, type TestRun } from '../services/testing/insert-test-run';

let app: TestApp;
let run: TestRun;
let cookie: string;
beforeAll(async () => {
  app = await openTestApp();
  const operator = await app.person('operator');
  run = await insertTestRun(operator.ctx);
  cookie = `studio_sign_in_${app.port}=${(await app.person('viewer', 'browser')).secret}`;
});
afterAll(() => app.close());

/** A socket with headers, as a browser sends them. */
function socketWith(headers: Record<string, string>) {
  return class extends WebSocket {
    constructor(url: string) {
      super(url, { headers });
    }
  } as unknown as typeof globalThis.WebSocket;
}

const url = () => `${app.url.replace('http', 'ws')}/api/ws`;

function connect(headers: Record<string, string> = { cookie, origin: app.url }) {
  const ws = createWSClient({ url: url(), WebSocket: socketWith(headers), retryDelayMs: () => 10 });
  return { ws, client: createTRPCClient<AppRouter>({ links: [wsLink({ client: ws, transformer })] }) };
}

const nextSeqOf = new Map<string, number>();
async function write(count: number, notify = true): Promise<void> {
  const sessionId = run.groups[0]?.members[0]?.sessionId ?? '';
  const start = nextSeqOf.get(sessionId) ?? 0;
  const rows = Array.from({ length: count }, (_, i) => ({
    seq: start + i,
    atMs: 1_750_000_000_000,
    type: 'step.completed',
    data: { step_number: start + i, reward: 0.25, reasoning: 'secret thought' },
    sessionId,
    runId: run.runId,
  }));
  nextSeqOf.set(sessionId, start + count);
  await appendEvents(app.services.database.db, rows);
  if (notify) app.runLog.grew(run.runId);
}

/** Follows until `want` entries are there. */
function follow(
  client: TRPCClient<AppRouter>,
  seen: RunFeedEntry[],
  want: () => number,
  lastEventId?: string,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const subscription = client.runs.feed.subscribe(
      { runId: run.runId, lastEventId },
      {
        onData: ({ data }) => {
          seen.push(...data);
          if (seen.length < want()) return;
          subscription.unsubscribe();
          resolve();
        },
        onError: reject,
      },
    );
  });
}

describe("a run's feed over a WebSocket", () => {
  it('loses and repeats nothing while sockets are dropped under the reader', async () => {
    const { ws, client } = connect();
    const seen: RunFeedEntry[] = [];
    const total = 900;
    const following = follow(client, seen, () => total);
    for (let i = 0; i < 9; i++) {
      await write(100, i % 2 === 0);
      // The server ends the socket in the middle; the client comes back with the id of the last batch it has.
      if (i % 3 === 1) for (const socket of app.webSockets()) socket.terminate();
      await new Promise((resolve) => setTimeout(resolve, 15));
    }
    await following;
    expect(seen.map((entry) => entry.seq)).toEqual(Array.from({ length: total }, (_, i) => i));
    expect(seen[0]).toMatchObject({ type: 'step.completed', stepNumber: 0, reward: 0.25 });
    expect(JSON.stringify(seen)).not.toContain('secret thought');
    await ws.close();
  });

  it('goes on from where a reader was, after everything was restarted', async () => {
    const before = nextSeqOf.values().next().value ?? 0;
    await write(150, false);
    const { ws, client } = connect();
    const seen: RunFeedEntry[] = [];
    await follow(client, seen, () => 150, String(before - 1));
    expect(seen.map((entry) => entry.seq)).toEqual(Array.from({ length: 150 }, (_, i) => before + i));
    await ws.close();
  });

  it('says that a run is not there', async () => {
    const { ws, client } = connect();
    const runId = app.services.ambient.newId('run');
    const error = await new Promise<Error>((resolve) => {
      client.runs.feed.subscribe({ runId }, { onError: resolve });
    });
    expect(error.message).toBe(`There is no run ${runId}.`);
    await ws.close();
  });
});

describe('the upgrade to a WebSocket', () => {
  const attempt = (headers: Record<string, string>, path = '/api/ws') =>
    new Promise<number>((resolve, reject) => {
      const socket = new WebSocket(`${app.url.replace('http', 'ws')}${path}`, { headers });
      socket.on('open', () => {
        socket.close();
        resolve(101);
      });
      socket.on('unexpected-response', (_req, res) => {
        res.resume();
        resolve(res.statusCode ?? 0);
      });
      socket.on('error', reject);
    });

  it('is for people who are signed in, from our own pages, at our own address', async () => {
    const origin = app.url;
    expect(await attempt({ cookie, origin })).toBe(101);
    expect(await attempt({ origin })).toBe(401);
    expect(await attempt({ cookie })).toBe(403);
    expect(await attempt({ cookie, origin: 'http://evil.example' })).toBe(403);
    expect(await attempt({ cookie, origin: `http://127.0.0.1:${app.port + 1}` })).toBe(403);
    expect(await attempt({ cookie, origin, host: 'evil.example' })).toBe(403);
    expect(await attempt({ cookie, origin }, '/api/other')).toBe(404);
    expect(await attempt((await app.person('viewer')).bearer)).toBe(101);
  });

  it('ends a socket that sends too much, and its sockets when someone signs out', async () => {
    const { secret } = await app.person('viewer', 'browser');
    const own = `studio_sign_in_${app.port}=${secret}`;
    const closed = (socket: WebSocket) => new Promise<number>((resolve) => socket.on('close', resolve));
    const opened = (socket: WebSocket) => new Promise((resolve) => socket.on('open', resolve));
    const big = new WebSocket(url(), { headers: { cookie: own, origin: app.url } });
    await opened(big);
    big.send('x'.repeat(300_000));
    expect(await closed(big)).toBe(1009);
    const quiet = new WebSocket(url(), { headers: { cookie: own, origin: app.url } });
    await opened(quiet);
    const end = closed(quiet);
    await fetch(`${app.url}/api/sign-out`, { method: 'POST', headers: { cookie: own, origin: app.url } });
    expect(await end).toBe(4401);
  });
});
