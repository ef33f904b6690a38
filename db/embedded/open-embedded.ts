/** The embedded database: its process, its socket, and a postgres.js client on it. */
import { mkdir, mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { Sql } from 'postgres';
import { Conflict, type StudioError, Unavailable } from '../../server/core/errors';
import type { Logger } from '../../server/observability/logger';
import { connectClient } from '../client';
import { codeOf, folderError } from '../database-errors';
import { ask, forkDatabaseProcess } from './child-process';
import type { FromChild } from './messages';

export interface EmbeddedServer {
  sql: Sql;
  /** Process id of the database process. */
  pid: number;
  close(): Promise<void>;
}

const CLOSE_PATIENCE_MS = 10_000;

/** `onLost` is called once when the database process ends without having been asked to. */
export async function openEmbedded(
  dataDir: string,
  logger: Logger,
  onLost: (error: StudioError) => void,
): Promise<EmbeddedServer> {
  await makeFolder(dataDir).catch((error) => {
    throw folderError(error, dataDir);
  });
  // Socket addresses hold about 100 bytes, and data folders may have longer names: the socket lives elsewhere.
  const socketDir = await mkdtemp(join(tmpdir(), 'ts-'));
  const removeSocketDir = () => rm(socketDir, { recursive: true, force: true });
  const socketPath = join(socketDir, 'db');
  const child = forkDatabaseProcess();
  const exited = new Promise<void>((done) => child.once('exit', () => done()));
  let closing = false;

  const answer = await ask(child, { type: 'open', dataDir, socketPath, studioPid: process.pid }, (line) =>
    logger.warn({ line }, 'embedded database'),
  );
  if (answer.type !== 'ready') {
    child.kill('SIGKILL');
    await exited;
    await removeSocketDir();
    throw openError(answer, dataDir);
  }
  const sql = connectClient({ path: socketPath, user: 'postgres', database: 'postgres' }, 1, logger);
  child.once('exit', (code, signal) => {
    void removeSocketDir();
    if (closing) return;
    const error = new Unavailable('The embedded database ended unexpectedly. Start the studio again.', {
      code,
      signal,
    });
    logger.error({ code, signal }, error.message);
    onLost(error);
  });

  return {
    sql,
    pid: child.pid ?? 0,
    async close() {
      closing = true;
      await sql.end({ timeout: 5 });
      if (child.connected) child.send({ type: 'close' }, () => {});
      const timer = setTimeout(() => child.kill('SIGKILL'), CLOSE_PATIENCE_MS);
      await exited;
      clearTimeout(timer);
      await removeSocketDir();
    },
  };
}

/** Like mkdir's `recursive`, which never returns where a parent refuses with ENOENT (as /proc does). */
async function makeFolder(path: string): Promise<void> {
  try {
    await mkdir(path, { mode: 0o700 });
  } catch (error) {
    const code = codeOf(error)?.code;
    if (code === 'EEXIST' && (await stat(path)).isDirectory()) return;
    const parent = dirname(path);
    if (code !== 'ENOENT' || parent === path || (await exists(parent))) throw error;
    await makeFolder(parent);
    await makeFolder(path);
  }
}

const exists = (path: string): Promise<boolean> =>
  stat(path).then(
    () => true,
    () => false,
  );

function openError(answer: FromChild, dataDir: string): StudioError {
  if (answer.type === 'in_use')
    return new Conflict(
      `The data folder ${dataDir} is in use by the studio (process ${answer.studioPid}). Stop that one, or set STUDIO_DATA_DIR to another folder.`,
      { processId: answer.studioPid },
    );
  if (answer.type !== 'failed') return new Unavailable('The embedded database did not start.', { answer });
  if (answer.sentence) return new Unavailable(answer.sentence, { log: answer.log });
  const cause = Object.assign(new Error(answer.message), { code: answer.code ?? undefined });
  const full = /No space left on device|ENOSPC/.test([answer.message, ...answer.log].join('\n'));
  if (full) return folderError(Object.assign(cause, { code: 'ENOSPC' }), dataDir);
  if (answer.code && /^E[A-Z]+$/.test(answer.code)) return folderError(cause, dataDir);
  const last = answer.log.findLast((line) => /FATAL|PANIC/.test(line))?.replace(/^.*?(FATAL|PANIC): +/, '');
  return new Unavailable(
    `The database in ${join(dataDir, 'database')} cannot be opened and may be damaged${last ? ` (${last})` : ''}. Restore the folder from a copy, or move it away to start with an empty one.`,
    { log: answer.log, message: answer.message },
    { cause },
  );
}
