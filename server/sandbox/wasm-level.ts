/**
 * The level `wasm`: QuickJS compiled to WebAssembly in a worker thread of this process. No files, no network, on every
 * host; limits of memory, stack and time. The thread can be killed in an endless loop.
 */
import { Worker } from 'node:worker_threads';
import type { Ambient } from '../core/ambient';
import { Cancelled, Unavailable } from '../core/errors';
import { type JavascriptProgram, javascriptProgram } from './javascript-program';
import { allowedMs, engineRequest, KILL_AFTER_MS, outcomeOf } from './javascript-request';
import { absentLevel, type LevelOnHost, type LevelSandbox } from './level';
import { ENGINE_THREAD_STACK_MB, type SandboxLimits } from './limits';
import { readable } from './output';
import type { SandboxOutcome, SandboxRequest } from './sandbox';

const START_MS = 20_000;
/** Of the thread around the engine; the engine's own memory is limited apart. */
const THREAD_LIMITS = { maxOldGenerationSizeMb: 128, maxYoungGenerationSizeMb: 4, stackSizeMb: ENGINE_THREAD_STACK_MB };

interface Reply {
  status: SandboxOutcome['status'];
  valueText: string | null;
  stdout: string;
  stderr: string;
  droppedBytes: number;
}

/** Looks whether the engine runs here. Never rejects. */
export async function wasmLevel(options: { limits: SandboxLimits; ambient: Ambient }): Promise<LevelOnHost> {
  try {
    const program = javascriptProgram();
    // Compiled once, shared by all threads.
    const wasmModule = await WebAssembly.compile(program.wasm);
    const create = () => WasmSandbox.start(program, wasmModule, options);
    const first = await create();
    const source = 'function main(n) { return n + 1; }';
    const outcome = await first.run({ kind: 'javascript', source, args: 1, env: {}, timeoutMs: 10_000 });
    if (outcome.value === 2)
      return { level: 'wasm', kinds: ['javascript'], reason: null, ready: [first], create, close: async () => {} };
    await first.close();
    return absentLevel('wasm', `A trial of the JavaScript engine failed: ${outcome.stderr.trim() || outcome.status}`);
  } catch (error) {
    return absentLevel('wasm', `The JavaScript engine does not start on this host: ${(error as Error).message}`);
  }
}

class WasmSandbox implements LevelSandbox {
  readonly level = 'wasm';
  readonly kinds = ['javascript'] as const;
  readonly #worker: Worker;
  readonly #limits: SandboxLimits;
  readonly #ambient: Ambient;
  #alive = true;
  #calls = 0;
  /** Of the request under way: with a reply, or with null when the thread ended. */
  #settle: ((reply: Reply | null) => void) | null = null;

  private constructor(worker: Worker, options: { limits: SandboxLimits; ambient: Ambient }) {
    this.#worker = worker;
    this.#limits = options.limits;
    this.#ambient = options.ambient;
    worker.on('message', (message: { id: number; reply: Reply }) => {
      if (message.id === this.#calls) this.#settle?.(message.reply);
    });
    worker.on('exit', () => {
      this.#alive = false;
      this.#settle?.(null);
    });
  }

  static async start(
    program: JavascriptProgram,
    wasmModule: WebAssembly.Module,
    options: { limits: SandboxLimits; ambient: Ambient },
  ): Promise<LevelSandbox> {
    const worker = new Worker(program.source, {
      eval: true,
      workerData: { wasmModule },
      // Nothing of the server's own: no variables, no arguments, no loaders, no output streams.
      env: {},
      argv: [],
      execArgv: [],
      stdout: true,
      stderr: true,
      resourceLimits: THREAD_LIMITS,
    });
    await new Promise<void>((resolve, reject) => {
      const fail = (what: string) => reject(new Unavailable(`The JavaScript engine's thread did not start: ${what}.`));
      const timer = setTimeout(() => fail(`it was silent for ${START_MS / 1000} seconds`), START_MS);
      worker.once('message', () => resolve());
      worker.once('exit', () => fail('it ended'));
      // Stays for good: an error without a listener would end the server.
      worker.on('error', (error) => fail((error as Error).message));
      worker.once('message', () => clearTimeout(timer));
      worker.once('exit', () => clearTimeout(timer));
    }).catch(async (error: unknown) => {
      await worker.terminate();
      throw error;
    });
    worker.removeAllListeners('message');
    return new WasmSandbox(worker, options);
  }

  get alive(): boolean {
    return this.#alive;
  }

  async run(request: SandboxRequest, signal?: AbortSignal): Promise<SandboxOutcome> {
    if (request.kind !== 'javascript') throw new Unavailable(`This sandbox runs javascript, not ${request.kind}.`);
    if (!this.#alive) throw new Unavailable('The sandbox has ended.');
    if (signal?.aborted) throw new Cancelled('The tool call was cancelled before it began.');
    if (this.#settle) throw new Error('The sandbox is busy with another request.');
    const timeoutMs = allowedMs(request.timeoutMs, this.#limits);
    const started = this.#ambient.now();
    const id = ++this.#calls;
    let overdue = false;
    const reply = await new Promise<Reply | null>((resolve, reject) => {
      const finish = () => {
        this.#settle = null;
        clearTimeout(timer);
        signal?.removeEventListener('abort', abort);
      };
      const abort = () => {
        finish();
        void this.close();
        reject(new Cancelled('The tool call was cancelled; its sandbox was ended.'));
      };
      const timer = setTimeout(() => {
        overdue = true;
        void this.close();
      }, timeoutMs + KILL_AFTER_MS);
      signal?.addEventListener('abort', abort, { once: true });
      this.#settle = (result) => {
        finish();
        resolve(result);
      };
      this.#worker.postMessage({ id, request: engineRequest(request, this.#limits) });
    });
    const durationMs = this.#ambient.now() - started;
    if (reply) {
      const text = { stdout: readable(reply.stdout), stderr: readable(reply.stderr) };
      return outcomeOf({ ...reply, ...text, exitCode: null, durationMs });
    }
    const stderr = overdue
      ? `The program ran past its limit of ${timeoutMs} ms; its sandbox was ended.\n`
      : 'The sandbox ended during this call, most likely because the program used too much memory.\n';
    const status = overdue ? 'timeout' : 'error';
    return outcomeOf({ status, stdout: '', stderr, valueText: null, exitCode: null, droppedBytes: 0, durationMs });
  }

  async reset(): Promise<void> {
    // Every call has an instance of the engine of its own: there is nothing to clean.
    if (!this.#alive) throw new Unavailable('The sandbox has ended.');
  }

  async close(): Promise<void> {
    this.#alive = false;
    await this.#worker.terminate();
  }
}
