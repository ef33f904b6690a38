/** The main job without a mouse. */
import { expect, figure, heatmap, open, pageHeader, tabTo, test, tokenFact, tokenMap } from './journey';

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
