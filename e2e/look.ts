/**
 * Pictures of every page, light and dark, wide and phone-wide, for looking at: `npx tsx e2e/look.ts SIGN_IN_URL [FOLDER] [PATH …]`.
 * Not a test: it judges nothing.
 */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { chromium } from '@playwright/test';
import config from '../playwright.config';

const [signInUrl = '', folder = join('.cache', 'look'), ...paths] = process.argv.slice(2);
const origin = new URL(signInUrl).origin;
await mkdir(folder, { recursive: true });
const browser = await chromium.launch(config.use?.launchOptions);
const context = await browser.newContext();
const page = await context.newPage();
await page.goto(signInUrl);
await page.waitForURL(`${origin}/`);
let places = paths;
if (places.length === 0) {
  places = [
    '/',
    '/runs',
    '/runs/new',
    '/skills',
    '/skills/tutorial',
    '/datasets',
    '/datasets/tutorial',
    '/backends',
    '/audit',
    '/nowhere',
  ];
  await page.goto(`${origin}/runs`);
  const run = await page
    .locator('a[href^="/runs/run_"]')
    .first()
    .getAttribute('href')
    .catch(() => null);
  if (run) {
    places.push(run);
    await page.goto(`${origin}${run}`);
    const trajectory = page.locator('a[href*="/trajectories/"]').first();
    await trajectory.waitFor({ timeout: 15_000 });
    places.push((await trajectory.getAttribute('href')) ?? run);
  }
}
for (const [width, height] of [
  [1440, 900],
  [390, 844],
] as const)
  for (const theme of ['light', 'dark'] as const) {
    await page.setViewportSize({ width, height });
    await page.emulateMedia({ colorScheme: theme });
    for (const place of places) {
      await page.goto(`${origin}${place}`);
      await page.waitForLoadState('networkidle').catch(() => undefined);
      await page.waitForTimeout(400);
      const name = `${
        place
          .replace(/[?#].*/, '')
          .replace(/_[0-9a-z]{20,}/g, '')
          .replace(/[^a-z0-9]+/gi, '-')
          .replace(/^-|-$/g, '') || 'home'
      }-${width}-${theme}.png`;
      const overflow = await page.evaluate(
        () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
      );
      console.log(name, overflow > 0 ? `overflows by ${overflow}px` : '');
      await page.screenshot({ path: join(folder, name) });
    }
  }
await browser.close();
