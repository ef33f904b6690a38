/**
 * A place to run what a model asked for. A file an isolation level; the pool hands sandboxes out and takes them back.
 */
import type { Json, SandboxLevel } from '../core/vocabulary';

export type SandboxRequest =
  /** Runs as a fresh program; what it prints is the output. */
  | { kind: 'python'; code: string; timeoutMs: number }
  /** `source` defines `function main(args, env)`; its JSON-able return value is the value. */
  | { kind: 'javascript'; source: string; args: Json; env: Json; timeoutMs: number };

export interface SandboxOutcome {
  status: 'success' | 'error' | 'timeout';
  stdout: string;
  stderr: string;
  /** Return value of a javascript request. */
  value: Json;
  exitCode: number | null;
  /** Bytes dropped because the output passed the pool's cap; 0 almost always. */
  droppedBytes: number;
  durationMs: number;
}

export interface Sandbox {
  readonly level: SandboxLevel;
  readonly kinds: readonly SandboxRequest['kind'][];
  /** Never rejects for what the code did; rejects with Unavailable when the sandbox itself is broken, Cancelled on abort. */
  run(request: SandboxRequest, signal?: AbortSignal): Promise<SandboxOutcome>;
  /** Back to a clean state; rejects when it cannot, and the pool replaces it. */
  reset(): Promise<void>;
  /** Kills everything inside. */
  close(): Promise<void>;
}

export interface SandboxLease {
  sandbox: Sandbox;
  /** Resets and gives it back; safe to call twice. */
  release(): Promise<void>;
}

export interface SandboxPool {
  /** Which levels work on this host, and for the others the sentence that says why not. */
  levels(): { level: SandboxLevel; available: boolean; reason: string | null; kinds: SandboxRequest['kind'][] }[];
  /**
   * The wanted level, or the strongest accepted one that this host has and that runs `kind`; waits up to 30 s (TimedOut).
   * Unavailable, with the reason, when the host has none of them: never downgraded past what `accept` names.
   */
  acquire(want: {
    level: SandboxLevel;
    accept: readonly SandboxLevel[];
    kind: SandboxRequest['kind'];
    signal?: AbortSignal;
  }): Promise<SandboxLease>;
  stats(): { level: SandboxLevel; size: number; busy: number; waiting: number; replaced: number }[];
  close(): Promise<void>;
}
