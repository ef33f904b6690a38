import { cp, mkdir, mkdtemp, readdir, rm, truncate, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import postgres from 'postgres';
import { afterAll, describe, expect, inject, it } from 'vitest';
import { silentLogger as logger } from '../server/observability/logger';
import { openDatabase } from './open';
import { describeOnBothDatabases, testDataFolder } from './testing/database';
import { PASSWORD_ROLE } from './testing/start-postgres';

const folders: string[] = [];
async function freshFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'ts-open-'));
  folders.push(folder);
  return folder;
}
async function preparedFolder(): Promise<string> {
  const folder = await testDataFolder();
  folders.push(folder);
  return folder;
}
afterAll(async () => {
  await Promise.all(folders.map((folder) => rm(folder, { recursive: true, force: true })));
});

/** The sentence of the error that opening gives. */
async function openingFails(options: { dataDir?: string; databaseUrl?: string; patienceMs?: number }): Promise<string> {
  const error = await openDatabase({ ...options, logger }).then(
    async (database) => {
      await database.close();
      return null;
    },
    (e: unknown) => e,
  );
  expect(error).toBeInstanceOf(Error);
  return `${error instanceof Error ? `${error.name}: ${error.message}` : ''}`;
}

describeOnBothDatabases('an open database', (open) => {
  it('answers 50 callers that mix single queries and transactions, without a deadlock', async () => {
    const { sql, db } = await open();
    await sql`create table numbers (n int)`;
    await Promise.all(
      Array.from({ length: 50 }, async (_, i) => {
        if (i % 2 === 0) await sql`insert into numbers values (${i})`;
        else
          await db
            .transaction(async (tx) => {
              await tx.execute(`insert into numbers values (${i})`);
              await tx.execute(`update numbers set n = n where n = ${i}`);
              if (i % 5 === 0) await tx.rollback();
            })
            .catch((error: Error) => expect(error.message).toContain('Rollback'));
        await sql`select count(*)::int from numbers`;
      }),
    );
    const [row] = await sql<{ n: number }[]>`select count(*)::int as n from numbers`;
    expect(row?.n).toBe(45);
  });

  it('returns 64-bit numbers as numbers, and refuses one that would be rounded', async () => {
    const { sql } = await open();
    expect((await sql`select 1750000000000::bigint as n`)[0]?.n).toBe(1_750_000_000_000);
    await expect(sql`select 9223372036854775807::bigint as n`).rejects.toThrow('too large');
  });

  it('refuses a database that a newer version wrote', async () => {
    const database = await open();
    await database.sql`insert into drizzle.__drizzle_migrations (hash, created_at) values ('from the future', 1)`;
    if (database.kind === 'postgres')
      expect(await openingFails(database.address)).toMatch(/^Conflict: .*newer version/);
    else {
      const copy = await freshFolder();
      const { address } = database;
      if (!('dataDir' in address)) throw new Error('an embedded database has a folder');
      await database.sql`checkpoint`;
      await cp(join(address.dataDir, 'database'), join(copy, 'database'), { recursive: true });
      expect(await openingFails({ dataDir: copy })).toMatch(/^Conflict: .*newer version/);
    }
  });
});

