/** What trajectories are made from, when a part of it cannot be had at first. */
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { saveBackend } from '../../db/queries/catalog';
import { EventWriter } from '../../db/queries/event-writer';
import { type ClaimedTrajectory, claimTrajectories } from '../../db/queries/trajectories';
import { type TestDatabase, testDatabase } from '../../db/testing/database';
import { seedRun } from '../../db/testing/seed';
import { systemAmbient } from '../core/ambient';
import { Cancelled, Unavailable } from '../core/errors';
import { startSglangTwin } from '../inference/testing/twin/sglang';
import { TwinFixture } from '../inference/testing/twin/twin-fixture';
import { silentLogger } from '../observability/logger';
import { createMetrics } from '../observability/metrics';
import { packageRoot } from '../testing/started-studio';
import { createToolRegistry } from '../tools/registry';
import { databaseStore } from './database-store';
import { Interrupted } from './engine';
import { Material } from './material';
import { noSandboxes, sure } from './testing/rollouts';

const fixture = new TwinFixture();
let database: TestDatabase;
beforeAll(() => fixture.open());
afterAll(() => fixture.close());
beforeEach(async () => {
  database = await testDatabase();
});
afterEach(() => database.close());

const ambient = systemAmbient();
/** The backend that runs of the seed name. */
const NAME = 'embedded';

/** What is made for the one trajectory of a run, on a server at this address. */
async function openMaterial(url: string): Promise<{ material: Material; claim: ClaimedTrajectory }> {
  await seedRun(database, { groupCount: 1, groupSize: 1 });
  const skill = await readFile(join(packageRoot, 'samples', 'skills', 'tutorial.yaml'), 'utf8');
  await database.sql`update skill_versions set yaml = ${skill}`;
  const lab = { name: NAME, kind: 'sglang' as const, settings: { replicas: [{ url }] } };
  await database.db.transaction((tx) => saveBackend(tx, { ...lab, id: 'bck_1', isDefault: true, nowMs: 1 }));
  const asked = { workerId: 'w', limit: 1, nowMs: ambient.now(), leaseMs: 60_000 };
  const claim = sure((await database.db.transaction((tx) => claimTrajectories(tx, asked)))[0]);
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
    graceMs: 20,
  });
  return { material, claim };
}

async function untilServing({ backends }: Material): Promise<void> {
  const { backend, release } = await backends.hold(NAME);
  while (backend.replicas?.()[0]?.state !== 'healthy') await sleep(5);
  release();
}

it('makes the engine when a server is there that was not when the first trajectory came', async () => {
  const twin = await startSglangTwin({ modelPath: fixture.tiny });
  const { material, claim } = await openMaterial(twin.url);
  try {
    await twin.kill();
    await expect(material.of(claim)).rejects.toBeInstanceOf(Unavailable);
    await twin.restart();
    await untilServing(material);
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

it('makes no engine when all is being closed, and does not wait for a server that says nothing', async () => {
  const silent = createServer();
  await new Promise<void>((listens) => silent.listen(0, '127.0.0.1', listens));
  const { port } = silent.address() as AddressInfo;
  const { material, claim } = await openMaterial(`http://127.0.0.1:${port}`);
  const waits = material.of(claim).catch((error: unknown) => error);
  await once(silent, 'request');
  await material.backends.closeEngines();
  expect(await waits).toBeInstanceOf(Cancelled);
  await expect(material.of(claim)).rejects.toBeInstanceOf(Cancelled);
  await material.backends.closeBackends();
  silent.closeAllConnections();
  silent.close();
});

it('lets a trajectory go whose step waits for servers that are away', async () => {
  const twin = await startSglangTwin({ modelPath: fixture.tiny });
  const { material, claim } = await openMaterial(twin.url);
  await untilServing(material);
  const { engine, jobFor } = await material.of(claim);
  await twin.kill();
  const { trajectoryId, sessionId, runId, seed } = claim;
  const job = { ...jobFor(claim), trajectoryId, sessionId, runId, seed, fresh: true };
  const run = engine.run(job).catch((error: unknown) => error);
  while (engine.stats().running === 0) await sleep(5);
  await material.backends.closeEngines();
  expect(await run).toBeInstanceOf(Interrupted);
  await material.backends.closeBackends();
  await twin.close();
});
