/**
 * A long-lived agent program on the other end of two pipes: it answers one request at a time. The agent is ours, what
 * runs beside it is not, so every frame is checked and a wrong one ends the agent.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import type { Readable, Writable } from 'node:stream';
import { Cancelled, Unavailable } from '../core/errors';
import { CappedOutput } from './output';

/** A program to start: always an argument vector, never a shell line. */
export interface Launch {
  argv: string[];
  env: Record<string, string>;
  cwd: string;
  /** Open files handed over as descriptors 3, 4, … */
  files: number[];
}

export interface AgentReply {
  status: 'success' | 'error' | 'timeout';
  valueText: string | null;
  exitCode: number | null;
  droppedBytes: number;
  output: CappedOutput;
}

/** Why a request got no answer from the agent. */
export type AgentFailure = { failure: 'overdue' | 'ended'; output: CappedOutput };

const START_MS = 20_000;
const STDERR_KEPT = 4096;
const FRAME_HEAD = 5;
/** A request's own text around code of any size, and what JSON adds to it. */
const REPLY_ALLOWANCE = 1024 * 1024;

interface Pending {
  output: CappedOutput;
  settle(result: AgentReply | AgentFailure): void;
}

export class AgentProcess {
  readonly pid: number;
  /** Resolves when the process is gone. */
  readonly ended: Promise<void>;
  #child: ChildProcess & { stdin: Writable; stdout: Readable };
  #alive = true;
  #pending: Pending | null = null;
  #ready: ((error: Unavailable | null) => void) | null = null;
  #stderr = '';
  #chunks: Buffer[] = [];
  #buffered = 0;
  readonly #largestReply: number;

