/**
 * `npm run bench -- [part …] [--model FILE]`: measures what the product promises about its own speed and prints one
 * JSON object on standard output, progress on standard error. Parts and figures: bench/README.md.
 */
import { spawn } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { cpus, loadavg } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { checkNode, ensureInstalled, root, stop } from './setup.mjs';

const PARTS = ['training', 'sequence', 'harness', 'inference', 'start', 'tokens'];
/** One level below the root, like dist/: what a bundle looks for beside the code is found from there. */
const OUT = '.cache';

checkNode();
const { values, positionals } = readArguments();
await ensureInstalled();
const figures = {};
const skipped = {};
const failed = {};
await bundle();
for (const part of PARTS.filter((name) => positionals.length === 0 || positionals.includes(name))) {
  process.stderr.write(`— ${part} (load ${loadavg()[0].toFixed(1)})\n`);
  try {
    const report = await runPart(part);
    Object.assign(figures, report.figures);
    Object.assign(skipped, report.skipped);
  } catch (error) {
    failed[part] = error.message;
  }
}
const machine = { node: process.version, cpu: cpus()[0]?.model ?? '', cpus: cpus().length, load: loadavg()[0] };
const broken = Object.keys(failed).length > 0;
process.stdout.write(`${JSON.stringify({ machine, figures, skipped, ...(broken ? { failed } : {}) }, null, 2)}\n`);
process.exit(broken ? 1 : 0);

function readArguments() {
  try {
    const parsed = parseArgs({ allowPositionals: true, options: { model: { type: 'string' } } });
    const unknown = parsed.positionals.find((name) => !PARTS.includes(name));
    if (unknown) stop(`There is no bench "${unknown}". There are: ${PARTS.join(', ')}.`, 2);
    return parsed;
  } catch (error) {
    return stop(error.message, 2);
  }
}

/** Bundled like the product: what is measured is what ships. */
async function bundle() {
  const { build } = await import('esbuild');
  mkdirSync(join(root, OUT), { recursive: true });
  await build({
    absWorkingDir: root,
    entryPoints: [
      ...PARTS.map((name) => ({ in: `bench/${name}.bench.ts`, out: `bench-${name}` })),
      { in: 'db/embedded/pglite-child.ts', out: 'pglite-child' },
      { in: 'server/inference/testing/twin/twin-child.ts', out: 'twin-child' },
    ],
    outdir: OUT,
    bundle: true,
    platform: 'node',
    format: 'esm',
    packages: 'external',
    target: 'node20',
    sourcemap: 'linked',
    logLevel: 'warning',
  });
}

/** A process of its own, so that no part is compiled for, or filled up by, another. */
function runPart(name) {
  return new Promise((resolve, reject) => {
    const file = join(root, OUT, `bench-${name}.js`);
    const args = ['--expose-gc', '--max-old-space-size=3072', file, root, ...(values.model ? [values.model] : [])];
    const child = spawn(process.execPath, args, { cwd: root, stdio: ['ignore', 'pipe', 'inherit'] });
    let printed = '';
    child.stdout.setEncoding('utf8').on('data', (text) => {
      printed += text;
    });
    child.on('error', reject);
    child.on('close', (code, signal) => {
      if (code !== 0) return reject(new Error(`The bench ${name} ended with ${signal ?? code}.`));
      resolve(JSON.parse(printed.trim().split('\n').at(-1)));
    });
  });
}
