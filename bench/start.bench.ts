/**
 * The built studio as a person meets it: seconds from the command to the first page, with a new data folder and with
 * one that was used before, and the memory of all its processes after a sample run.
 * Arguments: [model.gguf] for a checkout without the tutorial's model.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { loadavg, tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { boundedFigure, type Figure, printReport, progress, round } from './figure';

const [root = '', model] = process.argv.slice(2);
const STARTS = 3;
const START_LIMIT_MS = 120_000;
const MIB = 2 ** 20;

interface Running {
  child: ChildProcess;
  seconds: number;
  /** Of the whole process tree until the first page. */
  cpuSeconds: number;
  /** How long the server's main thread was ready and other programs had the cores. */
  waitedSeconds: number;
}

function environment(dataDir: string): NodeJS.ProcessEnv {
  return {
    ...process.env,
    NODE_ENV: 'production',
    NEXT_TELEMETRY_DISABLED: '1',
    STUDIO_DATA_DIR: dataDir,
    STUDIO_LOG_LEVEL: 'warn',
    PORT: '0',
    HOST: '127.0.0.1',
    DATABASE_URL: '',
    STUDIO_PUBLIC_URL: '',
  };
}

async function start(dataDir: string): Promise<Running> {
  const started = performance.now();
  const child = spawn(process.execPath, [join(root, 'dist', 'main.js')], {
    cwd: root,
    env: environment(dataDir),
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const timer = setTimeout(() => child.kill('SIGKILL'), START_LIMIT_MS);
  const address = await new Promise<string>((done, fail) => {
    let printed = '';
    child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      printed += text;
      const found = /^Open (\S+)\n/m.exec(printed);
      if (found?.[1]) done(found[1]);
    });
    child.once('exit', (code) => fail(new Error(`The studio ended with ${code} before it printed its address.`)));
  });
  const { origin, searchParams } = new URL(address);
  const signedIn = await fetch(`${origin}/api/sign-in`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', origin },
    body: JSON.stringify({ token: searchParams.get('token') }),
  });
  const cookie = signedIn.headers.getSetCookie().map((line) => line.split(';')[0]);
  if (signedIn.status !== 200) throw new Error(`Signing in answered ${signedIn.status}: ${await signedIn.text()}`);
  const page = await fetch(`${origin}/`, { headers: { cookie: cookie.join('; ') } });
  const html = await page.text();
  const seconds = (performance.now() - started) / 1000;
  if (page.status !== 200 || !html.includes('</html>')) throw new Error(`The first page answered ${page.status}.`);
  clearTimeout(timer);
  const [, waitedNs] = (read(`/proc/${child.pid}/schedstat`) ?? '').split(' ');
  return {
    child,
    seconds,
    cpuSeconds: cpuSecondsOf(treeOf(child.pid ?? 0)),
    waitedSeconds: Number(waitedNs ?? 0) / 1e9,
  };
}

async function stop({ child }: Running): Promise<void> {
  const exited = new Promise((done) => child.once('exit', done));
  child.kill('SIGTERM');
  await exited;
}

/** The process and all below it. */
function treeOf(pid: number): number[] {
  const parents = new Map<number, number>();
  for (const name of readdirSync('/proc')) {
    const stat = /^\d+$/.test(name) ? read(`/proc/${name}/stat`) : null;
    if (stat) parents.set(Number(name), Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]));
  }
  const tree = [pid];
  for (const known of tree) for (const [child, parent] of parents) if (parent === known) tree.push(child);
  return tree;
}

/** Of those that live and of those they waited for, in ticks of 10 ms. */
function cpuSecondsOf(pids: readonly number[]): number {
  let ticks = 0;
  for (const pid of pids) {
    const stat = read(`/proc/${pid}/stat`);
    const fields = stat?.slice(stat.lastIndexOf(')') + 2).split(' ') ?? [];
    for (const field of [11, 12, 13, 14]) ticks += Number(fields[field] ?? 0);
  }
  return ticks / 100;
}

