/** Getting in, being kept out, and leaving. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Page } from '@playwright/test';
import WebSocket from 'ws';
import { dataDir, everyPage, expect, open, studioUrl, test } from './journey';
import { root } from './server';

const nobody = { cookies: [], origins: [] };

async function newAddress(...options: string[]): Promise<string> {
  const { stdout } = await promisify(execFile)(
    process.execPath,
    [join(root, 'dist', 'cli.js'), 'sign-in', ...options],
    {
      env: { ...process.env, NODE_ENV: 'production', STUDIO_DATA_DIR: dataDir() },
    },
  );
  return stdout.trim();
}

/** The upgrade's outcome: 101, or the status it was refused with. */
function upgrade(headers: Record<string, string>): Promise<number> {
  return new Promise((resolve, reject) => {
    const socket = new WebSocket(`${studioUrl().replace('http', 'ws')}/api/ws`, { headers });
    socket.on('open', () => {
      resolve(101);
      socket.close();
    });
    socket.on('unexpected-response', (_, answer) => {
      resolve(answer.statusCode ?? 0);
      answer.resume();
    });
    socket.on('error', reject);
  });
}

async function cookieOf(page: Page): Promise<string> {
  return (await page.context().cookies()).map(({ name, value }) => `${name}=${value}`).join('; ');
}

test.describe('someone who is not signed in', () => {
  test.use({ storageState: nobody });

  test('is led to the sign-in page from every page, and comes back after signing in', async ({ page, finished }) => {
    for (const path of everyPage(finished)) {
      const answer = await page.request.get(path, { maxRedirects: 0 });
      expect(answer.status(), path).toBe(303);
      expect(answer.headers().location).toBe(path === '/' ? '/sign-in' : `/sign-in?next=${encodeURIComponent(path)}`);
    }
    const wanted = `/runs/${finished.runId}?sort=reward`;
    await page.goto(wanted);
    await expect(page.getByRole('heading', { name: 'Sign in' })).toBeVisible();
    await page.getByLabel('Address or token').fill(await newAddress());
    await page.getByRole('button', { name: 'Sign in' }).click();
    await expect(page).toHaveURL(wanted);
    await expect(page.getByRole('heading', { name: finished.name })).toBeVisible();
  });

  test('hears that the studio is well and gets nothing else', async ({ request, finished }) => {
    expect(await (await request.get('/healthz')).json()).toEqual({ ok: true });
    const trajectory = finished.trajectoryIds[0];
    for (const path of [
      '/api/trpc/runs.list?input=%7B%22json%22%3A%7B%7D%7D',
      '/api/trpc/viewer.me',
      `/api/trajectories/${trajectory}/tokens?sequence=0`,
      `/api/runs/${finished.runId}/export`,
      '/api/outputs/out_00000000000000000000000000',
      '/api/metrics',
    ]) {
      const answer = await request.get(path, { maxRedirects: 0 });
      expect(answer.status(), path).toBe(401);
      expect(await answer.text()).not.toContain(finished.name);
    }
    expect(await upgrade({ origin: studioUrl() })).toBe(401);
  });
});

test.describe('a sign-in address', () => {
  test.use({ storageState: nobody });

  test('opens the studio once, says so the second time, and signing out ends it', async ({ page, browser, watch }) => {
    watch.allow(/status of 401/);
    const address = await newAddress('--next', '/datasets');
    await page.goto(address);
    await expect(page).toHaveURL('/datasets');
    await expect(page.getByRole('heading', { name: 'Datasets' })).toBeVisible();
    expect(await page.evaluate(() => document.cookie)).not.toContain('studio_sign_in');

    const second = await browser.newContext({ baseURL: studioUrl(), storageState: nobody });
    watch.over(second);
    const again = await second.newPage();
    await again.goto(address);
    await expect(again.locator('main').getByRole('alert')).toContainText('Not signed in');
    await expect(again.locator('main').getByRole('alert')).toContainText(/once|used|over/i);
    expect(again.url()).not.toContain('token=');
    await second.close();

    const cookie = await cookieOf(page);
    expect(await upgrade({ cookie, origin: studioUrl() })).toBe(101);
    await page.getByRole('button', { name: 'Sign out' }).click();
    await expect(page.getByRole('heading', { name: 'Sign in' })).toBeVisible();
    await page.goto('/runs');
    await expect(page).toHaveURL(/\/sign-in\?next=%2Fruns$/);
    // The secret itself is dead, not only forgotten by this browser.
    expect((await page.request.get('/api/trpc/viewer.me', { headers: { cookie } })).status()).toBe(401);
    expect(await upgrade({ cookie, origin: studioUrl() })).toBe(401);
  });
});

test('pages of other sites can neither change anything nor listen', async ({ page, finished, client }) => {
  await open(page, '/');
  const cookie = await cookieOf(page);
  const before = (await client.runs.list.query({})).total;
  const start = {
    data: { json: { skill: 'tutorial', dataset: 'tutorial', tasks: 1, groupSize: 1 } },
    headers: { origin: 'http://elsewhere.example' },
  };
  const foreign: Record<string, string>[] = [
    { origin: 'http://elsewhere.example' },
    { origin: 'null' },
    { 'sec-fetch-site': 'cross-site' },
  ];
  const refused = await page.request.post('/api/trpc/runs.start', start);
  expect(refused.status()).toBe(403);
  expect(await refused.text()).toContain('elsewhere.example');
  for (const path of ['/api/sign-out', '/api/sign-in', '/api/trpc/runs.cancel']) {
    for (const headers of foreign)
      expect((await page.request.post(path, { data: {}, headers })).status(), path).toBe(403);
  }
  expect(await upgrade({ cookie, origin: 'http://elsewhere.example' })).toBe(403);
  expect(await upgrade({ cookie })).toBe(403);
  expect((await client.runs.list.query({})).total).toBe(before);
  expect((await page.request.get(`/runs/${finished.runId}`)).status()).toBe(200);
});

test('every answer carries the headers that keep a page safe', async ({ page, finished }) => {
  const nonces = new Set<string>();
  for (const path of everyPage(finished)) {
    const answer = await page.goto(path);
    const headers = answer?.headers() ?? {};
    const policy = headers['content-security-policy'] ?? '';
    const nonce = /script-src 'self' 'nonce-([^']{20,})' 'strict-dynamic'/.exec(policy)?.[1] ?? '';
    expect(nonce, path).not.toBe('');
    nonces.add(nonce);
    expect(policy).not.toContain('unsafe-eval');
    expect(policy).toContain("frame-ancestors 'none'");
    expect(policy).toContain("object-src 'none'");
    expect(headers).toMatchObject({
      'x-content-type-options': 'nosniff',
      'x-frame-options': 'DENY',
      'referrer-policy': 'no-referrer',
    });
    await expect(page.getByRole('heading', { level: 1 }).first()).toBeVisible();
  }
  expect(nonces.size).toBe(everyPage(finished).length);
  for (const path of [`/api/runs/${finished.runId}/export`, '/healthz', '/api/nothing']) {
    const headers = (await page.request.get(path)).headers();
    expect(headers['content-security-policy'], path).toContain("default-src 'none'");
    expect(headers['x-content-type-options']).toBe('nosniff');
  }
});
