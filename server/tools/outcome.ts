/** From what a sandbox reports to what a tool reports. */
import { isStudioError } from '../core/errors';
import type { SandboxLease, SandboxOutcome, SandboxRequest } from '../sandbox/sandbox';
import type { ToolContext, ToolOutcome } from './tool';

/** An execution gets this much at most; the call's own limit may be shorter. */
const EXECUTION_MS = 30_000;

/**
 * Takes a sandbox, runs the request the function makes, gives the sandbox back. A missing sandbox is an error outcome,
 * a full pool a timeout, a stop on request a cancelled one; nothing of the three rejects.
 */
export async function runInSandbox(
  context: ToolContext,
  request: (timeoutMs: number) => SandboxRequest,
  toOutcome: (outcome: SandboxOutcome) => Pick<ToolOutcome, 'status' | 'output' | 'value' | 'error'>,
): Promise<ToolOutcome> {
  const { level, accept } = context.sandbox;
  const begun = performance.now();
  let lease: SandboxLease | null = null;
  try {
    lease = await context.sandboxes.acquire({
      level,
      accept,
      kind: request(EXECUTION_MS).kind,
      signal: context.signal,
    });
    // Waiting for a sandbox is part of the call.
    const left = context.timeoutMs - (performance.now() - begun);
    if (left <= 0) return failure('timeout', 'The time for this call ran out while it waited for a sandbox.', lease);
    const outcome = await lease.sandbox.run(request(Math.min(EXECUTION_MS, left)), context.signal);
    return { ...toOutcome(outcome), sandboxLevel: lease.sandbox.level };
  } catch (error) {
    if (!isStudioError(error)) throw error;
    const status = error.code === 'cancelled' ? 'cancelled' : error.code === 'timeout' ? 'timeout' : 'error';
    return failure(status, error.message, lease);
  } finally {
    await lease?.release();
  }
}

function failure(status: ToolOutcome['status'], error: string, lease: SandboxLease | null): ToolOutcome {
  return { status, output: '', value: null, error, sandboxLevel: lease?.sandbox.level ?? null };
}

/** The last line of a program's complaint: in most languages it names the error. */
export function lastLine(text: string): string | null {
  return text.trimEnd().split('\n').at(-1)?.trim() || null;
}

/** A line for the model when output passed the cap of the sandbox. */
export function droppedLine(droppedBytes: number): string {
  return droppedBytes === 0 ? '' : `\n[${droppedBytes} bytes of output were dropped: it passed the limit of one call]`;
}
