/**
 * Measures the token view in a real browser without a GPU: `npx tsx e2e/token-view.bench.ts`.
 * Prints one JSON object a size: milliseconds from asking for the data to the first painted text, frames a second
 * while scrolling fast, the longest task that held the page, and milliseconds until everything is laid out.
 * `--shots DIR` also writes pictures.
 */
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { join } from 'node:path';
import { type Browser, chromium } from '@playwright/test';
import tailwind from '@tailwindcss/postcss';
import { build } from 'esbuild';
import postcss, { type AcceptedPlugin } from 'postcss';
import type {} from './token-view-page';
import { makeTokens } from './token-view-tokens';

const ROOT = new URL('..', import.meta.url).pathname;
const SYSTEM_BROWSER = '/usr/bin/chromium';

async function bundle(): Promise<{ script: string; style: string }> {
  const built = await build({
    entryPoints: [join(ROOT, 'e2e/token-view-page.tsx')],
    bundle: true,
    write: false,
    format: 'esm',
    jsx: 'automatic',
    minify: true,
    define: { 'process.env.NODE_ENV': '"production"' },
    alias: { '@': ROOT },
    logLevel: 'error',
  });
  const sheet = join(ROOT, 'app/globals.css');
  // The plugin's types come from another copy of postcss.
  const plugins = [tailwind()] as unknown as AcceptedPlugin[];
  const styled = await postcss(plugins).process(readFileSync(sheet, 'utf8'), { from: sheet });
  return { script: built.outputFiles[0]?.text ?? '', style: styled.css };
}

function serve(files: { script: string; style: string }): Promise<{ server: Server; url: string }> {
  const made = new Map<string, ReturnType<typeof makeTokens>>();
  const server = createServer((request, response) => {
    const url = new URL(request.url ?? '/', 'http://127.0.0.1');
    const count = Number(url.searchParams.get('n') ?? 400);
    const key = url.search;
    const tokens =
      made.get(key) ??
      makeTokens(count, { scored: !url.searchParams.has('unscored'), linesOnly: url.searchParams.has('lines') });
    made.set(key, tokens);
    const [type, body] =
      url.pathname === '/tokens'
        ? ['application/octet-stream', Buffer.from(tokens.wire)]
        : url.pathname === '/steps'
          ? ['application/json', JSON.stringify({ advantages: tokens.advantages, stepRewards: tokens.stepRewards })]
          : url.pathname === '/page.js'
            ? ['text/javascript', files.script]
            : url.pathname === '/page.css'
              ? ['text/css', files.style]
              : [
                  'text/html',
                  '<!doctype html><meta charset="utf-8"><meta name="viewport" content="width=device-width"><link rel="stylesheet" href="/page.css"><body><div id="root"></div><script type="module" src="/page.js"></script>',
                ];
    response.writeHead(200, { 'content-type': type }).end(body);
  });
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      const port = typeof address === 'object' && address ? address.port : 0;
      resolve({ server, url: `http://127.0.0.1:${port}/` });
    });
  });
}

async function measure(browser: Browser, url: string, count: number, query = '') {
  const page = await browser.newPage({ viewport: { width: 1440, height: 900 } });
  const errors: string[] = [];
  page.on('pageerror', (error) => errors.push(error.message));
  await page.goto(`${url}?n=${count}${query}`);
  await page.waitForFunction(() => window.measured.dataAt > 0);
  const firstPaintMs = Math.round(await page.evaluate(() => window.firstPaint()));
  await page.waitForTimeout(1500);
  const longestTaskMs = Math.round(await page.evaluate(() => window.measured.longestTaskMs));
  // Processor time of the page's thread beside the frames: on a busy machine frames are lost to others.
  const session = await page.context().newCDPSession(page);
  await session.send('Performance.enable', { timeDomain: 'threadTicks' });
  const taskSeconds = async () =>
    (await session.send('Performance.getMetrics')).metrics.find(({ name }) => name === 'TaskDuration')?.value ?? 0;
  const before = await taskSeconds();
  const scrolling = await page.evaluate(() => window.scrollFast());
  const threadMsPerFrame =
    Math.round((((await taskSeconds()) - before) * 10_000) / (scrolling.framesPerSecond * 2)) / 10;
  // Find something that is far off screen, and come to its place.
  await page.locator('[data-token-scroller]').press('/');
  await page.locator('input[type=search]').fill('OBSERVATION: higher');
  await page.locator('input[type=search]').press('Enter');
  const found = await page.locator('search [role=status]').textContent();
  await page.close();
  return { tokens: count, firstPaintMs, ...scrolling, threadMsPerFrame, longestTaskMs, found, errors };
}

async function pictures(browser: Browser, url: string, folder: string): Promise<void> {
  mkdirSync(folder, { recursive: true });
  for (const theme of ['light', 'dark'])
    for (const [name, width, query] of [
      ['advantage', 1440, 'n=900&color=advantage'],
      ['logprob', 1440, 'n=100000&color=logprob'],
      ['ratio', 1440, 'n=900&color=ratio'],
      ['mask', 1440, 'n=120&color=mask&unscored'],
      ['phone', 390, 'n=900&color=advantage'],
    ] as const) {
      const page = await browser.newPage({
        viewport: { width, height: width < 500 ? 844 : 900 },
        deviceScaleFactor: 2,
      });
      await page.goto(`${url}?${query}&theme=${theme}`);
      await page.evaluate(() => window.firstPaint());
      await page.waitForTimeout(300);
      const box = await page.locator('[data-token-scroller]').boundingBox();
      if (box) await page.mouse.click(box.x + 250, box.y + 330);
      await page.waitForTimeout(200);
      await page.screenshot({ path: join(folder, `tokens-${name}-${theme}.png`) });
      await page.close();
    }
}

const shots = process.argv.indexOf('--shots');
const { server, url } = await serve(await bundle());
const browser = await chromium.launch({
  ...(existsSync(SYSTEM_BROWSER) ? { executablePath: SYSTEM_BROWSER } : {}),
  args: ['--no-sandbox'],
});
try {
  if (shots > 0) await pictures(browser, url, process.argv[shots + 1] ?? 'shots');
  else
    for (const [count, query] of [
      [1_000, ''],
      [100_000, ''],
      [1_000_000, ''],
      [1_000_000, '&lines'],
    ] as const)
      process.stdout.write(
        `${JSON.stringify({ ...(query ? { kind: query.slice(1) } : {}), ...(await measure(browser, url, count, query)) })}\n`,
      );
} finally {
  await browser.close();
  server.close();
  server.closeAllConnections();
}
