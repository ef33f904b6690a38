/** A sandbox whose inside is one agent process: the levels `process` and, for javascript, `none`. */
import type { Ambient } from '../core/ambient';
import { Unavailable } from '../core/errors';
import type { SandboxLevel } from '../core/vocabulary';
import type { AgentProcess, AgentReply } from './agent-process';
import { allowedMs, engineRequest, KILL_AFTER_MS, outcomeOf } from './javascript-request';
import type { LevelSandbox } from './level';
import type { SandboxLimits } from './limits';
import type { SandboxOutcome, SandboxRequest } from './sandbox';

/** After a python program is killed, its agent still empties the pipes. */
const PYTHON_KILL_AFTER_MS = 2_000;
const RESET_MS = 10_000;

export interface AgentSandboxParts {
  level: SandboxLevel;
  kind: SandboxRequest['kind'];
  agent: AgentProcess;
  limits: SandboxLimits;
  ambient: Ambient;
  /** What is to be given back once the agent is gone. */
  afterwards(): Promise<void>;
}

export class AgentSandbox implements LevelSandbox {
  readonly level: SandboxLevel;
  readonly kinds: readonly SandboxRequest['kind'][];
  readonly #parts: AgentSandboxParts;
  #closing: Promise<void> | null = null;

  constructor(parts: AgentSandboxParts) {
    this.level = parts.level;
    this.kinds = [parts.kind];
    this.#parts = parts;
  }

  /** Process number of the outermost process, for measurements. */
  get pid(): number {
    return this.#parts.agent.pid;
  }

  get alive(): boolean {
    return this.#parts.agent.alive && !this.#closing;
  }

  async run(request: SandboxRequest, signal?: AbortSignal): Promise<SandboxOutcome> {
    const { agent, limits, kind, ambient } = this.#parts;
    if (request.kind !== kind) throw new Unavailable(`This sandbox runs ${kind}, not ${request.kind}.`);
    const timeoutMs = allowedMs(request.timeoutMs, limits);
    const { outputBytes } = limits;
    const message =
      request.kind === 'python'
        ? { op: 'run', code: request.code, timeoutMs, outputBytes }
        : engineRequest(request, limits);
    const started = ambient.now();
    const reply = await agent.request(message, {
      limitMs: timeoutMs + (kind === 'python' ? PYTHON_KILL_AFTER_MS : KILL_AFTER_MS),
      // The agent caps what it sends; ours is the one that is trusted.
      outputBytes,
      ...(signal ? { signal } : {}),
    });
    const durationMs = ambient.now() - started;
    const text = { stdout: reply.output.text('stdout'), stderr: reply.output.text('stderr') };
    if ('failure' in reply) {
      await this.close();
      const overdue = reply.failure === 'overdue';
      const sentence = overdue
        ? `The program ran past its limit of ${timeoutMs} ms; its sandbox was ended.`
        : `The sandbox ended during this call, most likely because the program used more than its ${mebibytes(limits.memoryBytes)} MiB of memory.`;
      return outcomeOf({
        ...text,
        stderr: `${text.stderr}${sentence}\n`,
        status: overdue ? 'timeout' : 'error',
        valueText: null,
        exitCode: null,
        droppedBytes: reply.output.droppedBytes,
        durationMs,
      });
    }
    return outcomeOf({ ...pick(reply), ...text, durationMs });
  }

  async reset(): Promise<void> {
    const { agent, kind } = this.#parts;
    if (!this.alive) throw new Unavailable('The sandbox has ended.');
    // The engine makes a new instance for every call: there is nothing to clean.
    if (kind === 'javascript') return;
    const reply = await agent.request({ op: 'reset' }, { limitMs: RESET_MS, outputBytes: 0 });
    if ('failure' in reply) throw new Unavailable('The sandbox could not be cleaned.', { complaint: agent.complaint });
  }

  close(): Promise<void> {
    this.#closing ??= (async () => {
      this.#parts.agent.kill();
      await this.#parts.agent.ended;
      await this.#parts.afterwards();
    })();
    return this.#closing;
  }
}

function pick(reply: AgentReply) {
  const { status, valueText, exitCode, droppedBytes } = reply;
  return { status, valueText, exitCode, droppedBytes };
}

function mebibytes(bytes: number): number {
  return Math.round(bytes / (1024 * 1024));
}
