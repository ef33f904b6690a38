/** What a person gets wrong is named, with its place, and leaves nothing half written. */
import { execFile } from 'node:child_process';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { dataDir, expect, open, test } from './journey';
import type { Program } from './program';
import { root } from './server';

/** Everything a refused change must leave as it was. */
async function everything(client: Program): Promise<unknown> {
  return {
    runs: (await client.runs.list.query({})).total,
    skills: await client.skills.list.query(),
    datasets: await client.datasets.list.query(),
    audit: (await client.audit.list.query({})).total,
  };
}

test('a skill that cannot be read is answered with line and column, and a press leads there', async ({
  page,
  client,
  watch,
}) => {
  watch.allow(/status of 400/);
  const before = await everything(client);
  await open(page, '/skills');
  await page.getByRole('button', { name: 'Write a skill' }).click();
  const field = page.getByRole('textbox', { name: 'Skill as YAML' });
  const save = page.getByRole('button', { name: 'Save as a new version' });
  await field.fill('skill_name: broken\ndescription: "never closed\navailable_tools: [probe]\n');
  await save.click();
  await expect(page.getByRole('button', { name: /line \d+, column \d+/i })).toBeVisible();

  // A skill that reads but is wrong: names that nothing has, and values of the wrong kind, each with its place.
  const skill = (tool: string, rounds: string): string =>
    `skill_name: broken\ndescription: A sentence.\navailable_tools: [${tool}]\nmax_rounds: ${rounds}\n` +
    'answer_format:\n  required_fields: [number]\nreward_weights:\n  answer_f1: 1\n';
  await field.fill(skill('no_such_tool', '4'));
  await save.click();
  await expect(page.getByRole('button', { name: /line 3, column \d+.*no_such_tool/i })).toBeVisible();
  await field.fill(skill('probe', 'many'));
  await save.click();
  const rounds = page.getByRole('button', { name: /max_rounds/ });
  await expect(rounds).toContainText(/line 4, column \d+/i);
  await rounds.click();
  await expect(field).toBeFocused();
  await expect(page.getByText(/^line 4, column \d+$/)).toBeVisible();
  expect(await everything(client)).toEqual(before);
});

test('a dataset line that is wrong is named by its number', async ({ page, client, watch }) => {
  watch.allow(/status of (400|409|413)/);
  const before = await everything(client);
  await open(page, '/datasets');
  const good = '{"task_id":"a","prompt":"p"}';
  for (const [text, sentence] of [
    [`${good}\n\n{"task_id":"b","prompt":}\n`, /Line 3 is not JSON/],
    [`${good}\n{"task_id":"b"}\n`, /Line 2.*prompt/],
    [`${good}\n${good}\n`, /Line 2 has the task_id of line 1/],
    ['\n\n', /no task/],
  ] as const) {
    await page
      .getByLabel('File')
      .setInputFiles({ name: 'wrong.jsonl', mimeType: 'text/plain', buffer: Buffer.from(text) });
    await page.getByRole('button', { name: 'Import', exact: true }).click();
    await expect(page.getByText(sentence)).toBeVisible();
  }
  expect(await everything(client)).toEqual(before);
  expect((await client.datasets.list.query()).some((dataset) => dataset.name === 'wrong')).toBe(false);
});

test('a backend whose model file is missing refuses the run with a sentence', async ({ page, client, watch }) => {
  watch.allow(/status of (503|400)/);
  const model = join(dataDir(), 'lost.gguf');
  const addBackend = () =>
    promisify(execFile)(process.execPath, [join(root, 'dist', 'cli.js'), 'backend', 'lost-model', '--model', model], {
      env: { ...process.env, NODE_ENV: 'production', STUDIO_DATA_DIR: dataDir() },
    });
  // A file that is not there is refused at once; one that goes away later is told where it is needed.
  await expect(addBackend()).rejects.toThrow(/There is no file at .*lost\.gguf/);
  await writeFile(model, 'GGUF');
  await addBackend();
  await rm(model);
  const before = await everything(client);
  await open(page, '/runs/new');
  await page.getByLabel('Backend').selectOption('lost-model');
  await expect(page.getByText(/lost-model cannot be used now: .*lost\.gguf/)).toBeVisible();
  await page.getByRole('button', { name: 'Start', exact: true }).click();
  await expect(page.getByText(/lost-model cannot be used: the run was refused.*lost\.gguf/)).toBeVisible();
  await expect(page).toHaveURL(/\/runs\/new/);
  expect(await everything(client)).toEqual(before);
  await open(page, '/backends');
  await expect(page.getByRole('row', { name: /lost-model/ })).toContainText('cannot be used');
});

test('figures out of range are told at their field, and nothing is sent', async ({ page }) => {
  await open(page, '/runs/new');
  await page.getByLabel('Group size').fill('0');
  await expect(page.locator('main').getByRole('alert')).toHaveText(/^From 1 to /);
  await expect(page.getByRole('button', { name: 'Start', exact: true })).toBeDisabled();
  await page.getByLabel('Group size').fill('2');
  await expect(page.getByRole('button', { name: 'Start', exact: true })).toBeEnabled();
});

test('addresses that name nothing say so, with a way on', async ({ page, finished, watch }) => {
  watch.allow(/status of 40[04]/);
  for (const [path, sentence, way] of [
    ['/runs/run_00000000000000000000000000', 'There is no such run', 'To the runs'],
    ['/runs/not-an-id', 'There is no such run', 'To the runs'],
    [
      `/runs/${finished.runId}/trajectories/trj_00000000000000000000000000`,
      'There is no such trajectory',
      'To the run',
    ],
    [`/runs/${finished.runId}/trajectories/not-an-id`, 'There is no such trajectory', 'To the run'],
    ['/skills/no-such-skill', 'There is no such skill', 'To the skills'],
    ['/skills/tutorial?version=99', 'There is no such skill', 'To the skills'],
    ['/datasets/no-such-dataset', 'There is no such dataset', 'To the datasets'],
    ['/nowhere', 'There is no page at this address', 'To the home page'],
  ] as const) {
    await page.goto(path);
    await expect(page.getByText(sentence), path).toBeVisible();
    await expect(page.getByRole('link', { name: way, exact: true }), path).toBeVisible();
  }
  for (const path of [
    '/api/runs/run_00000000000000000000000000/export',
    '/api/trajectories/nobody/tokens',
    '/api/nothing',
  ])
    expect([400, 404], path).toContain((await page.request.get(path)).status());
});
