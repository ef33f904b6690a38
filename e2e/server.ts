/** Starts the built studio on a fresh data folder and a free port, as a person would, and reads its address from what it prints. */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = dirname(dirname(fileURLToPath(import.meta.url)));

export interface RunningStudio {
  url: string;
  /** Good for one sign-in. */
  signInUrl: string;
  dataDir: string;
  process: ChildProcess;
  /** Everything it wrote so far. */
  output(): string;
  /** Asks it to end and waits. */
  stop(): Promise<number | null>;
}

export async function startStudioProcess(
  options: { dataDir?: string; env?: Record<string, string>; entry?: string } = {},
): Promise<RunningStudio> {
  const dataDir = options.dataDir ?? (await mkdtemp(join(tmpdir(), 'studio-e2e-')));
  const child = spawn(process.execPath, [options.entry ?? join(root, 'dist', 'main.js')], {
    cwd: root,
    env: {
      ...process.env,
      NODE_ENV: 'production',
      NEXT_TELEMETRY_DISABLED: '1',
      STUDIO_DATA_DIR: dataDir,
      PORT: '0',
      STUDIO_LOG_LEVEL: 'warn',
      ...options.env,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  const exited = new Promise<number | null>((resolve) => child.on('exit', (code) => resolve(code)));
  const signInUrl = await new Promise<string>((resolve, reject) => {
    const read = (text: string): void => {
      output += text;
      const found = /Open (\S+\/sign-in\?token=\S+)/.exec(output);
      if (found?.[1]) resolve(found[1]);
    };
    child.stdout.setEncoding('utf8').on('data', read);
    child.stderr.setEncoding('utf8').on('data', read);
    void exited.then((code) => reject(new Error(`The studio ended with ${code} before it was open:\n${output}`)));
  });
  return {
    url: new URL(signInUrl).origin,
    signInUrl,
    dataDir,
    process: child,
    output: () => output,
    stop: () => {
      child.kill('SIGTERM');
      return exited;
    },
  };
}

export async function removeDataDir(dataDir: string): Promise<void> {
  await rm(dataDir, { recursive: true, force: true, maxRetries: 3 });
}
