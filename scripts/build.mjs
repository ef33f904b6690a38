/** Builds what `npm start` runs: the server, the command line and their child processes into dist/, the pages into .next/. */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { build } from 'esbuild';
import { root, runProgram } from './setup.mjs';

/** One file each in dist/, named after the source; the child processes are found there by name (server/child-entry.ts). */
export const ENTRIES = [
  'server/main.ts',
  'server/cli.ts',
  'db/embedded/pglite-child.ts',
  'server/inference/embedded/llama-child.ts',
  'db/embedded/prepare-template.ts',
];

rmSync(join(root, 'dist'), { recursive: true, force: true });
// Left by development; a production build on top of it takes stale types into account.
rmSync(join(root, '.next', 'dev'), { recursive: true, force: true });

await build({
  absWorkingDir: root,
  entryPoints: ENTRIES,
  outdir: 'dist',
  entryNames: '[name]',
  bundle: true,
  splitting: true,
  chunkNames: 'chunk-[hash]',
  platform: 'node',
  format: 'esm',
  packages: 'external',
  target: 'node20',
  sourcemap: 'linked',
  logLevel: 'warning',
});
const code = await runProgram(process.execPath, [join(root, 'node_modules', 'next', 'dist', 'bin', 'next'), 'build'], {
  env: { ...process.env, NODE_ENV: 'production', NEXT_TELEMETRY_DISABLED: '1' },
});
if (code !== 0) process.exit(code);
process.exit(await runProgram(process.execPath, [join(root, 'dist', 'prepare-template.js')]));
