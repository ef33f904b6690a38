/** Runs commands of the studio's command line against the studio of this data folder, which is started and kept open when none runs. */
import { spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { root, stop } from './setup.mjs';

const cli = join(root, 'dist', 'cli.js');

/**
 * @param {string[]} rollout the run to make
 * @param {string[][]} before commands that must have succeeded first
 */
export async function runWithStudio(rollout, before = []) {
  process.env.NODE_ENV = 'production';
  process.env.NEXT_TELEMETRY_DISABLED = '1';
  if (!(await isRunning())) {
    await import(pathToFileURL(join(root, 'dist', 'main.js')).href);
    // main.ts has written server.json by the time its module is evaluated, or has ended the process with a sentence.
  }
  for (const args of before) await command(args);
  const report = JSON.parse(await command(rollout));
  const link = (await command(['sign-in', '--next', `/runs/${report.run_id}`])).trim();
  process.stdout.write(
    `\n${report.completed} of ${report.trajectories} trajectories in ${report.seconds} s, mean reward ${report.mean_reward?.toFixed(3) ?? '–'}\nSee the run: ${link}\n`,
  );
}

/** Resolves with what the command printed on standard output. */
function command(args) {
  return new Promise((done) => {
    let out = '';
    const child = spawn(process.execPath, [cli, ...args], {
      cwd: root,
      stdio: ['ignore', 'pipe', 'inherit'],
      env: process.env,
    });
    child.stdout.setEncoding('utf8').on('data', (text) => {
      out += text;
    });
    child.on('exit', (code) =>
      code === 0 ? done(out) : stop(`The command "studio ${args.join(' ')}" ended with ${code}.`, code ?? 1),
    );
  });
}

async function isRunning() {
  const file = join(resolve(process.env.STUDIO_DATA_DIR || '.data'), 'server.json');
  if (!existsSync(file)) return false;
  try {
    const { url } = JSON.parse(readFileSync(file, 'utf8'));
    return (await fetch(`${url}/healthz`, { signal: AbortSignal.timeout(3000) })).ok;
  } catch {
    return false;
  }
}
