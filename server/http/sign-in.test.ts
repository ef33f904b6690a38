import { request } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openTestApp, type TestApp } from './testing/open-test-app';

let app: TestApp;
beforeAll(async () => {
  app = await openTestApp({ pages: async (_req, res) => void res.end('a page') });
});
afterAll(() => app.close());

const post = (path: string, body: unknown, headers: Record<string, string> = {}) =>
  fetch(`${app.url}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', origin: app.url, ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });

it('refuses an address that cannot be decoded before anything else reads it', async () => {
  expect((await getAs('/runs/%zz', {})).status).toBe(400);
});

/** fetch does not let a caller choose Host. */
function getAs(
  path: string,
  headers: Record<string, string>,
): Promise<{ status: number; headers: NodeJS.Dict<string | string[]> }> {
  return new Promise((resolve, reject) => {
    const req = request({ host: '127.0.0.1', port: app.port, path, headers }, (res) => {
      res.resume();
      res.on('end', () => resolve({ status: res.statusCode ?? 0, headers: res.headers }));
    });
    req.on('error', reject).end();
  });
}

describe('signing in', () => {
  it('takes a token once, gives a cookie that scripts cannot read, and knows who came', async () => {
    const { secret } = await app.person('operator', 'one_time');
    const res = await post('/api/sign-in', { token: secret });
    expect(res.status).toBe(200);
    const cookie = res.headers.get('set-cookie') ?? '';
    expect(cookie).toMatch(/^studio_sign_in_\d+=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict; Max-Age=\d+$/);
    const headers = { cookie: cookie.split(';')[0] ?? '' };
    expect((await fetch(`${app.url}/`, { headers, redirect: 'manual' })).status).toBe(200);
    expect((await post('/api/sign-in', { token: secret })).status).toBe(401);

    const out = await post('/api/sign-out', {}, headers);
    expect(out.headers.get('set-cookie')).toContain('Max-Age=0');
    expect((await fetch(`${app.url}/`, { headers, redirect: 'manual' })).status).toBe(303);
  });

  it('lets one of two in who come with one token at once', async () => {
    for (let round = 0; round < 3; round++) {
      const { secret } = await app.person('viewer', 'one_time');
      const answers = await Promise.all([
        post('/api/sign-in', { token: secret }),
        post('/api/sign-in', { token: secret }),
      ]);
      expect(answers.map((res) => res.status).sort()).toEqual([200, 401]);
    }
  });

  it('takes no cookie secret as a token, no token as a bearer, and nothing that is over', async () => {
    const browser = await app.person('admin', 'browser');
    expect((await fetch(`${app.url}/api/metrics`, { headers: browser.bearer })).status).toBe(401);
    const oneTime = await app.person('admin', 'one_time');
    expect((await fetch(`${app.url}/api/metrics`, { headers: oneTime.bearer })).status).toBe(401);
    const program = await app.person('viewer');
    expect((await fetch(`${app.url}/api/metrics`, { headers: program.bearer })).status).toBe(200);
  });

  it('sends people without a sign-in to the page for it, and brings them back', async () => {
    const res = await fetch(`${app.url}/runs?status=failed`, { redirect: 'manual' });
    expect(res.status).toBe(303);
    expect(res.headers.get('location')).toBe('/sign-in?next=%2Fruns%3Fstatus%3Dfailed');
    expect((await fetch(`${app.url}/sign-in?token=x`, { redirect: 'manual' })).status).toBe(200);
    expect((await fetch(`${app.url}/_next/static/x.js`, { redirect: 'manual' })).status).toBe(200);
    expect((await fetch(`${app.url}/favicon.ico`)).status).toBe(200);
  });

  it('asks a browser that comes from another site to come by itself, with the address as text only', async () => {
    const headers = { 'sec-fetch-site': 'cross-site', host: `127.0.0.1:${app.port}` };
    expect((await getAs('/runs?x=%22', headers)).status).toBe(200);
    const res = await fetch(`${app.url}/runs?a="><script>alert(1)</script>`, {
      headers: { 'sec-fetch-site': 'cross-site' },
    });
    expect(await res.text()).not.toContain('<script');
  });

  it('answers health without a sign-in and nothing else', async () => {
    expect(await (await fetch(`${app.url}/healthz`)).json()).toEqual({ ok: true });
    for (const path of [
      '/api/metrics',
      '/api/runs/x/export',
      '/api/outputs/x',
      '/api/trajectories/x/tokens',
      '/api/other',
    ])
      expect((await fetch(`${app.url}${path}`)).status).toBe(401);
  });
});

