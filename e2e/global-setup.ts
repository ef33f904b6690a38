/** One studio for all journeys. The first browser signs in with the printed address; the others use its cookie. */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { chromium } from '@playwright/test';
import config from '../playwright.config';
import { removeDataDir, root, startStudioProcess } from './server';

export const statePath = join(root, '.cache', 'e2e', 'signed-in.json');

export default async function globalSetup(): Promise<() => Promise<void>> {
  const studio = await startStudioProcess();
  process.env.STUDIO_E2E_URL = studio.url;
  process.env.STUDIO_E2E_DATA_DIR = studio.dataDir;
  await mkdir(join(root, '.cache', 'e2e'), { recursive: true });
  const browser = await chromium.launch(config.use?.launchOptions);
  const page = await browser.newPage();
  await page.goto(studio.signInUrl);
  await page.waitForURL(`${studio.url}/`, { timeout: 60_000 });
  await page.context().storageState({ path: statePath });
  await browser.close();
  return async () => {
    await studio.stop();
    await removeDataDir(studio.dataDir);
  };
}