  private constructor(child: ChildProcess, pid: number, outputBytes: number) {
    this.#child = child as ChildProcess & { stdin: Writable; stdout: Readable };
    this.pid = pid;
    this.#largestReply = outputBytes * 2 + REPLY_ALLOWANCE;
    this.ended = new Promise((resolve) => {
      child.once('close', () => {
        this.#gone();
        resolve();
      });
    });
    this.#child.stdin.on('error', () => this.kill());
    this.#child.stdout.on('error', () => this.kill());
    this.#child.stdout.on('data', (chunk: Buffer) => this.#receive(chunk));
    child.stderr?.on('data', (chunk: Buffer) => {
      if (this.#stderr.length < STDERR_KEPT) this.#stderr += chunk.toString('utf8').slice(0, STDERR_KEPT);
    });
  }

  /** Starts the program and waits for its first word. Rejects with Unavailable, with what it said on standard error. */
  static async start(launch: Launch, outputBytes: number): Promise<AgentProcess> {
    const [program, ...args] = launch.argv;
    if (program === undefined) throw new Error('A launch without a program.');
    const child = spawn(program, args, {
      cwd: launch.cwd,
      env: launch.env as NodeJS.ProcessEnv,
      stdio: ['pipe', 'pipe', 'pipe', ...launch.files],
      // Out of the terminal's process group: Ctrl-C is for the server, which then ends its sandboxes in order.
      detached: true,
    });
    const started = await new Promise<Error | number>((resolve) => {
      child.once('error', resolve);
      child.once('spawn', () => resolve(child.pid ?? 0));
    });
    if (typeof started !== 'number') throw new Unavailable(`${program} could not be started: ${started.message}.`);
    const agent = new AgentProcess(child, started, outputBytes);
    await agent.#firstWord();
    return agent;
  }

  get alive(): boolean {
    return this.#alive;
  }

  /** What the program said on standard error outside of any request, for a log or a reason. */
  get complaint(): string {
    return this.#stderr.trim();
  }

  /**
   * Sends one request. `overdue` after `limitMs` and `ended` when the agent died: both leave it dead.
   * Rejects with Unavailable when the agent was dead before, with Cancelled on abort (the agent is killed).
   */
  async request(
    message: Record<string, unknown>,
    options: { limitMs: number; outputBytes: number; signal?: AbortSignal },
  ): Promise<AgentReply | AgentFailure> {
    if (!this.#alive) throw new Unavailable('The sandbox has ended.', { complaint: this.complaint });
    if (this.#pending) throw new Error('The agent is busy with another request.');
    if (options.signal?.aborted) throw new Cancelled('The tool call was cancelled before it began.');
    const output = new CappedOutput(options.outputBytes);
    return new Promise((resolve, reject) => {
      const finish = () => {
        this.#pending = null;
        clearTimeout(timer);
        options.signal?.removeEventListener('abort', abort);
      };
      const abort = () => {
        finish();
        this.kill();
        reject(new Cancelled('The tool call was cancelled; its sandbox was ended.'));
      };
      const timer = setTimeout(() => {
        this.#pending?.settle({ failure: 'overdue', output });
        this.kill();
      }, options.limitMs);
      options.signal?.addEventListener('abort', abort, { once: true });
      this.#pending = {
        output,
        settle: (result) => {
          finish();
          resolve(result);
        },
      };
      const body = Buffer.from(JSON.stringify(message));
      const head = Buffer.alloc(4);
      head.writeUInt32BE(body.length);
      this.#child.stdin.write(head);
      this.#child.stdin.write(body);
    });
  }

  kill(): void {
    this.#alive = false;
    this.#child.kill('SIGKILL');
  }

  #firstWord(): Promise<void> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#ready?.(new Unavailable(`The sandbox did not start within ${START_MS / 1000} seconds.`));
        this.kill();
      }, START_MS);
      this.#ready = (error) => {
        this.#ready = null;
        clearTimeout(timer);
        if (error) reject(error);
        else resolve();
      };
    });
  }

  #gone(): void {
    this.#alive = false;
    const said = this.complaint;
    this.#ready?.(new Unavailable(`The sandbox ended while it started${said ? `: ${said}` : '.'}`));
    this.#pending?.settle({ failure: 'ended', output: this.#pending.output });
  }

  #receive(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#buffered += chunk.length;
    while (this.#buffered >= FRAME_HEAD) {
      if ((this.#chunks[0]?.length ?? 0) < FRAME_HEAD) this.#chunks = [Buffer.concat(this.#chunks)];
      const head = this.#chunks[0] as Buffer;
      const type = String.fromCharCode(head[0] ?? 0);
      const size = head.readUInt32BE(1);
      if (size > this.#largestReply) {
        this.#violation(`a frame of ${size} bytes`);
        return;
      }
      if (this.#buffered < FRAME_HEAD + size) return;
      const whole = this.#chunks.length === 1 ? head : Buffer.concat(this.#chunks);
      const rest = whole.subarray(FRAME_HEAD + size);
      this.#chunks = rest.length > 0 ? [rest] : [];
      this.#buffered = rest.length;
      this.#frame(type, whole.subarray(FRAME_HEAD, FRAME_HEAD + size));
    }
  }

  #frame(type: string, payload: Buffer): void {
    if (type === 'R' && this.#ready) this.#ready(null);
    const pending = this.#pending;
    // What a request still says after it was given up on belongs to nobody.
    if (!pending) return;
    if (type === 'O') pending.output.write('stdout', payload);
    else if (type === 'E') pending.output.write('stderr', payload);
    else {
      const reply = type === 'X' ? parseReply(payload) : null;
      if (!reply) {
        this.#violation(`a frame of type ${JSON.stringify(type)}`);
        return;
      }
      const droppedBytes = reply.droppedBytes + pending.output.droppedBytes;
      pending.settle({ ...reply, droppedBytes, output: pending.output });
    }
  }

  #violation(what: string): void {
    this.#stderr += `\nThe agent broke its protocol with ${what}.`;
    this.#chunks = [];
    this.#buffered = 0;
    this.kill();
  }
}

function parseReply(payload: Buffer): Omit<AgentReply, 'output'> | null {
  let reply: Partial<Record<keyof AgentReply, unknown>> | null;
  try {
    reply = JSON.parse(payload.toString('utf8')) as Record<string, unknown> | null;
  } catch {
    return null;
  }
  const { status, valueText, exitCode, droppedBytes } = reply ?? {};
  if (status !== 'success' && status !== 'error' && status !== 'timeout') return null;
  if (valueText !== null && typeof valueText !== 'string') return null;
  if (exitCode !== null && !Number.isInteger(exitCode)) return null;
  if (typeof droppedBytes !== 'number' || !Number.isSafeInteger(droppedBytes) || droppedBytes < 0) return null;
  return { status, valueText, exitCode: exitCode as number | null, droppedBytes };
}
