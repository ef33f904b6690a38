import { beforeAll, expect, it } from 'vitest';
import { fixedAmbient } from '../../server/core/ambient';
import { Conflict, Invalid, NotFound } from '../../server/core/errors';
import type { Json } from '../../server/core/vocabulary';
import { describeOnBothDatabases, type TestDatabase } from '../testing/database';
import { seedRun } from '../testing/seed';
import { insertAuditEntries, listAuditEntries } from './audit';
import {
  firstTasks,
  getBackend,
  getSkillVersion,
  insertDataset,
  listBackends,
  listSkills,
  listSkillVersions,
  listTasks,
  saveBackend,
  saveSkillVersion,
} from './catalog';
import { getRun, getRunSettings, listRuns } from './runs';

const ambient = fixedAmbient();

describeOnBothDatabases('the catalogue', (open) => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await open();
  });
  const save = (name: string, yaml: string) =>
    database.db.transaction((tx) =>
      saveSkillVersion(tx, {
        skillId: ambient.newId('skl'),
        versionId: ambient.newId('skl'),
        name,
        yaml,
        yamlHash: yaml,
        createdBy: null,
        nowMs: 1,
      }),
    );

  it('gives every saved text a version of its own, and equal texts none', async () => {
    const outcomes = await Promise.all(['a', 'b', 'c', 'd'].map((yaml) => save('enzyme', yaml)));
    expect(outcomes.map((o) => o.version).sort()).toEqual([1, 2, 3, 4]);
    const newest = await getSkillVersion(database.db, { name: 'enzyme' });
    expect(newest.version).toBe(4);
    expect(await save('enzyme', newest.yaml)).toMatchObject({ version: 4, created: false });
    await save('another', 'x');
    expect((await listSkills(database.db)).map((s) => `${s.name} ${s.version}`)).toEqual(['another 1', 'enzyme 4']);
    expect((await listSkillVersions(database.db, 'enzyme')).map((v) => v.version)).toEqual([4, 3, 2, 1]);
    expect((await getSkillVersion(database.db, { name: 'enzyme', version: 2 })).version).toBe(2);
    await expect(getSkillVersion(database.db, { name: 'enzyme', version: 9 })).rejects.toBeInstanceOf(NotFound);
    await expect(getSkillVersion(database.db, { name: 'none' })).rejects.toBeInstanceOf(NotFound);
  });

  it('returns answers as they were given: the text "42" stays text, null stays null', async () => {
    const answers: Json[] = ['42', 42, null, true, 'true', '{"a":1}', { a: '1', nul: '\0' }, [], ''];
    const tasks = answers.map((answer, i) => ({
      taskId: `t${i}`,
      prompt: `問 ${i}`,
      answer,
      metadata: { text: '5' },
      skill: null,
    }));
    const input = { id: 'dst_answers', name: 'answers', contentHash: 'h', nowMs: 1, tasks };
    const insert = (more: object) => database.db.transaction((tx) => insertDataset(tx, { ...input, ...more }));
    expect(await insert({})).toEqual({ datasetId: 'dst_answers', created: true });
    expect(await insert({ id: 'other' })).toEqual({ datasetId: 'dst_answers', created: false });
    await expect(insert({ id: 'other', contentHash: 'other' })).rejects.toBeInstanceOf(Conflict);
    const twice = { id: 'twice', name: 'twice', tasks: [tasks[0], tasks[0]] };
    await expect(insert(twice)).rejects.toThrow('same task_id twice');

    const first = await listTasks(database.db, { name: 'answers', limit: 5 });
    expect(first.total).toBe(9);
    const second = await listTasks(database.db, { name: 'answers', cursor: first.nextCursor, limit: 5 });
    expect([...first.items, ...second.items]).toEqual(tasks);
    expect(second.nextCursor).toBeNull();
    expect((await firstTasks(database.db, 'dst_answers', 2)).map((task) => task.taskId)).toEqual(['t0', 't1']);
    await expect(listTasks(database.db, { name: 'answers', cursor: "1'; drop" })).rejects.toBeInstanceOf(Invalid);
  });

  it('has one default backend', async () => {
    const backend = (name: string, isDefault: boolean) =>
      database.db.transaction((tx) =>
        saveBackend(tx, { id: `bck_${name}`, name, kind: 'embedded', settings: { name }, isDefault, nowMs: 1 }),
      );
    await backend('zero', true);
    await backend('one', true);
    expect(await backend('zero', false)).toEqual({ backendId: 'bck_zero' });
    expect((await listBackends(database.db)).map((b) => `${b.name} ${b.isDefault}`)).toEqual([
      'one true',
      'zero false',
    ]);
    expect((await getBackend(database.db)).name).toBe('one');
    expect((await getBackend(database.db, 'zero')).settings).toEqual({ name: 'zero' });
    await expect(getBackend(database.db, 'none')).rejects.toBeInstanceOf(NotFound);
  });

  it('pages through runs of one moment without losing or repeating one', async () => {
    const runIds = new Set<string>();
    for (let i = 0; i < 7; i++) runIds.add((await seedRun(database, { groupCount: 1, groupSize: 2 })).runId);
    const seen: string[] = [];
    for (let cursor: string | null = null; ; ) {
      const page: Awaited<ReturnType<typeof listRuns>> = await listRuns(database.db, { cursor, limit: 3 });
      seen.push(...page.items.map((run) => run.runId));
      expect(page.total).toBe(7);
      for (const run of page.items)
        expect(run).toMatchObject({ skillName: 'tutorial', counts: { queued: 2, failed: 0 } });
      cursor = page.nextCursor;
      if (!cursor) break;
    }
    expect(seen).toHaveLength(7);
    expect(new Set(seen)).toEqual(runIds);
    expect((await listRuns(database.db, { status: 'completed' })).total).toBe(0);
    expect(await getRunSettings(database.db, seen[0] ?? '')).toMatchObject({
      skillYaml: 'skill_name: tutorial',
      seed: 7,
    });
    expect(await getRun(database.db, seen[0] ?? '')).toMatchObject({ eventSeq: -1, groups: [{ completed: false }] });
    await expect(getRun(database.db, 'run_none')).rejects.toBeInstanceOf(NotFound);
  });

  it('lists the audit log newest first, filtered, page by page', async () => {
    const entry = (i: number) => ({
      id: `aud_${String(i).padStart(3, '0')}`,
      atMs: Math.floor(i / 3),
      agentId: i % 2 ? 'odd' : 'even',
      userId: null,
      actionType: 'permission_check',
      resource: 'tool://probe',
      operation: 'execute',
      status: 'allowed' as const,
      details: { i },
      ipAddress: null,
    });
    await insertAuditEntries(
      database.db,
      Array.from({ length: 20 }, (_, i) => entry(i)),
    );
    const first = await listAuditEntries(database.db, { agentId: 'odd', limit: 6 });
    expect(first.total).toBe(10);
    const second = await listAuditEntries(database.db, { agentId: 'odd', limit: 6, cursor: first.nextCursor });
    const shown = [...first.items, ...second.items].map((e) => e.details);
    expect(shown).toEqual([19, 17, 15, 13, 11, 9, 7, 5, 3, 1].map((i) => ({ i })));
    expect(second.nextCursor).toBeNull();
    expect((await listAuditEntries(database.db, { fromMs: 2, toMs: 3 })).total).toBe(3);
  });
});