/** PSS counts a page that several processes share once; RSS counts it for each. */
function memoryOf(pids: readonly number[]): { pssMb: number; rssMb: number } {
  let [pss, rss] = [0, 0];
  for (const pid of pids) {
    const rollup = read(`/proc/${pid}/smaps_rollup`) ?? '';
    const own = [/^Pss:\s+(\d+)/m, /^Rss:\s+(\d+)/m].map((field) => Number(field.exec(rollup)?.[1] ?? 0) * 1024);
    const command = (read(`/proc/${pid}/cmdline`) ?? '').split('\0').slice(0, 4).join(' ');
    progress(`start:   ${round((own[0] ?? 0) / MIB)} MiB PSS, ${round((own[1] ?? 0) / MIB)} MiB RSS: ${command}`);
    pss += own[0] ?? 0;
    rss += own[1] ?? 0;
  }
  return { pssMb: pss / 1e6, rssMb: rss / 1e6 };
}

function read(file: string): string | null {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return null; // The process has ended meanwhile.
  }
}

async function cli(dataDir: string, ...args: string[]): Promise<string> {
  const command = promisify(execFile)(process.execPath, [join(root, 'dist', 'cli.js'), ...args], {
    cwd: root,
    env: environment(dataDir),
    timeout: 300_000,
  });
  return (await command).stdout;
}

async function measure(): Promise<Record<string, Figure>> {
  const figures: Record<string, Figure> = {};
  const folders: string[] = [];
  try {
    const seconds: Record<string, number[]> = { new: [], used: [] };
    const cpu: Record<string, number[]> = { new: [], used: [] };
    const waited: Record<string, number[]> = { new: [], used: [] };
    for (let turn = 0; turn < STARTS; turn++) {
      const dataDir = await mkdtemp(join(tmpdir(), 'ts-bench-'));
      folders.push(dataDir);
      for (const kind of ['new', 'used']) {
        const running = await start(dataDir);
        seconds[kind]?.push(running.seconds);
        cpu[kind]?.push(running.cpuSeconds);
        waited[kind]?.push(running.waitedSeconds);
        progress(
          `start: ${kind} folder: first page after ${round(running.seconds)} s (${round(running.cpuSeconds)} s of CPU, ${round(running.waitedSeconds)} s waiting for a core, load ${round(loadavg()[0] ?? 0)})`,
        );
        await stop(running);
      }
    }
    for (const kind of ['new', 'used']) {
      figures[`start: first page, ${kind} data folder`] = boundedFigure(seconds[kind] ?? [], 's', { below: 6 });
      figures[`start: CPU to the first page, ${kind} data folder`] = boundedFigure(cpu[kind] ?? [], 's', null);
      figures[`start: of it the main thread's wait for a core, ${kind} data folder`] = boundedFigure(
        waited[kind] ?? [],
        's',
        null,
      );
    }
    Object.assign(figures, await memoryAfterRun(folders[0] ?? ''));
  } finally {
    for (const folder of folders) await rm(folder, { recursive: true, force: true });
  }
  return figures;
}

async function memoryAfterRun(dataDir: string): Promise<Record<string, Figure>> {
  const running = await start(dataDir);
  try {
    const chosen: string[] = [];
    if (model) {
      await cli(dataDir, 'backend', 'bench', '--model', resolve(model));
      chosen.push('--backend', 'bench');
    }
    const sample = ['--skill', 'tutorial', '--dataset', 'tutorial', '--tasks', '16', '--group-size', '8', '--json'];
    const report = await cli(dataDir, 'rollout', ...sample, ...chosen);
    const { completed, trajectories, seconds } = JSON.parse(report) as Record<string, number>;
    progress(`start: sample run: ${completed} of ${trajectories} trajectories in ${seconds} s`);
    const { pssMb, rssMb } = memoryOf(treeOf(running.child.pid ?? 0));
    return {
      'start: memory of all processes after a sample run': boundedFigure([pssMb], 'MB', { below: 800 }),
      'start: resident memory of all processes, shared pages counted for each': boundedFigure([rssMb], 'MB', null),
      'start: sample run': boundedFigure([seconds ?? Number.NaN], 's', null),
    };
  } finally {
    await stop(running);
  }
}

const hasModel = Boolean(model) || existsSync(join(root, 'samples', 'models', 'tutorial.gguf'));
if (!existsSync(join(root, 'dist', 'main.js')) || !existsSync(join(root, '.next', 'BUILD_ID')))
  printReport({ skipped: { start: 'The studio is not built here. Build it with: npm run build' } });
else if (!existsSync('/proc/self/smaps_rollup'))
  printReport({ skipped: { start: 'The memory of a process tree is read from /proc, which this system has not.' } });
else if (!hasModel)
  printReport({ skipped: { start: "The tutorial's model is not here. Name one with: --model FILE" } });
else printReport({ figures: await measure() });
