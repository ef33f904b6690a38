/**
 * Control groups bound what a whole sandbox uses, where this process may make them: version 1 (a tree for each
 * controller) or version 2 (one tree). Where it may not, the limits of each process remain.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { SandboxLimits } from './limits';

const PREFIX = 'trajectory-studio-';
const PERIOD_US = 100_000;
const REMOVE_TRIES = 20;
const REMOVE_PAUSE_MS = 25;

export interface ControlGroup {
  /** Files a process writes its number to in order to be bound. */
  joinFiles: string[];
  /** Removes the group once its processes are gone. */
  remove(): Promise<void>;
}

interface Tree {
  /** Folder under which groups can be made. */
  root: string;
  controllers: ('memory' | 'cpu' | 'pids')[];
  version: 1 | 2;
}

/** Names are counted over the whole process: several pools may live in one. */
let made = 0;
const newName = () => `${PREFIX}${process.pid}-${made++}`;

export class ControlGroups {
  readonly #trees: Tree[];

  private constructor(trees: Tree[]) {
    this.#trees = trees;
  }

  /** Looks what can be made under `mount` by making it. Also removes what servers that are gone left behind. */
  static find(limits: SandboxLimits, mount = '/sys/fs/cgroup'): ControlGroups {
    const trees = candidates(mount).filter((tree) => {
      removeLeftovers(tree.root);
      return works(tree, limits);
    });
    return new ControlGroups(trees);
  }

  /** What is bound, for people. */
  get controllers(): string[] {
    return this.#trees.flatMap((tree) => tree.controllers);
  }

  make(limits: SandboxLimits): ControlGroup {
    const name = newName();
    const folders: string[] = [];
    try {
      for (const tree of this.#trees) {
        const folder = join(tree.root, name);
        mkdirSync(folder);
        folders.push(folder);
        setLimits(folder, tree, limits);
      }
    } catch (error) {
      for (const folder of folders) tryRemove(folder);
      throw error;
    }
    return {
      joinFiles: folders.map((folder) => join(folder, 'cgroup.procs')),
      remove: async () => {
        // A killed process leaves its group a moment after it was reported dead.
        for (let i = 0; i < REMOVE_TRIES && !folders.map(tryRemove).every(Boolean); i++)
          await new Promise((resolve) => setTimeout(resolve, REMOVE_PAUSE_MS));
      },
    };
  }
}

function candidates(mount: string): Tree[] {
  if (existsSync(join(mount, 'cgroup.controllers'))) {
    const enabled = read(join(mount, 'cgroup.subtree_control')).split(/\s+/);
    const controllers = (['memory', 'cpu', 'pids'] as const).filter((name) => enabled.includes(name));
    return controllers.length > 0 ? [{ root: mount, controllers, version: 2 }] : [];
  }
  return (['memory', 'cpu', 'pids'] as const).map((name) => ({
    root: join(mount, name),
    controllers: [name],
    version: 1 as const,
  }));
}

function works(tree: Tree, limits: SandboxLimits): boolean {
  const folder = join(tree.root, newName());
  try {
    mkdirSync(folder);
    setLimits(folder, tree, limits);
    return true;
  } catch {
    return false;
  } finally {
    tryRemove(folder);
  }
}

function setLimits(folder: string, tree: Tree, limits: SandboxLimits): void {
  const set = (file: string, value: number | string) => writeFileSync(join(folder, file), String(value));
  const quota = Math.round(limits.cores * PERIOD_US);
  if (tree.version === 2) {
    if (tree.controllers.includes('memory')) {
      set('memory.max', limits.memoryBytes);
      if (existsSync(join(folder, 'memory.swap.max')))
        set('memory.swap.max', limits.memoryAndSwapBytes - limits.memoryBytes);
    }
    if (tree.controllers.includes('cpu')) set('cpu.max', `${quota} ${PERIOD_US}`);
    if (tree.controllers.includes('pids')) set('pids.max', limits.processes);
    return;
  }
  if (tree.controllers.includes('memory')) {
    set('memory.limit_in_bytes', limits.memoryBytes);
    // Absent where the kernel does not count swap.
    if (existsSync(join(folder, 'memory.memsw.limit_in_bytes')))
      set('memory.memsw.limit_in_bytes', limits.memoryAndSwapBytes);
  }
  if (tree.controllers.includes('cpu')) {
    set('cpu.cfs_period_us', PERIOD_US);
    set('cpu.cfs_quota_us', quota);
  }
  if (tree.controllers.includes('pids')) set('pids.max', limits.processes);
}

function removeLeftovers(root: string): void {
  if (!existsSync(root)) return;
  for (const name of readdirSync(root)) {
    const owner = name.startsWith(PREFIX) ? Number.parseInt(name.slice(PREFIX.length), 10) : Number.NaN;
    if (Number.isInteger(owner) && owner !== process.pid && !existsSync(`/proc/${owner}`)) tryRemove(join(root, name));
  }
}

/** True when the folder is gone. */
function tryRemove(folder: string): boolean {
  try {
    rmdirSync(folder);
    return true;
  } catch {
    return !existsSync(folder);
  }
}

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}
