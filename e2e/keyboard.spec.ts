/** The main job without a mouse. */
import type { Locator, Page } from '@playwright/test';
import { expect, figure, heatmap, open, pageHeader, test, tokenFact, tokenMap } from './journey';

/** Presses Tab until the wanted thing has the focus; every stop on the way must be seen to have it. */
async function tabTo(page: Page, wanted: Locator): Promise<void> {
  await wanted.waitFor();
  for (let presses = 0; presses < 120; presses++) {
    await page.keyboard.press('Tab');
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
  throw new Error(`Tab never came to ${wanted}.`);
}

test('a run is started, opened and read by keyboard alone', async ({ page }) => {
  await open(page, '/');
  await page.keyboard.press('Tab');
  const skip = page.getByRole('link', { name: 'Skip to the page' });
  await expect(skip).toBeFocused();
  await expect(skip).toBeInViewport();
  await page.keyboard.press('Enter');
  await expect(page.locator('main')).toBeFocused();

  await tabTo(page, page.getByLabel('Group size'));
  await page.keyboard.type('2');
  await tabTo(page, page.getByLabel('Tasks', { exact: true }));
  await page.keyboard.type('2');
  await expect(page.getByText('2 tasks, 4 trajectories')).toBeVisible();
  await tabTo(page, page.getByRole('button', { name: 'Start', exact: true }));
  await page.keyboard.press('Enter');
  await page.waitForURL(/\/runs\/run_/);
  await expect(figure(page, 'finished')).toHaveText(/^4 \/ 4/, { timeout: 100_000 });
  await expect(pageHeader(page).getByText('completed')).toBeVisible();

  await tabTo(page, heatmap(page));
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('ArrowRight');
  await page.keyboard.press('Enter');
  await page.waitForURL(/\/trajectories\//);
  await tabTo(page, tokenMap(page));
  await page.keyboard.press('Control+Home');
  await page.keyboard.press('n');
  await page.keyboard.press('ArrowRight');
  await expect(tokenFact(page, 'mask')).toHaveText('1 · sampled');
  await expect(tokenFact(page, 'log p')).toHaveText(/^−?\d/);

  await page.keyboard.press('?');
  await expect(page.getByRole('dialog', { name: 'Keys' })).toBeVisible();
  await page.keyboard.press('Escape');
  await expect(page.getByRole('dialog', { name: 'Keys' })).toBeHidden();
  await page.keyboard.press('g');
  await page.keyboard.press('r');
  await expect(page).toHaveURL(/\/runs$/);
});
