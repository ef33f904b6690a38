/**
 * Brings a database up to the schema of this code. The files come from drizzle-kit and the bookkeeping table is
 * drizzle's, but applying them is done here: under a lock, in one transaction, and refusing a newer database.
 */
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import type { Sql } from 'postgres';
import { Conflict, Unavailable } from '../server/core/errors';

export interface Migration {
  tag: string;
  createdAtMs: number;
  hash: string;
  statements: string;
}

/** Any fixed number: workers that start together wait for each other. */
const LOCK_KEY = 7_391_204_155;

const BOOKKEEPING = `create schema if not exists drizzle;
  create table drizzle.__drizzle_migrations (id serial primary key, hash text not null, created_at bigint);`;

/** What brings an empty database to the schema of this code, as one script. */
export function scriptForEmptyDatabase(migrations: Migration[]): string {
  const record = migrations.map(({ hash, createdAtMs }) => `('${hash}', ${createdAtMs})`).join(', ');
  return [
    'begin;',
    BOOKKEEPING,
    ...migrations.map((migration) => migration.statements),
    `insert into drizzle.__drizzle_migrations (hash, created_at) values ${record};`,
    'commit;',
  ].join('\n');
}

/** db/migrations, from this file in TypeScript as from a bundle in dist/. */
export function migrationsFolder(): string {
  const relative = import.meta.url.endsWith('.ts') ? './migrations/' : '../db/migrations/';
  return fileURLToPath(new URL(relative, import.meta.url));
}

export async function readMigrations(folder = migrationsFolder()): Promise<Migration[]> {
  try {
    const journal: { entries: { tag: string; when: number }[] } = JSON.parse(
      await readFile(`${folder}/meta/_journal.json`, 'utf8'),
    );
    return await Promise.all(
      journal.entries.map(async ({ tag, when }) => {
        const text = await readFile(`${folder}/${tag}.sql`, 'utf8');
        return {
          tag,
          createdAtMs: when,
          hash: createHash('sha256').update(text).digest('hex'),
          statements: `${text.replaceAll('--> statement-breakpoint', '')};`,
        };
      }),
    );
  } catch (cause) {
    throw new Unavailable(
      `The database migrations in ${folder} cannot be read. Install the studio again.`,
      { folder },
      { cause },
    );
  }
}

/**
 * Applies what is missing, all or nothing. Throws Conflict when the database holds a migration this code does not
 * know: an older version of the studio must not write into a newer one's tables.
 */
export async function migrate(sql: Sql, where: string, migrations?: Migration[]): Promise<{ applied: string[] }> {
  const known = migrations ?? (await readMigrations());
  return await sql.begin(async (tx) => {
    await tx`select pg_advisory_xact_lock(${LOCK_KEY})`;
    const [present] = await tx<{ present: boolean }[]>`
      select to_regclass('drizzle.__drizzle_migrations') is not null as present`;
    if (!present?.present) await tx.unsafe(BOOKKEEPING);
    const rows = await tx<{ hash: string }[]>`select hash from drizzle.__drizzle_migrations`;
    const done = new Set(rows.map((row) => row.hash));
    const hashes = new Set(known.map((migration) => migration.hash));
    const unknown = [...done].filter((hash) => !hashes.has(hash));
    if (unknown.length > 0)
      throw new Conflict(
        `${where} was written by a newer version of the studio. Install that version or a newer one, or use another database.`,
        { unknown },
      );
    const applied: string[] = [];
    for (const migration of known.filter(({ hash }) => !done.has(hash))) {
      await tx.unsafe(migration.statements);
      await tx`insert into drizzle.__drizzle_migrations (hash, created_at)
        values (${migration.hash}, ${migration.createdAtMs})`;
      applied.push(migration.tag);
    }
    return { applied };
  });
}
