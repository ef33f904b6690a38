/** One studio for all journeys, and two people signed in to it: its admin, and someone who may only look. */
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { chromium } from '@playwright/test';
import config from '../playwright.config';
import { removeDataDir, root, startStudioProcess } from './server';

const states = join(root, '.cache', 'e2e');
export const adminState = join(states, 'admin.json');
export const viewerState = join(states, 'viewer.json');

export default async function globalSetup(): Promise<() => Promise<void>> {
  const dataDir = await mkdtemp(join(tmpdir(), 'studio-e2e-'));
  const tsx = pathToFileURL(createRequire(import.meta.url).resolve('tsx')).href;
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ['--import', tsx, join(root, 'e2e', 'add-viewer.ts'), dataDir],
    { cwd: root },
  );
  const studio = await startStudioProcess({ dataDir });
  process.env.STUDIO_E2E_URL = studio.url;
  process.env.STUDIO_E2E_DATA_DIR = dataDir;
  await mkdir(states, { recursive: true });
  const browser = await chromium.launch(config.use?.launchOptions);
  for (const [address, state] of [
    [studio.signInUrl, adminState],
    [`${studio.url}/sign-in?token=${stdout.trim()}`, viewerState],
  ] as const) {
    const context = await browser.newContext();
    const page = await context.newPage();
    await page.goto(address);
    await page.waitForURL(`${studio.url}/`, { timeout: 60_000 });
    await context.storageState({ path: state });
    await context.close();
  }
  await browser.close();
  return async () => {
    await studio.stop();
    await removeDataDir(dataDir);
  };
}
