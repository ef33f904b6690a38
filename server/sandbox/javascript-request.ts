/** Requests and replies of the JavaScript engine, the same at every level. */
import type { SandboxLimits } from './limits';
import { readableJson } from './output';
import type { SandboxOutcome, SandboxRequest } from './sandbox';

/** Past the program's own limit, before its sandbox is killed from outside. */
export const KILL_AFTER_MS = 500;

export function engineRequest(
  request: Extract<SandboxRequest, { kind: 'javascript' }>,
  limits: SandboxLimits,
): Record<string, unknown> {
  return {
    source: request.source,
    args: JSON.stringify(request.args),
    env: JSON.stringify(request.env),
    timeoutMs: allowedMs(request.timeoutMs, limits),
    memoryBytes: limits.engineMemoryBytes,
    stackBytes: limits.engineStackBytes,
    outputBytes: limits.outputBytes,
  };
}

/** Whole milliseconds an execution gets: what it asks for, at most the limit, at least one. */
export function allowedMs(timeoutMs: number, limits: SandboxLimits): number {
  return Math.max(1, Math.floor(Math.min(timeoutMs, limits.executionMs)));
}

/** The outcome of a reply whose output is readable text already; a value that cannot be read is an error of the program. */
export function outcomeOf(reply: {
  status: SandboxOutcome['status'];
  valueText: string | null;
  stdout: string;
  stderr: string;
  exitCode: number | null;
  droppedBytes: number;
  durationMs: number;
}): SandboxOutcome {
  const { valueText, ...rest } = reply;
  const outcome = { ...rest, value: null };
  if (valueText === null) return outcome;
  try {
    return { ...outcome, value: readableJson(valueText) };
  } catch {
    return {
      ...outcome,
      status: 'error',
      stderr: `${outcome.stderr}The returned value is nested too deeply to be read.\n`,
    };
  }
}
