/** The token view in a real browser without a GPU, measured by e2e/token-view.bench.ts; here its figures meet their targets. */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { boundedFigure, type Figure, printReport, progress } from './figure';

const TOKENS = 100_000;
const TURNS = 3;
const CHROMIUM = '/usr/bin/chromium';

interface Measured {
  tokens: number;
  kind?: string;
  firstPaintMs: number;
  framesPerSecond: number;
  errors: string[];
}

async function measureOnce(root: string): Promise<Measured> {
  const program = [join(root, 'node_modules', 'tsx', 'dist', 'cli.mjs'), join(root, 'e2e', 'token-view.bench.ts')];
  const { stdout } = await promisify(execFile)(process.execPath, program, { cwd: root, timeout: 300_000 });
  const lines = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Measured);
  const wanted = lines.find((line) => line.tokens === TOKENS && !line.kind);
  if (!wanted) throw new Error(`The token view was not measured with ${TOKENS} tokens.`);
  if (wanted.errors.length > 0) throw new Error(`The token view failed: ${wanted.errors.join('; ')}`);
  return wanted;
}

async function measure(root: string): Promise<Record<string, Figure>> {
  const runs: Measured[] = [];
  for (let turn = 0; turn < TURNS; turn++) {
    const run = await measureOnce(root);
    progress(`tokens: first paint after ${run.firstPaintMs} ms, ${run.framesPerSecond} frames/s`);
    runs.push(run);
  }
  const paints = runs.map((run) => run.firstPaintMs);
  const frames = runs.map((run) => run.framesPerSecond);
  return {
    'tokens: first paint of 100,000 after the data is asked for': boundedFigure(paints, 'ms', { below: 1000 }),
    'tokens: frames while scrolling 100,000': boundedFigure(frames, 'frames/s', { atLeast: 55 }),
  };
}

const [root = ''] = process.argv.slice(2);
if (!existsSync(CHROMIUM))
  printReport({ skipped: { tokens: 'There is no Chromium here. Install one with: apt-get install chromium' } });
else printReport({ figures: await measure(root) });
