/**
 * `server.json` in the data folder: where the running studio is and the token by which programs of this user reach it.
 * Readable by this user alone; gone when the studio stops.
 */
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';

const contents = z.object({
  /** Where programs of this machine reach it. */
  url: z.string(),
  /** Where people open it: another address behind a proxy. */
  publicUrl: z.string(),
  pid: z.number().int(),
  token: z.string(),
});
export type ServerFile = z.infer<typeof contents>;

export const serverFilePath = (dataDir: string): string => join(dataDir, 'server.json');

/** Null when there is none, or none that can be read. */
export async function readServerFile(dataDir: string): Promise<ServerFile | null> {
  try {
    const parsed = contents.safeParse(JSON.parse(await readFile(serverFilePath(dataDir), 'utf8')));
    return parsed.success ? parsed.data : null;
  } catch {
    return null;
  }
}

/** A reader sees the old file or the whole new one. */
export async function writeServerFile(dataDir: string, file: ServerFile): Promise<void> {
  await mkdir(dataDir, { recursive: true, mode: 0o700 });
  const temporary = `${serverFilePath(dataDir)}.${file.pid}`;
  await rm(temporary, { force: true });
  await writeFile(temporary, `${JSON.stringify(file)}\n`, { mode: 0o600, flag: 'wx' });
  await rename(temporary, serverFilePath(dataDir));
}

/** Leaves the file of another process alone. */
export async function removeServerFile(dataDir: string, pid: number): Promise<void> {
  if ((await readServerFile(dataDir))?.pid === pid) await rm(serverFilePath(dataDir), { force: true });
}

/** True while a process with this id lives. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
