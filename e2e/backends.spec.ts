/** The pages of backends without a mouse, and on a telephone with long words from servers. */
import { join } from 'node:path';
import { startCannedServer } from '../server/inference/testing/canned-server';
import { startTwinProcess, type TwinProcess } from '../server/inference/testing/twin/twin-process';
import { expect, open, overflow, pageHeader, tabTo, test } from './journey';
import { root } from './server';

const TUTORIAL = join(root, 'samples', 'models', 'tutorial.gguf');

test.describe.configure({ mode: 'serial' });

let twin: TwinProcess;
test.beforeAll(async () => {
  twin = await startTwinProcess({ kind: 'sglang', options: { modelPath: TUTORIAL } });
});
test.afterAll(async ({ client }) => {
  await client.backends.remove.mutate({ name: 'by-keyboard' }).catch(() => undefined);
  await twin?.close();
});

test('a check fails, the address is mended and the backend added, by keyboard alone', async ({ page, client }) => {
  await open(page, '/backends');
  await tabTo(page, page.getByRole('link', { name: 'Add a backend' }));
  await page.keyboard.press('Enter');
  const address = page.getByLabel('Address');
  await tabTo(page, address);
  await page.keyboard.type('http://127.0.0.1:9');
  await tabTo(page, page.getByLabel('Key', { exact: true }));
  await page.keyboard.type('a-secret-key');
  const check = page.getByRole('button', { name: /^Check/ });
  await tabTo(page, check);
  await page.keyboard.press('Enter');
  const failed = page.locator('[data-check=failed]');
  await expect(failed).toBeVisible({ timeout: 30_000 });
  await expect(page.getByRole('status').filter({ hasText: 'one item fails' })).toBeVisible();
  await expect(check, 'what was pressed keeps the focus').toBeFocused();
  await expect(page.getByRole('button', { name: 'Add anyway' })).toBeDisabled();
  const item = failed.getByRole('listitem').filter({ hasText: 'fails' });
  await expect(item).toContainText('refused the connection');
  await tabTo(page, item.locator('summary'));
  await page.keyboard.press('Enter');
  await expect(item.getByText('GET /v1/models')).toBeVisible();

  await tabTo(page, address, 'Shift+Tab');
  await page.keyboard.press('Control+A');
  await page.keyboard.type(twin.url);
  await expect(failed, 'what was found belongs to the other address').toHaveCount(0);
  await page.keyboard.press('Enter');
  await expect(page.locator('[data-check=ok]')).toBeVisible({ timeout: 30_000 });
  const name = page.getByLabel('Name');
  await expect(name).toHaveValue(`local-${new URL(twin.url).port}`);
  await tabTo(page, name);
  await page.keyboard.press('Control+A');
  await page.keyboard.type('by-keyboard');
  await tabTo(page, page.getByRole('button', { name: 'Add', exact: true }));
  await page.keyboard.press('Enter');
  await page.waitForURL(/\/backends\/by-keyboard$/);
  await expect(pageHeader(page)).toContainText('sglang');
  await expect(page.getByText('set, stored encrypted')).toBeVisible();
  await expect(page.locator('body')).not.toContainText('a-secret-key');
  expect((await client.backends.get.query({ name: 'by-keyboard' })).urls).toEqual([twin.url]);
});

test('a backend is opened, paused, resumed and asked for new weights by keyboard alone', async ({ page, client }) => {
  await open(page, '/backends');
  await tabTo(page, page.getByRole('link', { name: 'by-keyboard' }));
  await page.keyboard.press('Enter');
  await page.waitForURL(/\/backends\/by-keyboard$/);
  await tabTo(page, page.getByRole('button', { name: 'Pause' }));
  for (const [now, next] of [
    ['paused', 'Resume'],
    ['answers', 'Pause'],
  ] as const) {
    await page.keyboard.press('Enter');
    await expect(pageHeader(page)).toContainText(now);
    await expect(page.getByRole('button', { name: next }), 'the focus stays where it was').toBeFocused();
    expect((await client.backends.get.query({ name: 'by-keyboard' })).paused).toBe(now === 'paused');
  }
  const update = page.getByRole('button', { name: 'Update weights' });
  await tabTo(page, update);
  await page.keyboard.press('Enter');
  const dialog = page.getByRole('dialog', { name: 'Update weights' });
  await expect(dialog.getByLabel('From')).toBeFocused();
  await tabTo(page, dialog.getByLabel('Version'));
  await page.keyboard.press('Escape');
  await expect(dialog).toHaveCount(0);
  await expect(update).toBeFocused();
});

test('what a button said goes with the state it spoke of', async ({ page, watch }) => {
  watch.allow(/409 /);
  await open(page, '/backends/by-keyboard');
  await page.getByRole('button', { name: 'Pause' }).click();
  await expect(pageHeader(page)).toContainText('paused');
  await page.getByRole('button', { name: 'Check again' }).click();
  await expect(page.getByText('Resume it, then check it')).toBeVisible();
  await page.getByRole('button', { name: 'Resume' }).click();
  await expect(pageHeader(page)).toContainText('answers');
  await expect(page.getByText('Resume it, then check it')).toHaveCount(0);
});

test('a backend that no run was made with is removed, another is kept with the reason', async ({
  page,
  client,
  finished,
  watch,
}) => {
  // It is asked for once more on the way to the list.
  watch.allow(/409 /, /404 /);
  await client.backends.add.mutate({ name: 'forgotten', kind: 'vllm', urls: ['http://127.0.0.1:9'], unchecked: true });
  const { backendName } = await client.runs.get.query({ runId: finished.runId });
  for (const name of [backendName, 'forgotten']) {
    await open(page, `/backends/${name}`);
    await page.getByRole('button', { name: 'Remove' }).click();
    const dialog = page.getByRole('dialog', { name: 'Remove the backend' });
    await expect(dialog).toContainText(name);
    await dialog.getByRole('button', { name: 'Remove it' }).click();
    if (name === backendName) await expect(dialog).toContainText('cannot be removed: the run');
  }
  await page.waitForURL(/\/backends$/);
  await expect(page.getByRole('link', { name: backendName })).toBeVisible();
  await expect(page.getByRole('link', { name: 'forgotten' })).toHaveCount(0);
});

