import { beforeAll, expect, it } from 'vitest';
import { runs } from '../schema';
import { describeOnBothDatabases, type TestDatabase } from '../testing/database';
import { seedRun } from '../testing/seed';
import { freeRunName } from './runs';

describeOnBothDatabases('the name of a run', (open) => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await open();
  });
  const free = (name: string) => database.db.transaction((tx) => freeRunName(tx, name));

  it('is given once: the next of the same minute has the next number', async () => {
    expect(await free('a run')).toBe('a run');
    await seedRun(database);
    expect(await free('a run')).toBe('a run-2');
    // Names that only begin alike take none away.
    const [first] = await database.db.select().from(runs);
    if (!first) throw new Error('There is no run.');
    for (const name of ['a run-3', 'a runner-2', 'a run-2'])
      await database.db.insert(runs).values({ ...first, id: `run_${name}`, name });
    expect(await free('a run')).toBe('a run-4');
    expect(await free('a_run')).toBe('a_run');
  });

  it('is not given twice to two that ask at once', async () => {
    const [first] = await database.db.select().from(runs);
    if (!first) throw new Error('There is no run.');
    const names = await Promise.all(
      [1, 2, 3].map((n) =>
        database.db.transaction(async (tx) => {
          const name = await freeRunName(tx, 'at once');
          await tx.insert(runs).values({ ...first, id: `run_at_once_${n}`, name });
          return name;
        }),
      ),
    );
    expect(names.sort()).toEqual(['at once', 'at once-2', 'at once-3']);
  });
});
