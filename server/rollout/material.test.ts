/** What trajectories are made from, when a part of it cannot be had at first. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { saveBackend } from '../../db/queries/catalog';
import { EventWriter } from '../../db/queries/event-writer';
import { claimTrajectories } from '../../db/queries/trajectories';
import { type TestDatabase, testDatabase } from '../../db/testing/database';
import { seedRun } from '../../db/testing/seed';
import { systemAmbient } from '../core/ambient';
import { Unavailable } from '../core/errors';
import { startSglangTwin } from '../inference/testing/twin/sglang';
import { TwinFixture } from '../inference/testing/twin/twin-fixture';
import { silentLogger } from '../observability/logger';
import { createMetrics } from '../observability/metrics';
import { packageRoot } from '../testing/started-studio';
import { createToolRegistry } from '../tools/registry';
import { databaseStore } from './database-store';
import { Material } from './material';
import { noSandboxes, sure } from './testing/rollouts';

const fixture = new TwinFixture();
let database: TestDatabase;
beforeAll(async () => {
  await fixture.open();
  database = await testDatabase();
});
afterAll(async () => {
  await database.close();
  await fixture.close();
});

it('makes the engine when a server is there that was not when the first trajectory came', async () => {
  const twin = await startSglangTwin({ modelPath: fixture.tiny });
  const ambient = systemAmbient();
  const { runId } = await seedRun(database, { groupCount: 1, groupSize: 1 });
  const skill = await readFile(join(packageRoot, 'samples', 'skills', 'tutorial.yaml'), 'utf8');
  await database.sql`update skill_versions set yaml = ${skill}`;
  const lab = { name: 'embedded', kind: 'sglang' as const, settings: { replicas: [{ url: twin.url }] } };
  await database.db.transaction((tx) => saveBackend(tx, { ...lab, id: 'bck_1', isDefault: true, nowMs: 1 }));
  const material = new Material({
    database,
    ambient,
    logger: silentLogger,
    packageRoot,
    threads: 1,
    keysOf: async () => ({ keyFor: () => null, controlKey: () => null }),
    serverRestarted: () => undefined,
    store: databaseStore(database, new EventWriter(database), ambient),
    tools: createToolRegistry(),
    sandboxes: async () => noSandboxes,
    toolWorkers: 1,
    metrics: createMetrics(),
  });
  try {
    const nowMs = ambient.now();
    const asked = { workerId: 'w', limit: 1, nowMs, leaseMs: 60_000 };
    const claim = sure((await database.db.transaction((tx) => claimTrajectories(tx, asked)))[0]);
    expect(claim.runId).toBe(runId);
    await twin.kill();
    await expect(material.of(claim)).rejects.toBeInstanceOf(Unavailable);
    await twin.restart();
    const { backend, release } = await material.backends.hold(lab.name);
    while (backend.replicas?.()[0]?.state !== 'healthy') await sleep(5);
    release();
    const [first, second] = [await material.of(claim), await material.of(claim)];
    // One for all that come.
    expect(second.engine).toBe(first.engine);
    for (const one of [first, second]) one.release();
  } finally {
    await material.backends.closeEngines();
    await material.backends.closeBackends();
    await twin.close();
  }
});
