/** Databases for tests: fresh, migrated, one for each call, embedded and on a real PostgreSQL. */
import { randomBytes } from 'node:crypto';
import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import postgres from 'postgres';
import { afterAll, describe, inject } from 'vitest';
import { silentLogger } from '../../server/observability/logger';
import type { Database } from '../connection';
import { prepareTemplate } from '../embedded/prepare-folder';
import { openDatabase } from '../open';
import { TEMPLATE_DATABASE } from './start-postgres';

export interface TestDatabase extends Database {
  /** What to give openDatabase to open the same database once more (a server allows that, a folder does not). */
  address: { dataDir: string } | { databaseUrl: string };
}

/** A fresh data folder that holds a migrated, empty database. The caller removes it. */
export async function testDataFolder(): Promise<string> {
  const dataDir = await mkdtemp(join(tmpdir(), 'ts-data-'));
  const template = await prepareTemplate();
  if (template) await cp(template, join(dataDir, 'database'), { recursive: true });
  return dataDir;
}

/** Embedded, so it runs everywhere. `close` removes it. */
export async function testDatabase(): Promise<TestDatabase> {
  const dataDir = await testDataFolder();
  const database = await openDatabase({ dataDir, logger: silentLogger });
  return {
    ...database,
    address: { dataDir },
    async close() {
      await database.close();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}

/** A database of its own on the test server; null where there is no server. `close` drops it. */
export async function testServerDatabase(): Promise<TestDatabase | null> {
  const serverUrl = inject('testDatabaseUrl');
  if (!serverUrl) return null;
  const name = `studio_test_${randomBytes(8).toString('hex')}`;
  const admin = async (statement: string) => {
    const sql = postgres(serverUrl, { max: 1, onnotice: () => {} });
    try {
      // Only one session at a time may copy a template.
      await sql`select pg_advisory_lock(8315)`;
      await sql.unsafe(statement);
    } finally {
      await sql.end();
    }
  };
  await admin(`create database ${name} template ${TEMPLATE_DATABASE}`);
  const address = new URL(serverUrl);
  address.pathname = `/${name}`;
  const databaseUrl = address.href;
  const database = await openDatabase({ databaseUrl, logger: silentLogger });
  return {
    ...database,
    address: { databaseUrl },
    async close() {
      await database.close();
      await admin(`drop database if exists ${name} with (force)`);
    },
  };
}

/**
 * Runs the same tests on both kinds of database. `open` makes a fresh one; what is still open at the end is closed.
 * The PostgreSQL half is skipped, and reported as skipped, where there is no server.
 */
export function describeOnBothDatabases(name: string, tests: (open: () => Promise<TestDatabase>) => void): void {
  for (const kind of ['embedded', 'PostgreSQL'] as const) {
    const skipped = kind === 'PostgreSQL' && !inject('testDatabaseUrl');
    describe.skipIf(skipped)(`${name} (${kind})`, () => {
      const opened = new Set<TestDatabase>();
      afterAll(async () => {
        await Promise.all([...opened].map((database) => database.close()));
      });
      tests(async () => {
        const database = kind === 'embedded' ? await testDatabase() : await testServerDatabase();
        if (!database) throw new Error('The test server went away.');
        const tracked = {
          ...database,
          async close() {
            opened.delete(tracked);
            await database.close();
          },
        };
        opened.add(tracked);
        return tracked;
      });
    });
  }
}