test('of a backend that cannot be used a run is refused, and the form says so once', async ({
  page,
  client,
  watch,
}) => {
  watch.allow(/503 /);
  await client.backends.add.mutate({ name: 'nobody', kind: 'vllm', urls: ['http://127.0.0.1:9'], unchecked: true });
  try {
    await open(page, '/runs/new');
    await page.getByLabel('Backend', { exact: true }).selectOption('nobody');
    await expect(page.getByText('nobody cannot be used now: a run would be refused.')).toBeVisible();
    await page.getByRole('button', { name: 'Start', exact: true }).click();
    await expect(page.getByText('nobody cannot be used: the run was refused')).toBeVisible();
    await expect(page.getByText('refused the connection')).toHaveCount(1);
    await expect(page.getByText('requests wait')).toHaveCount(0);
    await page.getByLabel('Backend', { exact: true }).selectOption('');
    await expect(page.getByText('cannot be used')).toHaveCount(0);
  } finally {
    await client.backends.remove.mutate({ name: 'nobody' });
  }
});

test('of many servers the line of one is chosen by keyboard, and a link shows it again', async ({ page, client }) => {
  const urls = Array.from({ length: 8 }, (_, n) => `http://127.0.0.1:9/gpu-${n}`);
  await client.backends.add.mutate({ name: 'many', kind: 'vllm', urls, unchecked: true });
  try {
    await open(page, '/backends/many');
    await tabTo(page, page.getByRole('button', { name: /^Show the line of .*gpu-3/ }));
    await page.keyboard.press('Enter');
    await page.reload();
    const chosen = page.getByRole('button', { name: /^Hide the line of .*gpu-3/ });
    await expect(chosen).toHaveAttribute('aria-pressed', 'true');
    await expect(page.getByRole('button', { name: /^Show the line of/ })).toHaveCount(7);
    await expect(page.getByText('lowest to highest, median; last hour')).toBeVisible();
    await chosen.focus();
    await page.keyboard.press('Enter');
    await expect(page.getByRole('button', { name: /^Show the line of/ })).toHaveCount(8);
  } finally {
    await client.backends.remove.mutate({ name: 'many' });
  }
});

test.describe('on a telephone', () => {
  test.use({ viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true, deviceScaleFactor: 2 });

  test('long names, addresses and words of servers stay within the screen and can be read whole', async ({
    page,
    client,
  }) => {
    const name = 'far-away'.repeat(12);
    const urls = [1, 2, 3].map((n) => `http://127.0.0.1:9/${'a-path-of-a-gateway/'.repeat(4)}gpu-${n}`);
    await client.backends.add.mutate({ name, kind: 'vllm', urls, model: `organisation/${name}`, unchecked: true });
    // Its reason is short, and too long for three lines of a phone.
    await client.backends.add.mutate({ name: 'near', kind: 'vllm', urls: ['http://127.0.0.1:9'], unchecked: true });
    const long = 'wordswithoutablank'.repeat(20);
    const model = { id: 'far-away', object: 'model', owned_by: 'vllm', root: 'far-away', max_model_len: 512 };
    const talkative = await startCannedServer({
      'GET /v1/models': { body: { object: 'list', data: [model] } },
      'GET /version': { body: { version: long } },
      'POST /tokenize': { status: 500, body: { error: { message: `<img src=x onerror=alert(1)>${long}` } } },
    });
    try {
      for (const language of ['English', '中文']) {
        await open(page, '/');
        await page.getByRole('button', { name: /^(Menu|菜单)$/ }).tap();
        await page.getByRole('button', { name: language }).tap();
        for (const path of ['/backends', `/backends/${name}`]) {
          await open(page, path);
          expect(await overflow(page), `${language} ${path}`).toBe(0);
        }
      }
      await page.getByRole('button', { name: '…/gpu-3' }).tap();
      await expect(page.getByRole('button', { name: urls[2] })).toBeVisible();
      expect(await overflow(page), 'a whole address').toBe(0);

      await open(page, '/backends');
      for (const link of [name, 'near']) {
        const row = page.getByRole('row').filter({ has: page.getByRole('link', { name: link, exact: true }) });
        await row.getByRole('button', { name: /^展开/ }).tap();
        const hidden = await row.getByText(/^No server of/).evaluate((text) => text.scrollHeight - text.clientHeight);
        expect(hidden, 'of a reason that was unfolded').toBeLessThanOrEqual(1);
      }
      expect(await overflow(page), 'a whole reason').toBe(0);

      await open(page, '/backends/new');
      await page.getByLabel('地址').fill(talkative.url);
      await page.getByRole('button', { name: '检查服务器' }).tap();
      const failed = page.locator('[data-check=failed]');
      await expect(failed).toBeVisible({ timeout: 30_000 });
      expect(await overflow(page), 'the checklist').toBe(0);
      await failed.getByRole('listitem').filter({ hasText: 'wordswithout' }).first().locator('summary').tap();
      await expect(failed.getByText('<img src=x').first()).toBeVisible();
      expect(await overflow(page), 'an item of the checklist').toBe(0);
    } finally {
      for (const added of [name, 'near']) await client.backends.remove.mutate({ name: added });
      await talkative.close();
    }
  });
});
