/** Language and theme: chosen once, kept, never flashing. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from '@playwright/test';
import { everyPage, expect, open, settled, test } from './journey';
import { root } from './server';

const messages = JSON.parse(readFileSync(join(root, 'messages', 'en.json'), 'utf8')) as Record<string, unknown>;

/** `runs.columns.name` and the like: what next-intl shows where a message is missing. */
const KEY_LIKE = new RegExp(`\\b(${Object.keys(messages).join('|')})\\.[a-z]\\w*(\\.\\w+)*|MISSING_MESSAGE`);

/** Everything a person can read or hear, names of controls included. */
async function wordsOf(page: Page): Promise<string> {
  return page.evaluate(() => {
    const attributes = ['aria-label', 'title', 'placeholder', 'alt'];
    const said = [...document.querySelectorAll('body *')].flatMap((element) =>
      attributes.flatMap((name) => element.getAttribute(name) ?? []),
    );
    // biome-ignore lint/performance/useDomNodeTextContent: only what is rendered, not the data in script elements
    return [document.title, document.body.innerText, ...said].join('\n');
  });
}

test.describe('a browser that prefers Chinese', () => {
  test.use({ locale: 'zh-CN' });

  test('gets Chinese; English, once chosen, stays', async ({ page }) => {
    await open(page, '/');
    await expect(page.locator('html')).toHaveAttribute('lang', 'zh');
    await expect(page.getByRole('heading', { level: 1 })).toHaveText('首页');
    await page.getByRole('button', { name: 'English' }).click();
    await expect(page.getByRole('heading', { level: 1 })).toHaveText('Home');
    await page.reload();
    await expect(page.getByRole('heading', { level: 1 })).toHaveText('Home');
    await page.getByRole('link', { name: 'Datasets' }).click();
    await expect(page.getByRole('heading', { level: 1 })).toHaveText('Datasets');
    await expect(page.locator('html')).toHaveAttribute('lang', 'en');
    await page.getByRole('button', { name: '中文' }).click();
    await expect(page.getByRole('heading', { level: 1 })).toHaveText('数据集');
  });

  test('finds the words of every page, in Chinese', async ({ page, finished }) => {
    for (const path of everyPage(finished)) {
      await open(page, path);
      await expect(page.locator('html')).toHaveAttribute('lang', 'zh');
      const words = await wordsOf(page);
      expect(words, path).not.toMatch(KEY_LIKE);
      expect(words, path).toMatch(/\p{Script=Han}{2}/u);
    }
  });
});

test('every page has its words in English', async ({ page, finished }) => {
  for (const path of everyPage(finished)) {
    await open(page, path);
    const words = await wordsOf(page);
    expect(words, path).not.toMatch(KEY_LIKE);
    // The language switch alone is written in its own language.
    expect(words.replaceAll('中文', ''), path).not.toMatch(/\p{Script=Han}/u);
  }
});

test('the theme is there before the first paint, and follows the system where it is told to', async ({ page }) => {
  await page.emulateMedia({ colorScheme: 'light' });
  await open(page, '/');
  const brightness = () =>
    page.evaluate(() => {
      const pixel = document.createElement('canvas').getContext('2d');
      if (!pixel) return -1;
      pixel.fillStyle = getComputedStyle(document.documentElement).backgroundColor;
      pixel.fillRect(0, 0, 1, 1);
      return pixel.getImageData(0, 0, 1, 1).data[0] ?? -1;
    });
  expect(await brightness()).toBeGreaterThan(200);
  // Records every theme the document ever had, from the parser's first element on.
  await page.addInitScript(() => {
    const themes: (string | undefined)[] = [];
    Object.assign(window, { themes });
    new MutationObserver(() => {
      const now = document.documentElement?.dataset.theme;
      if (now !== undefined && themes.at(-1) !== now) themes.push(now);
    }).observe(document, { subtree: true, childList: true, attributes: true, attributeFilter: ['data-theme'] });
  });
  for (const [button, theme, dark] of [
    ['Dark', 'dark', true],
    ['Light', 'light', false],
    ['As the system', 'system', false],
  ] as const) {
    await page.getByRole('button', { name: button }).click();
    await expect(page.locator('html')).toHaveAttribute('data-theme', theme);
    expect(await (await page.request.get('/')).text()).toMatch(new RegExp(`<html[^>]* data-theme="${theme}"`));
    await page.reload();
    await settled(page);
    expect(await page.evaluate(() => (window as unknown as { themes: string[] }).themes)).toEqual([theme]);
    if (dark) expect(await brightness()).toBeLessThan(60);
    else expect(await brightness()).toBeGreaterThan(200);
    await expect(page.getByRole('button', { name: button })).toHaveAttribute('aria-pressed', 'true');
  }
  await page.emulateMedia({ colorScheme: 'dark' });
  expect(await brightness()).toBeLessThan(60);
});
