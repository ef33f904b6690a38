/** What the tests of the sandboxes share. */
import { readdirSync, readFileSync } from 'node:fs';
import { systemAmbient } from '../core/ambient';
import type { SandboxLevel } from '../core/vocabulary';
import { silentLogger } from '../observability/logger';
import { createSandboxPool, type SandboxPoolOptions } from './pool';
import type { SandboxOutcome, SandboxPool, SandboxRequest } from './sandbox';

export function openPool(options: Partial<SandboxPoolOptions> = {}): Promise<SandboxPool> {
  return createSandboxPool({ logger: silentLogger, ambient: systemAmbient(), ...options });
}

/** One request in a sandbox of exactly this level. */
export async function runAt(
  pool: SandboxPool,
  level: SandboxLevel,
  request: SandboxRequest,
  signal?: AbortSignal,
): Promise<SandboxOutcome> {
  const lease = await pool.acquire({ level, accept: [level], kind: request.kind });
  try {
    return await lease.sandbox.run(request, signal);
  } finally {
    await lease.release();
  }
}

export const python = (code: string, timeoutMs = 20_000): SandboxRequest => ({ kind: 'python', code, timeoutMs });
export const javascript = (body: string, timeoutMs = 20_000): SandboxRequest => ({
  kind: 'javascript',
  source: `function main(args, env) { ${body} }`,
  args: { n: 5 },
  env: { secret: 7 },
  timeoutMs,
});

/** Whether this host runs `kind` at the level; prints why not, so that a skipped check is seen. */
export function runsHere(pool: SandboxPool, level: SandboxLevel, kind: SandboxRequest['kind']): boolean {
  const state = pool.levels().find((entry) => entry.level === level);
  const runs = state?.kinds.includes(kind) ?? false;
  if (!runs) console.warn(`not checked here: ${kind} at level ${level}: ${state?.reason}`);
  return runs;
}

/** Command lines of all processes on this host that contain the mark. */
export function processesWith(mark: string): string[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((name) => {
      try {
        return readFileSync(`/proc/${name}/cmdline`, 'utf8').replaceAll('\0', ' ');
      } catch {
        return '';
      }
    })
    .filter((line) => line.includes(mark));
}

/** Numbers of the processes that a process started and that are still there. */
export function childrenOf(parent: number): string[] {
  return readdirSync('/proc').filter((name) => {
    try {
      return /^\d+$/.test(name) && readFileSync(`/proc/${name}/status`, 'utf8').includes(`\nPPid:\t${parent}\n`);
    } catch {
      return false;
    }
  });
}

/** Waits for something that happens a moment later; the test's own time limit ends a wait in vain. */
export async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 20));
}
