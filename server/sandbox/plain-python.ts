/** Python at the level `none`: each request a child process in a process group of its own, which is killed at its end. */
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Ambient } from '../core/ambient';
import { Cancelled, Unavailable } from '../core/errors';
import { allowedMs, outcomeOf } from './javascript-request';
import type { LevelSandbox } from './level';
import type { SandboxLimits } from './limits';
import { CappedOutput } from './output';
import type { SandboxOutcome, SandboxRequest } from './sandbox';

/** A process that left its group may hold the pipes open; the call does not wait for it. */
const DRAIN_MS = 1_000;

export class PlainPython implements LevelSandbox {
  readonly level = 'none';
  readonly kinds = ['python'] as const;
  readonly #options: { launcher: string[]; python: string; limits: SandboxLimits; ambient: Ambient };
  #folder = newFolder();
  readonly #groups = new Set<number>();
  #closed = false;

  constructor(options: { launcher: string[]; python: string; limits: SandboxLimits; ambient: Ambient }) {
    this.#options = options;
  }

  get alive(): boolean {
    return !this.#closed;
  }

  async run(request: SandboxRequest, signal?: AbortSignal): Promise<SandboxOutcome> {
    const { launcher, python, limits, ambient } = this.#options;
    if (request.kind !== 'python') throw new Unavailable(`This sandbox runs python, not ${request.kind}.`);
    if (this.#closed) throw new Unavailable('The sandbox has ended.');
    if (signal?.aborted) throw new Cancelled('The tool call was cancelled before it began.');
    const program = join(this.#folder, 'program.py');
    writeFileSync(program, request.code);
    const [command = python, ...args] = [...launcher, python, '-E', '-s', '-B', '-X', 'utf8', program];
    const timeoutMs = allowedMs(request.timeoutMs, limits);
    const output = new CappedOutput(limits.outputBytes);
    const started = ambient.now();
    // Detached: the child leads a group, and the group can be killed as one.
    const child = spawn(command, args, {
      cwd: this.#folder,
      env: {
        PATH: '/usr/local/bin:/usr/bin:/bin',
        HOME: this.#folder,
        LANG: 'C.UTF-8',
      } as unknown as NodeJS.ProcessEnv,
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true,
    });
    const group = child.pid;
    if (group !== undefined) this.#groups.add(group);
    let timedOut = false;
    let cancelled = false;
    const kill = () => killGroup(group);
    const abort = () => {
      cancelled = true;
      kill();
    };
    const timer = setTimeout(() => {
      timedOut = true;
      kill();
    }, timeoutMs);
    signal?.addEventListener('abort', abort, { once: true });
    child.stdout.on('data', (chunk: Buffer) => output.write('stdout', chunk));
    child.stderr.on('data', (chunk: Buffer) => output.write('stderr', chunk));
    const end = await new Promise<{ code: number | null; problem: string }>((resolve) => {
      child.once('error', (error) =>
        resolve({ code: null, problem: `Python could not be started: ${error.message}\n` }),
      );
      child.once('exit', (code) => {
        kill();
        const drained = () => resolve({ code, problem: '' });
        const patience = setTimeout(drained, DRAIN_MS);
        child.once('close', () => {
          clearTimeout(patience);
          drained();
        });
      });
    });
    clearTimeout(timer);
    signal?.removeEventListener('abort', abort);
    child.stdout.destroy();
    child.stderr.destroy();
    if (group !== undefined) this.#groups.delete(group);
    if (cancelled) throw new Cancelled('The tool call was cancelled; its process was ended.');
    return outcomeOf({
      status: timedOut ? 'timeout' : end.code === 0 ? 'success' : 'error',
      stdout: output.text('stdout'),
      stderr: output.text('stderr') + end.problem,
      valueText: null,
      exitCode: timedOut ? null : end.code,
      droppedBytes: output.droppedBytes,
      durationMs: ambient.now() - started,
    });
  }

  async reset(): Promise<void> {
    if (this.#closed) throw new Unavailable('The sandbox has ended.');
    rmSync(this.#folder, { recursive: true, force: true });
    this.#folder = newFolder();
  }

  async close(): Promise<void> {
    this.#closed = true;
    for (const group of this.#groups) killGroup(group);
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

function newFolder(): string {
  return mkdtempSync(join(tmpdir(), 'ts-none-'));
}

function killGroup(group: number | undefined): void {
  if (group === undefined) return;
  try {
    process.kill(-group, 'SIGKILL');
  } catch {
    // Nobody of the group is left.
  }
}
