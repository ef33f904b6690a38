import { mkdir, mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openTestApp, type TestApp } from '../http/testing/open-test-app';
import { listAudit } from './audit/list-audit';
import { listBackends } from './backends/list-backends';
import type { ServiceContext } from './context';
import { importDataset } from './datasets/import-dataset';
import { listDatasets } from './datasets/list-datasets';
import { listTasks } from './datasets/list-tasks';
import { ensureFirstAdmin } from './people/ensure-first-admin';
import { loadSamples } from './samples/load-samples';
import { getSkill } from './skills/get-skill';
import { listSkills } from './skills/list-skills';
import { saveSkill } from './skills/save-skill';

const SKILL = (description: string) => `skill_name: guess
description: ${description}
available_tools: [probe]
max_rounds: 3
answer_format:
  required_fields: [number]
audit_rules: []
reward_weights:
  answer_f1: 1
`;

let app: TestApp;
let ctx: ServiceContext;
beforeAll(async () => {
  app = await openTestApp();
  ctx = (await app.person('operator')).ctx;
});
afterAll(() => app.close());

const actions = async () => (await listAudit({ ctx, input: {} })).items.map((entry) => entry.actionType);

describe('skills', () => {
  it('refuses text that the database cannot hold as it is', async () => {
    for (const odd of ['\u0000', '\ud800'])
      await expect(saveSkill({ ctx, input: { yaml: `${SKILL('odd')}# ${odd}\n` } })).rejects.toThrow(
        'The field yaml cannot be used: holds U+0000 or half of a surrogate pair',
      );
    await expect(
      importDataset({ ctx, input: { name: 'a\ud800', jsonl: '{"task_id":1,"prompt":"p"}' } }),
    ).rejects.toThrow(/^The field name cannot be used/);
  });

  it('makes a version of each new text and none of the same text, and says so in the audit log', async () => {
    expect(await saveSkill({ ctx, input: { yaml: SKILL('one') } })).toEqual({
      name: 'guess',
      version: 1,
      created: true,
    });
    expect(await saveSkill({ ctx, input: { yaml: SKILL('one') } })).toEqual({
      name: 'guess',
      version: 1,
      created: false,
    });
    expect(await saveSkill({ ctx, input: { yaml: SKILL('two') } })).toEqual({
      name: 'guess',
      version: 2,
      created: true,
    });
    expect((await actions()).filter((action) => action === 'save_skill')).toHaveLength(2);
    expect(await listSkills({ ctx })).toMatchObject([
      { name: 'guess', version: 2, description: 'two', tools: ['probe'] },
    ]);
    const first = await getSkill({ ctx, input: { name: 'guess', version: 1 } });
    expect(first.yaml).toBe(SKILL('one'));
    expect(first.versions.map(({ version }) => version)).toEqual([2, 1]);
  });

  it('gives two who save at once two versions', async () => {
    const saved = await Promise.all(['three', 'four'].map((text) => saveSkill({ ctx, input: { yaml: SKILL(text) } })));
    expect(saved.map(({ version }) => version).sort()).toEqual([3, 4]);
  });

  it('refuses a text with a problem, with line and column, and writes nothing', async () => {
    const before = await actions();
    await expect(
      saveSkill({ ctx, input: { yaml: SKILL('x').replace('answer_f1: 1', 'answer_f1: 0.5') } }),
    ).rejects.toThrow(/Line \d+, column \d+/);
    expect(await actions()).toEqual(before);
  });
});

describe('datasets', () => {
  const lines = (count: number) =>
    Array.from({ length: count }, (_, i) =>
      JSON.stringify({ task_id: `t${i}`, prompt: `p${i}`, answer: { n: i } }),
    ).join('\n');

  it('takes all tasks or none, and pages through them in order', async () => {
    await expect(importDataset({ ctx, input: { name: 'd', jsonl: `${lines(5)}\n{"task_id":1}` } })).rejects.toThrow(
      /^Line 6:/,
    );
    expect((await listDatasets({ ctx })).map(({ name }) => name)).not.toContain('d');
    expect(await importDataset({ ctx, input: { name: 'd', jsonl: lines(5) } })).toEqual({
      name: 'd',
      taskCount: 5,
      created: true,
    });
    expect(await importDataset({ ctx, input: { name: 'd', jsonl: `${lines(5)}\n\n` } })).toMatchObject({
      created: false,
    });
    await expect(importDataset({ ctx, input: { name: 'd', jsonl: lines(4) } })).rejects.toThrow(/under another name/);
    const first = await listTasks({ ctx, input: { name: 'd', limit: 3 } });
    const second = await listTasks({ ctx, input: { name: 'd', limit: 3, cursor: first.nextCursor } });
    expect([...first.items, ...second.items].map(({ taskId }) => taskId)).toEqual(['t0', 't1', 't2', 't3', 't4']);
    expect(second.nextCursor).toBeNull();
  });

  it('refuses names that could be a path', async () => {
    for (const name of ['../x', 'a/b', 'a\\b', '', ' ', 'a\u0000b', 'x'.repeat(200)])
      await expect(importDataset({ ctx, input: { name, jsonl: lines(1) } })).rejects.toThrow(
        /^The field name cannot be used/,
      );
  });
});

describe('samples', () => {
  it('are loaded once, follow the product, and never push a person’s own version aside', async () => {
    const admin = { ...ctx, actor: { ...ctx.actor, role: 'admin' as const } };
    const packageRoot = await mkdtemp(join(tmpdir(), 'ts-samples-'));
    for (const folder of ['skills', 'datasets', 'models'])
      await mkdir(join(packageRoot, 'samples', folder), { recursive: true });
    const put = (path: string, text: string) => writeFile(join(packageRoot, 'samples', path), text);
    await put('skills/guess.yaml', SKILL('sample').replace('guess', 'sample'));
    await put('skills/broken.yaml', 'skill_name: [');
    await put('datasets/sample.jsonl', '{"task_id":"a","prompt":"p"}');
    const version = async () => (await getSkill({ ctx, input: { name: 'sample' } })).version;

    await loadSamples({ ctx: admin, input: { packageRoot } });
    await loadSamples({ ctx: admin, input: { packageRoot } });
    expect(await version()).toBe(1);
    expect((await listDatasets({ ctx })).find(({ name }) => name === 'sample')?.taskCount).toBe(1);
    expect(await listBackends({ ctx })).toEqual([]);

    await saveSkill({ ctx, input: { yaml: SKILL('mine').replace('guess', 'sample') } });
    await put('models/tutorial.gguf', 'GGUF');
    await loadSamples({ ctx: admin, input: { packageRoot } });
    expect((await getSkill({ ctx, input: { name: 'sample' } })).description).toBe('mine');
    expect(await listBackends({ ctx })).toMatchObject([
      { name: 'tutorial', kind: 'embedded', isDefault: true, canScore: true },
    ]);

    await put('skills/guess.yaml', SKILL('sample, newer').replace('guess', 'sample'));
    await loadSamples({ ctx: admin, input: { packageRoot } });
    expect(await version()).toBe(3);
  });
});

describe('the first admin', () => {
  it('is made once', async () => {
    const fresh = await openTestApp();
    const system: ServiceContext = {
      ...fresh.services,
      actor: { userId: null, name: 'studio', role: 'admin', ipAddress: null },
    };
    const [a, b] = await Promise.all([ensureFirstAdmin({ ctx: system }), ensureFirstAdmin({ ctx: system })]);
    expect(a).toEqual(b);
    expect(await ensureFirstAdmin({ ctx: system })).toEqual(a);
    await fresh.close();
  });
});
