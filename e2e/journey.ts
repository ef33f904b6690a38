/**
 * What every journey starts from: the studio of the global setup, its admin signed in, and a watch on everything the
 * browser complains about. A console error, an uncaught error, a policy violation or a dialog fails the journey.
 */
import { type BrowserContext, test as base, expect, type Locator, type Page } from '@playwright/test';
import { adminState } from './global-setup';
import { type Program, program } from './program';

export interface Watch {
  /** Complaints that a journey provokes on purpose. */
  allow(...patterns: RegExp[]): void;
  /** Watches a further browser context. */
  over(context: BrowserContext): void;
}

export interface FinishedRun {
  runId: string;
  name: string;
  trajectoryIds: string[];
}

export const studioUrl = (): string => process.env.STUDIO_E2E_URL ?? '';
export const dataDir = (): string => process.env.STUDIO_E2E_DATA_DIR ?? '';

export const test = base.extend<{ watch: Watch }, { client: Program; finished: FinishedRun }>({
  // biome-ignore lint/correctness/noEmptyPattern: Playwright reads the first parameter's pattern
  baseURL: async ({}, use) => use(studioUrl()),
  // biome-ignore lint/correctness/noEmptyPattern: as above
  storageState: async ({}, use) => use(adminState),
  watch: [
    async ({ context }, use) => {
      const complaints: string[] = [];
      const allowed: RegExp[] = [];
      const over = (watched: BrowserContext): void => {
        watched.on('console', (message) => {
          if (message.type() === 'error') complaints.push(`${message.text()} (${message.location().url})`);
        });
        watched.on('weberror', (error) => complaints.push(String(error.error().stack ?? error.error())));
        watched.on('dialog', (dialog) => {
          if (dialog.type() !== 'beforeunload') complaints.push(`dialog: ${dialog.message()}`);
          void dialog.accept();
        });
      };
      over(context);
      await use({ allow: (...patterns) => void allowed.push(...patterns), over });
      expect(
        complaints.filter((text) => !allowed.some((pattern) => pattern.test(text))),
        'what the browser complained about',
      ).toEqual([]);
    },
    { auto: true },
  ],
  client: [
    // biome-ignore lint/correctness/noEmptyPattern: as above
    async ({}, use) => use(await program(dataDir())),
    { scope: 'worker' },
  ],
  /** A completed run of the tutorial, for journeys that only read. */
  finished: [
    async ({ client }, use) => {
      const name = 'a finished run';
      const { runId } = await client.runs.start.mutate({
        skill: 'tutorial',
        dataset: 'tutorial',
        tasks: 3,
        groupSize: 4,
        seed: 7,
        name,
      });
      await waitForRun(client, runId, 'completed');
      const run = await client.runs.get.query({ runId });
      await use({
        runId,
        name,
        trajectoryIds: run.groups.flatMap((group) => group.trajectories.map((row) => row.trajectoryId)),
      });
    },
    { scope: 'worker', timeout: 120_000 },
  ],
});

export { expect };

export async function waitForRun(client: Program, runId: string, status: string): Promise<void> {
  await expect
    .poll(async () => (await client.runs.get.query({ runId })).status, { timeout: 110_000, intervals: [200] })
    .toBe(status);
}

/** What a locator's element says, empty when it says nothing. */
export async function textOf(locator: Locator): Promise<string> {
  return ((await locator.textContent()) ?? '').trim();
}

/** The header of a page: its heading, facts and actions. */
export function pageHeader(page: Page): Locator {
  return page.locator('header').filter({ has: page.getByRole('heading', { level: 1 }) });
}

/** A figure of the run page's strip, by its name. */
export function figure(page: Page, name: string): Locator {
  return page
    .locator('dl > div')
    .filter({ has: page.getByText(name, { exact: true }) })
    .locator('dd');
}

export function inspector(page: Page): Locator {
  return page.getByRole('region', { name: 'Token under the cursor' });
}

/** Its heading. Another stands below it where a journey before has had the run scored: that of the alternatives. */
export function chosenToken(page: Page): Locator {
  return inspector(page).getByRole('heading', { name: /^Token \d/ });
}

/** A fact of the token inspector, by its name. */
export function tokenFact(page: Page, name: string | RegExp): Locator {
  return inspector(page)
    .locator('dt')
    .filter({ hasText: typeof name === 'string' ? new RegExp(`^${name.replace(/[()]/g, '\\$&')}$`) : name })
    .locator('xpath=following-sibling::dd[1]');
}

export function tokenMap(page: Page): Locator {
  return page.getByRole('application', { name: 'Tokens of the trajectory' });
}

export function heatmap(page: Page): Locator {
  return page.getByRole('application', { name: /^Advantage by step/ });
}

/** Pixels by which the page is wider than its window. */
export async function overflow(page: Page): Promise<number> {
  return page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
}

/** Every address with a page of its own. */
export function everyPage(run: FinishedRun): string[] {
  return [
    '/',
    '/runs',
    '/runs/new',
    `/runs/${run.runId}`,
    `/runs/${run.runId}/trajectories/${run.trajectoryIds[0]}`,
    '/skills',
    '/skills?new=1',
    '/skills/tutorial',
    '/datasets',
    '/datasets/tutorial',
    '/backends',
    '/backends/tutorial',
    '/backends/new',
    '/audit',
  ];
}

/** Goes there and waits until the page shows what it is about: nothing is loading any more. */
export async function open(page: Page, path: string): Promise<void> {
  await page.goto(path);
  await settled(page);
}

export async function settled(page: Page): Promise<void> {
  await expect(page.getByRole('heading', { level: 1 }).first()).not.toBeEmpty();
  await expect(page.getByRole('status', { name: /^(Loading|Asking)|^正在|加载|询问/ })).toHaveCount(0);
}

/** Presses Tab until the wanted thing has the focus; every stop on the way must be seen to have it. */
export async function tabTo(page: Page, wanted: Locator, key: 'Tab' | 'Shift+Tab' = 'Tab'): Promise<void> {
  await wanted.waitFor();
  for (let presses = 0; presses < 120; presses++) {
    await page.keyboard.press(key);
    const seen = await page.evaluate(() => {
      const element = document.activeElement;
      if (!element || element === document.body) return 'page';
      // A radio button hidden in its label, or a field within a frame, shows the focus on what surrounds it.
      for (let at: Element | null = element; at && at !== document.body; at = at.parentElement) {
        const { outlineStyle, outlineWidth, boxShadow } = getComputedStyle(at);
        if ((outlineStyle !== 'none' && Number.parseFloat(outlineWidth) > 0) || boxShadow.includes('inset'))
          return 'seen';
      }
      return `unseen: ${element.outerHTML.slice(0, 200)}`;
    });
    expect(seen).not.toContain('unseen');
    if (await wanted.evaluate((element) => element === document.activeElement)) return;
  }
  throw new Error(`${key} never came to ${wanted}.`);
}