describe('the embedded database', () => {
  it('opens a new folder under a long path with spaces and Chinese, and again with its rows', async () => {
    const dataDir = join(await freshFolder(), 'my studio 数据', 'x'.repeat(100), '训练'.repeat(20));
    const first = await openDatabase({ dataDir, logger });
    await first.sql`insert into users (id, name, role, created_at_ms) values ('u', 'Ada', 'admin', 1)`;
    await first.close();
    const second = await openDatabase({ dataDir, logger });
    expect(await second.sql`select name from users`).toMatchObject([{ name: 'Ada' }]);
    await second.close();
    expect(await readdir(dataDir)).toEqual(['database']);
  });

  it('starts over from an interrupted first start', async () => {
    const dataDir = await freshFolder();
    await mkdir(join(dataDir, 'database.partial'));
    await writeFile(join(dataDir, 'database.partial', 'PG_VERSION'), '18\n');
    const database = await openDatabase({ dataDir, logger });
    expect(await database.sql`select 1 as one`).toMatchObject([{ one: 1 }]);
    await database.close();
    expect(await readdir(dataDir)).toEqual(['database']);
  });

  it('says that a damaged folder is damaged', async () => {
    const withoutVersion = await preparedFolder();
    await rm(join(withoutVersion, 'database', 'PG_VERSION'));
    expect(await openingFails({ dataDir: withoutVersion })).toMatch(
      /^Unavailable: .*is damaged: PG_VERSION is missing/,
    );
    const withoutControl = await preparedFolder();
    await truncate(join(withoutControl, 'database', 'global', 'pg_control'), 10);
    expect(await openingFails({ dataDir: withoutControl })).toMatch(/^Unavailable: .*may be damaged.*Restore/);
  });

  it('says that a data folder is a file, or cannot be made', async () => {
    const folder = await freshFolder();
    await writeFile(join(folder, 'file'), '');
    expect(await openingFails({ dataDir: join(folder, 'file') })).toMatch(/^Invalid: .*file/);
    expect(await openingFails({ dataDir: join(folder, 'file', 'below') })).toMatch(/^Invalid: .*file/);
    expect(await openingFails({ dataDir: '/proc/studio' })).toMatch(/^Unavailable: The data folder \/proc\/studio/);
  });

  it('leaves no process and no socket behind when it could not open', async () => {
    const folder = await preparedFolder();
    await rm(join(folder, 'database', 'PG_VERSION'));
    const temporary = await freshFolder();
    const { TMPDIR } = process.env;
    process.env.TMPDIR = temporary;
    try {
      await openingFails({ dataDir: folder });
    } finally {
      if (TMPDIR === undefined) delete process.env.TMPDIR;
      else process.env.TMPDIR = TMPDIR;
    }
    // What tsx keeps of its own work is not ours.
    expect((await readdir(temporary)).filter((name) => name.startsWith('ts-'))).toEqual([]);
  });
});

describe('PostgreSQL that cannot be opened', () => {
  it('is named by host and database, never with its password', async () => {
    const sentence = await openingFails({ databaseUrl: 'postgres://ada:s3cret@127.0.0.1:1/studio' });
    expect(sentence).toMatch(/^Unavailable: PostgreSQL at 127\.0\.0\.1:1\/studio cannot be reached/);
    expect(sentence).not.toContain('s3cret');
  });

  it('is told when something takes every connection and drops it, as a balancer without a server does', async () => {
    const balancer = createServer((socket) => socket.end());
    await new Promise<void>((done) => balancer.listen(0, '127.0.0.1', done));
    const { port } = balancer.address() as AddressInfo;
    const databaseUrl = `postgres://ada:s3cret@127.0.0.1:${port}/studio`;
    expect(await openingFails({ databaseUrl, patienceMs: 300 })).toBe(
      `Unavailable: What listens at 127.0.0.1:${port}/studio does not answer as PostgreSQL. Check it and DATABASE_URL.`,
    );
    balancer.close();
  });

  const serverUrl = inject('testDatabaseUrl');
  it.skipIf(!serverUrl)('says that the database does not exist', async () => {
    const url = new URL(serverUrl ?? '');
    url.pathname = '/no_such_database';
    expect(await openingFails({ databaseUrl: url.href })).toMatch(/^Invalid: .*no such database/);
  });

  it.skipIf(!serverUrl)('says that the password is wrong, without showing it', async () => {
    const admin = postgres(serverUrl ?? '', { max: 1, onnotice: () => {} });
    await admin.unsafe(`drop role if exists ${PASSWORD_ROLE}`);
    await admin.unsafe(`create role ${PASSWORD_ROLE} login password 'right'`);
    const url = new URL(serverUrl ?? '');
    url.username = PASSWORD_ROLE;
    url.password = 'wr0ng-secret';
    const sentence = await openingFails({ databaseUrl: url.href });
    expect(sentence).toMatch(/^Invalid: .*refused the user or password in DATABASE_URL/);
    expect(sentence).not.toContain('wr0ng');
    await admin.unsafe(`drop role ${PASSWORD_ROLE}`);
    await admin.end();
  });

  it.skipIf(!serverUrl)('says that the encoding is wrong', async () => {
    const admin = postgres(serverUrl ?? '', { max: 1, onnotice: () => {} });
    await admin.unsafe(`drop database if exists studio_test_ascii`);
    await admin.unsafe(`create database studio_test_ascii encoding 'SQL_ASCII' locale 'C' template template0`);
    const url = new URL(serverUrl ?? '');
    url.pathname = '/studio_test_ascii';
    expect(await openingFails({ databaseUrl: url.href })).toMatch(/^Invalid: .*encoding is SQL_ASCII/);
    await admin.unsafe(`drop database studio_test_ascii`);
    await admin.end();
  });
});
