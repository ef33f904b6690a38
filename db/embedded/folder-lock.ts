/**
 * One process at a time in a data folder. Each opener listens on a Unix socket of its own in the folder and then looks
 * at everybody else's: a socket that accepts belongs to a living process, one that refuses to a dead one, whatever ended
 * it. A name is never used twice, so removing a dead one cannot hit a living one; and because everybody appears before
 * looking, of two that come together at least one sees the other. Both stepping back is possible, both staying is not.
 * Unlike a pid file this also holds between containers that share a folder of one machine.
 *
 * The holder is the database process itself, not its parent, so the lock lasts as long as anything can write.
 */
import { randomBytes } from 'node:crypto';
import { readdir, rename, rm } from 'node:fs/promises';
import { connect, createServer, type Server } from 'node:net';

const NAME = /^lock-(\d+)-[0-9a-f]{16}\.sock$/;

export interface FolderLock {
  release(): Promise<void>;
}

/** `studioPid` is who to name to a person. */
export class FolderInUse extends Error {
  constructor(readonly studioPid: number) {
    super(`in use by process ${studioPid}`);
  }
}

/**
 * Locks the current working directory: socket addresses hold about 100 bytes, so the path must be relative.
 * Throws FolderInUse when another one still holds it after `patienceMs` (the time a process whose parent was killed
 * needs to end).
 */
export async function lockWorkingDirectory(studioPid: number, patienceMs = 1500): Promise<FolderLock> {
  const deadline = Date.now() + patienceMs;
  for (;;) {
    const name = `lock-${studioPid}-${randomBytes(8).toString('hex')}.sock`;
    const server = await listen(name);
    const release = async () => {
      await new Promise<void>((done) => server.close(() => done()));
      await rm(name, { force: true });
    };
    try {
      const other = await findOther(name);
      if (other === null) return { release };
      await release();
      if (Date.now() > deadline) throw new FolderInUse(other);
    } catch (error) {
      if (server.listening) await release();
      throw error;
    }
    // Two that stepped back from each other must not come back together.
    await new Promise((done) => setTimeout(done, 20 + (randomBytes(1)[0] ?? 0)));
  }
}

async function findOther(own: string): Promise<number | null> {
  for (const name of await readdir('.')) {
    const studioPid = NAME.exec(name)?.[1];
    if (name === own || studioPid === undefined) continue;
    if (await isAlive(name)) return Number(studioPid);
    await rm(name, { force: true });
  }
  return null;
}

function listen(name: string): Promise<Server> {
  return new Promise((done, fail) => {
    const hidden = `new-${name}`;
    const server = createServer((socket) => socket.destroy());
    server.once('error', fail);
    server.listen(hidden, () => {
      server.unref();
      // Listening first, visible second: a name that others can see never refuses while its process lives.
      rename(hidden, name).then(() => done(server), fail);
    });
  });
}

/** Anything but a clear "nobody listens" counts as alive: a wrong yes costs a restart, a wrong no costs the data. */
function isAlive(name: string): Promise<boolean> {
  return new Promise((done) => {
    const socket = connect(name);
    socket.once('connect', () => {
      socket.destroy();
      done(true);
    });
    socket.once('error', (error: NodeJS.ErrnoException) =>
      done(error.code !== 'ECONNREFUSED' && error.code !== 'ENOENT'),
    );
  });
}
