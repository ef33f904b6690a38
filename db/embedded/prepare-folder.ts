/**
 * A new database folder. Making one from nothing takes seconds and 700 MB for a moment, so it is done once for each
 * engine version and schema, in a process of its own, kept as a template beside the code, and copied from then on.
 */
import { createHash, randomBytes } from 'node:crypto';
import { chmod, cp, mkdir, readdir, readFile, rename, rm, stat } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Invalid } from '../../server/core/errors';
import { readMigrations, scriptForEmptyDatabase } from '../migrate';
import { runChild } from './child-process';

const PREFIX = 'embedded-database-';
/** Raise when the settings a new folder is made with change. */
const TEMPLATE_FORMAT = 1;

/** .cache/ at the root of the code, from this file in TypeScript as from a bundle in dist/. */
function cacheFolder(): string {
  const relative = import.meta.url.endsWith('.ts') ? '../../.cache/' : '../.cache/';
  return fileURLToPath(new URL(relative, import.meta.url));
}

async function engineVersion(): Promise<string> {
  const entry = createRequire(import.meta.url).resolve('@electric-sql/pglite');
  const { version }: { version: string } = JSON.parse(
    await readFile(join(dirname(entry), '..', 'package.json'), 'utf8'),
  );
  return version;
}

const exists = (path: string): Promise<boolean> =>
  stat(path).then(
    () => true,
    () => false,
  );

/** Makes the template if there is none, and returns where it lies; null where the code's folder cannot be written. */
export async function prepareTemplate(): Promise<string | null> {
  const hash = createHash('sha256').update(scriptForEmptyDatabase(await readMigrations()));
  const key = `${await engineVersion()}-${TEMPLATE_FORMAT}-${hash.digest('hex').slice(0, 12)}`;
  const template = join(cacheFolder(), `${PREFIX}${key}`);
  if (await exists(template)) return template;
  const partial = `${template}.${randomBytes(6).toString('hex')}.partial`;
  try {
    await mkdir(partial, { recursive: true });
  } catch {
    return null;
  }
  try {
    await runChild({ type: 'initialise', folder: partial });
    // Whoever else was faster made the same thing.
    await rename(partial, template).catch(async (error) => {
      if (!(await exists(template))) throw error;
    });
    await removeOldTemplates(template);
    return template;
  } finally {
    await rm(partial, { recursive: true, force: true });
  }
}

/** Templates of earlier engines and schemas, 30 MB each. */
async function removeOldTemplates(current: string): Promise<void> {
  for (const name of await readdir(cacheFolder())) {
    const path = join(cacheFolder(), name);
    if (!name.startsWith(PREFIX) || name.endsWith('.partial') || path === current) continue;
    await rm(path, { recursive: true, force: true });
  }
}

/**
 * Returns the database's folder inside the data folder, made when it was not there. Call it with the data folder's lock
 * held or as its only user. A half-made folder of an interrupted start has another name and is thrown away.
 */
export async function prepareFolder(dataDir: string): Promise<string> {
  const folder = join(dataDir, 'database');
  if (await exists(folder)) {
    if (!(await exists(join(folder, 'PG_VERSION'))))
      throw new Invalid(
        `The database in ${folder} is damaged: PG_VERSION is missing. Restore the folder from a copy, or move it away to start with an empty one.`,
        { folder },
      );
    return folder;
  }
  const partial = join(dataDir, 'database.partial');
  await rm(partial, { recursive: true, force: true });
  const template = await prepareTemplate();
  if (template) {
    await cp(template, partial, { recursive: true });
    await chmod(partial, 0o700);
  } else {
    await mkdir(partial, { mode: 0o700 });
    await runChild({ type: 'initialise', folder: partial });
  }
  await rename(partial, folder);
  return folder;
}