describe('requests from elsewhere', () => {
  it('refuses a Host that is not ours', async () => {
    expect((await getAs('/sign-in', { host: 'evil.example' })).status).toBe(403);
    expect((await getAs('/sign-in', { host: `evil.example:${app.port}` })).status).toBe(403);
    expect((await getAs('/healthz', { host: 'evil.example' })).status).toBe(200);
    expect((await getAs('/sign-in', { host: `localhost:${app.port}` })).status).toBe(200);
  });

  it('refuses a change that a foreign page, or nobody known, sent', async () => {
    const { secret } = await app.person('viewer', 'one_time');
    for (const headers of [
      { origin: 'http://evil.example' },
      { origin: 'null' },
      { origin: `http://127.0.0.1:${app.port + 1}` },
    ] as Record<string, string>[])
      expect((await post('/api/sign-in', { token: secret }, headers)).status).toBe(403);
    const nameless = await fetch(`${app.url}/api/sign-in`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ token: secret }),
    });
    expect(nameless.status).toBe(403);
    expect((await post('/api/sign-in', { token: secret })).status).toBe(200);
  });

  it('says on every answer what a browser may do with it', async () => {
    for (const path of ['/healthz', '/sign-in', '/api/metrics', '/runs', '/nothing']) {
      const { headers } = await fetch(`${app.url}${path}`, { redirect: 'manual' });
      expect(headers.get('x-content-type-options')).toBe('nosniff');
      expect(headers.get('referrer-policy')).toBe('no-referrer');
      expect(headers.get('content-security-policy')).toContain("frame-ancestors 'none'");
    }
    const first = (await fetch(`${app.url}/sign-in`)).headers.get('content-security-policy') ?? '';
    const second = (await fetch(`${app.url}/sign-in`)).headers.get('content-security-policy') ?? '';
    expect(first).toMatch(/script-src 'self' 'nonce-[\w+/=]{24}' 'strict-dynamic';/);
    expect(first).not.toBe(second);
  });
});

describe('hostile input', () => {
  it('refuses bodies that are huge, no JSON, or of another type, and goes on', async () => {
    const other = await openTestApp();
    const send = (body: string, type = 'application/json') =>
      fetch(`${other.url}/api/sign-in`, {
        method: 'POST',
        headers: { 'content-type': type, origin: other.url },
        body,
      });
    expect((await send('x'.repeat(100_000))).status).toBe(400);
    expect((await send('{')).status).toBe(400);
    expect((await send('token=x', 'application/x-www-form-urlencoded')).status).toBe(400);
    expect((await send('{"token":{"$ne":1}}')).status).toBe(400);
    expect((await fetch(`${other.url}/healthz`)).status).toBe(200);
    await other.close();
  });

  it('slows down whoever guesses', async () => {
    const other = await openTestApp();
    const guess = () =>
      fetch(`${other.url}/api/sign-in`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', origin: other.url },
        body: JSON.stringify({ token: 'x'.repeat(43) }),
      });
    const statuses: number[] = [];
    for (let i = 0; i < 12; i++) statuses.push((await guess()).status);
    expect(statuses.slice(0, 10)).toEqual(Array.from({ length: 10 }, () => 401));
    expect(statuses.slice(10)).toEqual([429, 429]);
    await other.close();
  });

  it('finds nothing outside its addresses', async () => {
    const { bearer } = await app.person('admin');
    for (const id of ['..%2f..%2fetc%2fpasswd', '%00', '%ff', 'a'.repeat(5000), "x'%20or%201=1"]) {
      const res = await fetch(`${app.url}/api/outputs/${id}`, { headers: bearer });
      expect([400, 404]).toContain(res.status);
      expect(JSON.stringify(await res.json())).not.toContain('SELECT');
    }
    expect((await getAs('//evil.example/x', { host: `127.0.0.1:${app.port}` })).status).toBe(400);
    expect((await getAs('http://evil.example/x', { host: `127.0.0.1:${app.port}` })).status).toBe(400);
  });
});
