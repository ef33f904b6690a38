/** What a level of isolation offers on this host. A file a level makes one of these. */
import type { SandboxLevel } from '../core/vocabulary';
import type { Sandbox, SandboxRequest } from './sandbox';

/** A sandbox as its level makes it. */
export interface LevelSandbox extends Sandbox {
  /** False once it has ended, by itself too: the kernel may end an idle one when memory is short. */
  readonly alive: boolean;
}

export interface LevelOnHost {
  level: SandboxLevel;
  /** Kinds of request that were really run at this level when it was looked at; empty when it is not available. */
  kinds: SandboxRequest['kind'][];
  /** Why it is not available, or what it lacks; null when it lacks nothing. */
  reason: string | null;
  /** Sandboxes that the trial left behind, ready for use. */
  ready: LevelSandbox[];
  /** Starts one more. Rejects with Unavailable. */
  create(kind: SandboxRequest['kind']): Promise<LevelSandbox>;
  /** After all its sandboxes are closed. */
  close(): Promise<void>;
}

/** A level that cannot be used here. */
export function absentLevel(level: SandboxLevel, reason: string): LevelOnHost {
  return {
    level,
    kinds: [],
    reason,
    ready: [],
    create: () => Promise.reject(new Error(`The level ${level} is not available: ${reason}`)),
    close: async () => {},
  };
}
