/** The secret key of this studio: from the environment, or from a file that the first start makes. */
import { randomBytes } from 'node:crypto';
import { link, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Invalid, Unavailable } from '../../core/errors';
import { SecretBox } from './secret-box';

export const SECRET_FILE = 'secret.key';
const KEY_BYTES = 32;

/** @param key 32 bytes from the environment; null takes the file in `dataDir`, which is made when it is not there */
export async function openSecretBox({ dataDir, key }: { dataDir: string; key: Uint8Array | null }): Promise<SecretBox> {
  return new SecretBox(key ?? (await keyOfFile(dataDir)));
}

async function keyOfFile(dataDir: string): Promise<Uint8Array> {
  const file = join(dataDir, SECRET_FILE);
  try {
    const text = await readFile(file, 'utf8').catch(async (error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOENT') throw error;
      await makeFile(dataDir, file);
      return await readFile(file, 'utf8');
    });
    const key = Buffer.from(text.trim(), 'base64');
    if (key.length === KEY_BYTES) return new Uint8Array(key);
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new Unavailable(`The file ${file} with the studio's secret key cannot be used: ${why}.`, {}, { cause });
  }
  throw new Invalid(
    `The file ${file} does not hold a secret key of 32 bytes in base64. Put the right one back, or remove the file: a new one is made, and stored keys of servers must be entered again.`,
  );
}

/** Under its name only when it is whole; of two processes that make it at once, one wins and both read that one. */
async function makeFile(dataDir: string, file: string): Promise<void> {
  await mkdir(dataDir, { recursive: true, mode: 0o700 });
  const own = `${file}.${process.pid}-${randomBytes(4).toString('hex')}`;
  try {
    await writeFile(own, `${randomBytes(KEY_BYTES).toString('base64')}\n`, { mode: 0o600, flag: 'wx' });
    await link(own, file).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw error;
    });
  } finally {
    await rm(own, { force: true });
  }
}
