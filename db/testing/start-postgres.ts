/**
 * Vitest's global set-up: a real PostgreSQL for the tests, thrown away afterwards. STUDIO_TEST_DATABASE_URL names one
 * that is there already (its user must be allowed to create databases); otherwise an installed one is started;
 * 'none' starts none. Where there is no server, the tests of that half are skipped with a line that says so.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { chmodSync, chownSync, existsSync, mkdtempSync, readdirSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import postgres from 'postgres';
import type { TestProject } from 'vitest/node';
import { migrate } from '../migrate';

declare module 'vitest' {
  export interface ProvidedContext {
    /** The server's maintenance database, or null where there is no server. */
    testDatabaseUrl: string | null;
  }
}

/** Every test file's database is a copy of this one. */
export const TEMPLATE_DATABASE = 'studio_test_template';
export const PASSWORD_ROLE = 'studio_test_password_role';
const NOBODY = 65_534;

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const given = process.env.STUDIO_TEST_DATABASE_URL;
  const own = given ? null : await startInstalled();
  const url = given === 'none' ? null : (given ?? own?.url ?? null);
  if (!url) console.warn('No PostgreSQL found: tests that need one are skipped. Set STUDIO_TEST_DATABASE_URL.');
  else await makeTemplate(url);
  project.provide('testDatabaseUrl', url);
  return async () => own?.stop();
}

async function makeTemplate(url: string): Promise<void> {
  const admin = postgres(url, { max: 1, onnotice: () => {} });
  try {
    await admin`select pg_advisory_lock(8315)`;
    await admin.unsafe(`drop database if exists ${TEMPLATE_DATABASE} with (force)`);
    await admin.unsafe(`create database ${TEMPLATE_DATABASE} encoding 'UTF8' template template0`);
    const address = new URL(url);
    address.pathname = `/${TEMPLATE_DATABASE}`;
    const sql = postgres(address.href, { max: 1, onnotice: () => {} });
    await migrate(sql, 'The test database');
    await sql.end();
  } finally {
    await admin.end();
  }
}

/** Ends the server when this process's end of the pipe closes, so that not even kill -9 leaves one running. */
const GUARD = 'folder=$1; shift; "$@" & server=$!; read -r _; kill -INT "$server"; wait "$server"; rm -rf "$folder"';

interface OwnServer {
  url: string;
  stop(): Promise<void>;
}

/** PostgreSQL refuses to run as root, so root runs it as nobody. */
async function startInstalled(): Promise<OwnServer | null> {
  const bin = newestInstalled();
  if (!bin) return null;
  const asRoot = process.getuid?.() === 0;
  const who: { uid?: number; gid?: number } = asRoot ? { uid: NOBODY, gid: NOBODY } : {};
  const folder = mkdtempSync(join(tmpdir(), 'tspg-'));
  if (asRoot) chownSync(folder, NOBODY, NOBODY);
  chmodSync(folder, 0o700);
  const data = join(folder, 'data');
  const env = { ...process.env, LC_ALL: 'C.UTF-8', TZ: 'UTC' };
  execFileSync(
    join(bin, 'initdb'),
    ['-D', data, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--no-sync', '--locale=C.UTF-8'],
    {
      ...who,
      env,
      cwd: folder,
      stdio: ['ignore', 'ignore', 'inherit'],
    },
  );
  // One role must give a password, so that a wrong one can be tested.
  writeFileSync(
    join(data, 'pg_hba.conf'),
    `host all ${PASSWORD_ROLE} all scram-sha-256\nhost all all all trust\nlocal all all trust\n`,
  );
  const port = await freePort();
  const settings = { fsync: 'off', full_page_writes: 'off', synchronous_commit: 'off', max_connections: '200' };
  const flags = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
  const command = ['-D', data, '-k', folder, '-c', 'listen_addresses=127.0.0.1', '-p', String(port), ...flags];
  const server = spawn('/bin/sh', ['-c', GUARD, 'guard', folder, join(bin, 'postgres'), ...command], {
    ...who,
    env,
    cwd: '/',
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  const url = `postgres://postgres@127.0.0.1:${port}/postgres`;
  const ended = new Promise<void>((done) => server.once('exit', () => done()));
  const stop = async () => {
    server.stdin.end();
    await ended;
  };
  try {
    await untilAnswering(url, server);
  } catch (error) {
    await stop();
    throw error;
  }
  return { url, stop };
}

/** The test script names the server it found or brought; without it the newest installed one is taken. */
function newestInstalled(): string | null {
  const named = process.env.STUDIO_TEST_POSTGRES_BIN;
  if (named) return named;
  const root = '/usr/lib/postgresql';
  const versions = existsSync(root) ? readdirSync(root).filter((name) => /^\d+$/.test(name)) : [];
  const newest = versions.map(Number).sort((a, b) => b - a)[0];
  return newest === undefined ? null : join(root, String(newest), 'bin');
}

async function freePort(): Promise<number> {
  const { createServer } = await import('node:net');
  return await new Promise((done, fail) => {
    const server = createServer().once('error', fail);
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => (typeof address === 'object' && address ? done(address.port) : fail(new Error('no port'))));
    });
  });
}

async function untilAnswering(url: string, server: ChildProcess): Promise<void> {
  for (let attempt = 0; ; attempt++) {
    const sql = postgres(url, { max: 1, onnotice: () => {}, connect_timeout: 2 });
    try {
      await sql`select 1`;
      return;
    } catch (error) {
      if (server.exitCode !== null || attempt > 100) throw error;
      await new Promise((done) => setTimeout(done, 100));
    } finally {
      await sql.end();
    }
  }
}
