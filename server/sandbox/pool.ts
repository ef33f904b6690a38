/**
 * Hands sandboxes out and takes them back. Each level and kind in use has a lane: a first-come-first-served queue, a few
 * sandboxes kept warm, more started when callers really wait, and the surplus ended when it has been idle for a while.
 */
import { totalmem } from 'node:os';
import type { Ambient } from '../core/ambient';
import { Unavailable } from '../core/errors';
import { SANDBOX_LEVELS, type SandboxLevel } from '../core/vocabulary';
import type { Logger } from '../observability/logger';
import { findPython } from './host-programs';
import { Lane } from './lane';
import { absentLevel, type LevelOnHost } from './level';
import { DEFAULT_LIMITS, type SandboxLimits } from './limits';
import { noneLevel } from './none-level';
import { processLevel } from './process-level';
import type { SandboxPool, SandboxRequest } from './sandbox';
import { wasmLevel } from './wasm-level';

export interface SandboxPoolOptions {
  logger: Logger;
  ambient: Ambient;
  /** Most sandboxes of one level and kind alive at a time; fewer where the machine's memory does not bear so many. */
  size?: number;
  limits?: Partial<SandboxLimits>;
  /** Host folders no sandbox may see (the data folder, the studio's own). */
  hide?: string[];
  /** The text of PATH, for a Python that is not the system's. */
  searchPath?: string;
  /** How long `acquire` waits. */
  acquireMs?: number;
  /** How long a sandbox that is not needed stays. */
  idleMs?: number;
  /** Where bubblewrap is looked for; the system's folders by default. */
  programFolders?: readonly string[];
}

export const DEFAULT_POOL_SIZE = 16;
const ACQUIRE_MS = 30_000;
const IDLE_MS = 20_000;
/** A JavaScript sandbox holds about this much; together they get a quarter of the machine's memory. */
const SANDBOX_BYTES = 64 * 1024 * 1024;
const MEMORY_SHARE = 4;
const FEWEST = 2;

/**
 * How a lane of a kind grows. A javascript call takes a few milliseconds and its process holds some 50 MB: a burst is
 * better served in turn, and only calls that take long bring more, one a second. A python call starts a program, and its
 * agent is small: as many as are asked for.
 */
const GROWTH: Record<SandboxRequest['kind'], { warm: number; growAfterMs: number }> = {
  javascript: { warm: 1, growAfterMs: 1_000 },
  python: { warm: 2, growAfterMs: 0 },
};

/** At most `wanted`, at most what `memoryBytes` of machine bears, at least two. */
export function bearableSize(wanted: number, memoryBytes: number): number {
  const bearable = Math.max(FEWEST, Math.floor(memoryBytes / MEMORY_SHARE / SANDBOX_BYTES));
  return Math.min(wanted, bearable);
}

/** Finds out what this host can do (by doing it, about a second) and opens the pool. Never rejects for what the host lacks. */
export async function createSandboxPool(options: SandboxPoolOptions): Promise<SandboxPool> {
  const { logger, ambient, hide = [], searchPath = '' } = options;
  const limits = { ...DEFAULT_LIMITS, ...options.limits };
  const folders = options.programFolders ? { programFolders: options.programFolders } : {};
  const python = await findPython(searchPath);
  const found = await Promise.all([
    noneLevel({ limits, ambient, python }),
    wasmLevel({ limits, ambient }),
    processLevel({ limits, ambient, hide, python, ...folders }),
  ]);
  const onHost = new Map<SandboxLevel, LevelOnHost>(found.map((level) => [level.level, level]));
  for (const level of SANDBOX_LEVELS)
    if (!onHost.has(level))
      onHost.set(
        level,
        absentLevel(level, `This version has no ${level === 'vm' ? 'virtual machine' : level} level yet.`),
      );
  for (const { level, kinds, reason } of onHost.values()) {
    // `level` is the log line's own.
    logger.info({ sandbox: level, kinds, reason }, 'sandbox level');
    // The level that skills want by default: that it is missing should be read before a call fails.
    if (level === 'process' && reason !== null) logger.warn(`No process sandboxes on this host: ${reason}`);
  }

  const wanted = options.size ?? DEFAULT_POOL_SIZE;
  const size = bearableSize(wanted, totalmem());
  if (size < wanted) logger.warn({ wanted, size }, 'fewer sandboxes than wanted: this machine has too little memory');

  const lanes: { level: SandboxLevel; kind: SandboxRequest['kind']; lane: Lane }[] = [];
  for (const level of found)
    for (const kind of level.kinds)
      lanes.push({
        level: level.level,
        kind,
        lane: new Lane({
          name: `${level.level}/${kind}`,
          size,
          ...GROWTH[kind],
          acquireMs: options.acquireMs ?? ACQUIRE_MS,
          idleMs: options.idleMs ?? IDLE_MS,
          logger,
          ready: level.ready.filter((sandbox) => sandbox.kinds.includes(kind)),
          create: () => level.create(kind),
        }),
      });

  const laneOf = (level: SandboxLevel, kind: SandboxRequest['kind']) =>
    lanes.find((entry) => entry.level === level && entry.kind === kind)?.lane;

  return {
    levels: () =>
      SANDBOX_LEVELS.map((level) => {
        const { kinds, reason } = onHost.get(level) as LevelOnHost;
        return { level, available: kinds.length > 0, reason, kinds: [...kinds] };
      }),

    async acquire({ level, accept, kind, signal }) {
      const named = [level, ...[...SANDBOX_LEVELS].reverse().filter((name) => accept.includes(name) && name !== level)];
      for (const name of named) {
        const lane = laneOf(name, kind);
        if (lane) return lane.acquire(signal);
      }
      const reasons = named.map((name) => `${name}: ${onHost.get(name)?.reason ?? `it does not run ${kind}.`}`);
      throw new Unavailable(
        `No sandbox that the skill accepts runs ${kind} on this host. ${reasons.join(' ')} Another level is used only if the skill names it under sandbox.accept.`,
        { level, accept, kind },
      );
    },

    stats: () =>
      SANDBOX_LEVELS.filter((level) => lanes.some((entry) => entry.level === level)).map((level) => {
        const own = lanes.filter((entry) => entry.level === level).map((entry) => entry.lane.stats());
        const sum = (key: 'size' | 'busy' | 'waiting' | 'replaced') =>
          own.reduce((total, stats) => total + stats[key], 0);
        return { level, size: sum('size'), busy: sum('busy'), waiting: sum('waiting'), replaced: sum('replaced') };
      }),

    async close() {
      await Promise.all(lanes.map((entry) => entry.lane.close()));
      await Promise.all(found.map((level) => level.close()));
    },
  };
}
