/**
 * The process of the embedded database: PostgreSQL as WebAssembly behind a Unix socket. It ends when its parent ends
 * (the fork's channel closes, also after kill -9), and nothing but the socket and that channel leads in or out.
 */
import { fsyncSync } from 'node:fs';
import { PGlite } from '@electric-sql/pglite';
import { PGLiteSocketServer } from '@electric-sql/pglite-socket';
import { isStudioError } from '../../server/core/errors';
import { readMigrations, scriptForEmptyDatabase } from '../migrate';
import { FolderInUse, type FolderLock, lockWorkingDirectory } from './folder-lock';
import type { FromChild, ToChild } from './messages';
import { prepareFolder } from './prepare-folder';

/**
 * Measured: PostgreSQL's 128 MB of shared buffers make this process 290 MB, 16 MB make it 150 MB and are as fast here,
 * because the operating system caches the same pages. Small log segments keep a fresh folder and recovery small.
 */
const SETTINGS = {
  shared_buffers: '16MB',
  wal_buffers: '1MB',
  max_connections: '4',
  fsync: 'on',
  wal_sync_method: 'fsync',
};
const INITIAL_SETTINGS = ['--wal-segsize=1'];

const recentLog: string[] = [];
let database: PGlite | null = null;
let server: PGLiteSocketServer | null = null;
let lock: FolderLock | null = null;

function say(message: FromChild): Promise<void> {
  return new Promise((done) => (process.send ? process.send(message, () => done()) : done()));
}

/** PostgreSQL's log: kept for a failure's details and passed to the studio's logger, never printed here. */
function hear(line: string): boolean {
  recentLog.push(line);
  if (recentLog.length > 50) recentLog.shift();
  if (/(WARNING|ERROR|FATAL|PANIC):/.test(line)) void say({ type: 'log', line });
  return false;
}

function startParameters(): string[] {
  const withoutFsyncOff = PGlite.defaultStartParams.filter((parameter) => parameter !== '-F');
  return [...withoutFsyncOff, ...Object.entries(SETTINGS).flatMap(([name, value]) => ['-c', `${name}=${value}`])];
}

/**
 * PGlite's file system ignores fsync, which would make "durable" mean "survives this process". With this it means
 * what it says: a commit returns when the log is on the disk (wal_sync_method must be fsync: Emscripten's fdatasync does
 * nothing). Typed by hand: Emscripten's internals have no types.
 */
function honourFsync(pglite: PGlite): void {
  const module: unknown = pglite.Module;
  const { NODEFS } = (module as { FS: { filesystems: { NODEFS: { stream_ops: object } } } }).FS.filesystems;
  Object.assign(NODEFS.stream_ops, {
    fsync(stream: { nfd?: number }) {
      if (stream.nfd !== undefined) fsyncSync(stream.nfd);
      return 0;
    },
  });
}

async function open(dataDir: string, socketPath: string, studioPid: number): Promise<void> {
  process.chdir(dataDir);
  lock = await lockWorkingDirectory(studioPid);
  const folder = await prepareFolder(dataDir);
  const pglite = await PGlite.create({
    dataDir: folder,
    startParams: startParameters(),
    onStderr: hear,
    onStdout: () => false,
  });
  database = pglite;
  honourFsync(pglite);
  // A throw out of the engine (not an SQL error, which is an answer) leaves it in no state to go on.
  const run = pglite.execProtocolRawStream.bind(pglite);
  pglite.execProtocolRawStream = async (...call) => {
    try {
      await run(...call);
    } catch (error) {
      await fail(error);
    }
  };
  // One connection: the engine has one session, so two would meet in each other's transactions.
  server = new PGLiteSocketServer({ db: pglite, path: socketPath, maxConnections: 1 });
  await server.start();
  await say({ type: 'ready', rssBytes: process.memoryUsage.rss() });
}

async function initialise(folder: string): Promise<void> {
  const pglite = await PGlite.create({
    dataDir: folder,
    initDbStartParams: INITIAL_SETTINGS,
    onStderr: hear,
    onStdout: () => false,
  });
  await pglite.exec(scriptForEmptyDatabase(await readMigrations()));
  await pglite.close();
  await say({ type: 'initialised' });
  process.exit(0);
}

async function close(): Promise<void> {
  await server?.stop();
  await database?.close();
  await lock?.release();
  process.exit(0);
}

async function fail(error: unknown): Promise<never> {
  if (error instanceof FolderInUse) await say({ type: 'in_use', studioPid: error.studioPid });
  else {
    const code = error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : null;
    const message = error instanceof Error ? error.message : String(error);
    await say({ type: 'failed', sentence: isStudioError(error) ? message : null, code, message, log: recentLog });
  }
  await lock?.release().catch(() => {});
  process.exit(1);
}

process.on('message', (message: ToChild) => {
  const work =
    message.type === 'open'
      ? open(message.dataDir, message.socketPath, message.studioPid)
      : message.type === 'initialise'
        ? initialise(message.folder)
        : close();
  work.catch(fail);
});
process.on('disconnect', () => process.exit(0));
// The parent decides when to stop; a Ctrl-C reaches the whole process group and must not end the database first.
process.on('SIGINT', () => {});
process.on('SIGTERM', () => {});
process.on('uncaughtException', (error) => void fail(error));
