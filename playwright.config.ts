/** The browser journeys: a production build, a fresh data folder, an installed Chromium. */
import { defineConfig } from '@playwright/test';

const chromium = process.env.STUDIO_TEST_CHROMIUM || '/usr/bin/chromium';

export default defineConfig({
  testDir: './e2e',
  testMatch: '**/*.spec.ts',
  outputDir: '.cache/playwright',
  // One server and two cores: journeys run one after another.
  workers: 1,
  fullyParallel: false,
  // For a machine that is busy with other things; nothing here is about speed.
  timeout: 300_000,
  expect: { timeout: 20_000 },
  reporter: [['list'], ['json']],
  globalSetup: './e2e/global-setup.ts',
  use: {
    browserName: 'chromium',
    launchOptions: {
      executablePath: chromium,
      args: [
        ...(process.getuid?.() === 0 ? ['--no-sandbox'] : []),
        '--disable-gpu',
        '--disable-background-networking',
        '--disable-component-update',
        '--disable-sync',
        '--no-first-run',
      ],
    },
    // Generous: one slow machine runs the studio, its model and the browser.
    actionTimeout: 20_000,
    navigationTimeout: 60_000,
    screenshot: 'only-on-failure',
    trace: 'retain-on-failure',
  },
});
