/** Opens the database the product runs on: embedded in a data folder, or PostgreSQL. */
import { resolve } from 'node:path';
import { drizzle } from 'drizzle-orm/postgres-js';
import type { Sql } from 'postgres';
import { Invalid, type StudioError, Unavailable } from '../server/core/errors';
import type { Logger } from '../server/observability/logger';
import { connectClient } from './client';
import type { Database } from './connection';
import { describeDatabaseUrl, serverOpenError, toStudioError } from './database-errors';
import { openEmbedded } from './embedded/open-embedded';
import { migrate } from './migrate';
import * as schema from './schema';

export interface OpenDatabaseOptions {
  /** PostgreSQL; when it is null or absent the embedded database in `dataDir` is used. */
  databaseUrl?: string | null;
  dataDir?: string;
  logger: Logger;
  /** How long a server may take to its first answer. */
  patienceMs?: number;
  /** The database went away for good while open (only the embedded one can). */
  onLost?: (error: StudioError) => void;
}

const OLDEST_SERVER = 150_000;
/** Longer than the driver takes to give up one connection. */
const PATIENCE_MS = 15_000;
/** Workers of one process share these; PostgreSQL allows 100 by default. */
const SERVER_CONNECTIONS = 10;

/**
 * Migrated and ready. Throws one of the error family with a sentence for the person: Conflict (folder in use, database
 * newer than this code), Invalid (address, password, server too old), Unavailable (not reachable, disk full, damaged).
 */
export async function openDatabase(options: OpenDatabaseOptions): Promise<Database> {
  if (options.databaseUrl) return await openServer(options.databaseUrl, options);
  if (!options.dataDir) throw new Invalid('Neither DATABASE_URL nor a data folder is given.');
  return await openFolder(resolve(options.dataDir), options.logger, options.onLost ?? (() => {}));
}

async function openFolder(dataDir: string, logger: Logger, onLost: (error: StudioError) => void): Promise<Database> {
  const embedded = await openEmbedded(dataDir, logger, onLost);
  try {
    const { applied } = await migrate(embedded.sql, `The database in ${dataDir}`);
    if (applied.length > 0) logger.info({ applied }, 'database migrated');
  } catch (error) {
    await embedded.close();
    throw toStudioError(error);
  }
  return asDatabase('embedded', embedded.sql, embedded.close);
}

async function openServer(databaseUrl: string, options: OpenDatabaseOptions): Promise<Database> {
  const { logger } = options;
  const sql = connectClient(databaseUrl, SERVER_CONNECTIONS, logger);
  const close = () => sql.end({ timeout: 5 });
  try {
    const server = await withinPatience(lookAtServer(sql), options);
    if (!server || server.number < OLDEST_SERVER)
      throw new Invalid(`The database server is PostgreSQL ${server?.version}; the studio needs 15 or newer.`);
    if (server.encoding !== 'UTF8')
      throw new Invalid(`The database's encoding is ${server.encoding}; create one with encoding UTF8.`);
    const { applied } = await migrate(sql, 'The database at DATABASE_URL');
    if (applied.length > 0) logger.info({ applied }, 'database migrated');
  } catch (error) {
    await close();
    throw serverOpenError(error, databaseUrl);
  }
  return asDatabase('postgres', sql, close);
}

async function lookAtServer(sql: Sql): Promise<{ number: number; version: string; encoding: string } | undefined> {
  const [server] = await sql<{ number: number; version: string; encoding: string }[]>`
    select current_setting('server_version_num')::int as number, current_setting('server_version') as version,
      current_setting('server_encoding') as encoding`;
  return server;
}

/** The driver itself connects again for ever where something takes every connection and drops it. */
async function withinPatience<T>(answer: Promise<T>, options: OpenDatabaseOptions): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => {
      const where = describeDatabaseUrl(options.databaseUrl ?? '');
      reject(new Unavailable(`What listens at ${where} does not answer as PostgreSQL. Check it and DATABASE_URL.`));
    }, options.patienceMs ?? PATIENCE_MS);
  });
  answer.catch(() => undefined);
  try {
    return await Promise.race([answer, late]);
  } finally {
    clearTimeout(timer);
  }
}

function asDatabase(kind: Database['kind'], sql: Sql, close: () => Promise<void>): Database {
  return { kind, sql, db: drizzle(sql, { schema }), close };
}
