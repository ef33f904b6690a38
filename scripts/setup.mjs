/**
 * What every command of the project does first: look at Node, install from the lock when it changed, build when the
 * sources changed. Plain JavaScript without dependencies, because it runs before anything is installed.
 */
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = dirname(dirname(fileURLToPath(import.meta.url)));
const INSTALL_STAMP = join(root, 'node_modules', '.studio-installed');
const BUILD_STAMP = join(root, 'dist', '.built');

/** What the build reads. A change anywhere here makes it stale. */
const BUILD_INPUTS = [
  'app',
  'components',
  'server',
  'db',
  'messages',
  'public',
  'scripts/build.mjs',
  'next.config.ts',
  'postcss.config.mjs',
  'tsconfig.json',
  'package-lock.json',
];

/** Ends the process with one sentence. */
export function stop(message, code = 1) {
  process.stderr.write(`${message}\n`);
  process.exit(code);
}

export function checkNode() {
  const [major] = process.versions.node.split('.').map(Number);
  if (major < 20) stop(`Trajectory Studio needs Node.js 20 or newer; this is ${process.version}.`);
}

/** Runs a program, its output passed on to standard error; resolves with its exit code. */
export function runProgram(file, args, options = {}) {
  return new Promise((resolve) => {
    const child = spawn(file, args, { cwd: root, stdio: ['ignore', process.stderr, 'inherit'], ...options });
    child.on('error', (error) => {
      process.stderr.write(`${file} could not be started: ${error.message}\n`);
      resolve(127);
    });
    child.on('exit', (code, signal) => resolve(signal ? 128 : (code ?? 1)));
  });
}

export async function ensureInstalled() {
  const wanted = hashOf([join(root, 'package-lock.json')]);
  if (readStamp(INSTALL_STAMP) === wanted) return;
  await oneAtATime('install', async () => {
    if (readStamp(INSTALL_STAMP) === wanted) return;
    process.stderr.write('Installing packages from the lock file (once, about a minute) …\n');
    const npm = process.platform === 'win32' ? 'npm.cmd' : 'npm';
    const code = await runProgram(npm, ['ci', '--include=dev', '--no-audit', '--no-fund', '--loglevel=error']);
    if (code !== 0)
      stop(
        `The packages could not be installed (npm ci ended with ${code}). See its message above; the command is: npm ci`,
        1,
      );
    writeFileSync(INSTALL_STAMP, wanted);
  });
}

export async function ensureBuilt() {
  const wanted = buildHash();
  if (readStamp(BUILD_STAMP) === wanted) return;
  await oneAtATime('build', async () => {
    if (readStamp(BUILD_STAMP) === wanted) return;
    process.stderr.write('Building the studio (when sources changed, one to two minutes) …\n');
    const code = await runProgram(process.execPath, [join(root, 'scripts', 'build.mjs')]);
    if (code !== 0) stop(`The studio could not be built (the build ended with ${code}). See its message above.`, 1);
    writeFileSync(BUILD_STAMP, wanted);
  });
}

/** Everything `npm start` needs before it can start. */
export async function prepare() {
  checkNode();
  await ensureInstalled();
  await ensureBuilt();
}

export function buildHash() {
  return hashOf(BUILD_INPUTS.flatMap((path) => filesUnder(join(root, path))));
}

/** Two commands started together in one folder do not install or build over each other. */
async function oneAtATime(name, work) {
  const folder = join(root, '.cache', `${name}.lock`);
  mkdirSync(dirname(folder), { recursive: true });
  for (let waited = 0; ; waited++) {
    try {
      mkdirSync(folder);
      break;
    } catch (error) {
      if (error.code !== 'EEXIST') throw error;
      const owner = Number(readStamp(join(folder, 'pid')));
      if (owner && !isAlive(owner)) rmSync(folder, { recursive: true, force: true });
      else if (!owner && Date.now() - statSync(folder, { throwIfNoEntry: false })?.mtimeMs > 5000)
        rmSync(folder, { recursive: true, force: true });
      else {
        if (waited === 0) process.stderr.write(`Waiting for another ${name} in this folder …\n`);
        await new Promise((resolve) => setTimeout(resolve, 500));
      }
    }
  }
  writeFileSync(join(folder, 'pid'), String(process.pid));
  const release = () => rmSync(folder, { recursive: true, force: true });
  process.on('exit', release);
  try {
    await work();
  } finally {
    process.off('exit', release);
    release();
  }
}

function isAlive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code === 'EPERM';
  }
}

function readStamp(file) {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return null;
  }
}

function filesUnder(path) {
  if (!existsSync(path)) return [];
  if (statSync(path).isFile()) return [path];
  return readdirSync(path, { withFileTypes: true })
    .flatMap((entry) => (entry.isDirectory() ? filesUnder(join(path, entry.name)) : [join(path, entry.name)]))
    .filter((file) => !/\.(test|bench)\.tsx?$/.test(file));
}

function hashOf(files) {
  const hash = createHash('sha256').update(process.versions.node.split('.')[0]);
  for (const file of files.sort())
    hash.update(relative(root, file).split(sep).join('/')).update('\0').update(readFileSync(file)).update('\0');
  return hash.digest('hex');
}
