/**
 * Real inference servers for tests, started on a free port of this machine and ended with everything they started. Where
 * their programs are stands in the environment (STUDIO_TEST_VLLM, STUDIO_TEST_LLAMA_SERVER); `npm run test:servers` sets it.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import type { AddressInfo } from 'node:net';
import { createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

export interface RealServer {
  url: string;
  /** What it wrote so far, the end of it. */
  log(): string;
  /** Resolves when its processes have ended. */
  stop(): Promise<void>;
}

export interface ServerCommand {
  program: string;
  /** Arguments for a port. */
  args: (port: number) => string[];
  environment?: Record<string, string>;
  /** Answers 200 when the server is ready. Default `/health`. */
  ready?: string;
  /** Limit against hanging. Default ten minutes. */
  timeoutMs?: number;
}

const LOG_CHARS = 20_000;
const END_MS = 20_000;

/** Throws with the end of what the server wrote when it ends before it is ready, or does not become ready in time. */
export async function startServer(command: ServerCommand): Promise<RealServer> {
  const { program, args, environment = {}, ready = '/health', timeoutMs = 600_000 } = command;
  const port = await freePort();
  // A group of its own: the server's children end with it.
  const child = spawn(program, args(port), {
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...environment },
  });
  let written = '';
  const keep = (data: Buffer) => {
    written = (written + data.toString()).slice(-LOG_CHARS);
  };
  child.stdout?.on('data', keep);
  child.stderr?.on('data', keep);
  child.on('error', (error) => keep(Buffer.from(String(error))));
  const ended = new Promise<void>((resolve) => {
    child.on('close', () => resolve());
    child.on('error', () => resolve());
  });
  const server: RealServer = {
    url: `http://127.0.0.1:${port}`,
    log: () => written,
    stop: () => endGroup(child, ended),
  };
  const endOfTest = () => signalGroup(child, 'SIGKILL');
  process.once('exit', endOfTest);
  ended.then(() => process.removeListener('exit', endOfTest));
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined)
      throw new Error(`${program} ended before it was ready:\n${written}`);
    if (await answers(`${server.url}${ready}`)) return server;
    if (performance.now() > deadline) {
      await server.stop();
      throw new Error(`${program} was not ready within ${timeoutMs / 1000} s:\n${written}`);
    }
    await sleep(250);
  }
}

/** vLLM on the processor, in development mode, with exact numbers (float32) and every route the studio uses. */
export function startVllm(
  program: string,
  folder: string,
  { contextLength, lora = false }: { contextLength: number; lora?: boolean },
): Promise<RealServer> {
  const structuredOutputs = { backend: 'xgrammar', disable_any_whitespace: true };
  return startServer({
    program,
    args: (port) => [
      ...['serve', folder, '--host', '127.0.0.1', '--port', String(port)],
      ...['--dtype', 'float32', '--max-model-len', String(contextLength), '--max-num-seqs', '32'],
      ...['--enforce-eager', '--generation-config', 'vllm', '--enable-scale-out'],
      // On the processor, a prompt that is read in parts ends the engine when its request has a seed.
      ...['--no-enable-chunked-prefill', '--max-num-batched-tokens', String(Math.max(4096, contextLength))],
      // A model of random weights would write blanks between the parts of a JSON value for as long as it may.
      ...['--structured-outputs-config', JSON.stringify(structuredOutputs)],
      ...(lora ? ['--enable-lora'] : []),
    ],
    environment: {
      VLLM_SERVER_DEV_MODE: '1',
      ...(lora && { VLLM_ALLOW_RUNTIME_LORA_UPDATING: 'True' }),
      VLLM_CPU_KVCACHE_SPACE: '1',
      VLLM_TARGET_DEVICE: 'cpu',
      VLLM_NO_USAGE_STATS: '1',
      HF_HUB_OFFLINE: '1',
    },
  });
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((ready) => server.listen(0, '127.0.0.1', ready));
  const { port } = server.address() as AddressInfo;
  await new Promise((closed) => server.close(closed));
  return port;
}

async function answers(url: string): Promise<boolean> {
  try {
    return (await fetch(url, { signal: AbortSignal.timeout(5000) })).ok;
  } catch {
    return false;
  }
}

async function endGroup(child: ChildProcess, ended: Promise<void>): Promise<void> {
  signalGroup(child, 'SIGTERM');
  const late = sleep(END_MS, 'late', { ref: false });
  if ((await Promise.race([ended, late])) !== 'late') return;
  signalGroup(child, 'SIGKILL');
  await ended;
}

function signalGroup(child: ChildProcess, signal: NodeJS.Signals): void {
  if (child.pid === undefined) return;
  try {
    process.kill(-child.pid, signal);
  } catch (error) {
    // The group has ended by itself.
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}
