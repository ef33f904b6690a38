/** Finds the programs of this host that sandboxes are made with. */
import { execFile } from 'node:child_process';
import { accessSync, chmodSync, constants, copyFileSync, linkSync, realpathSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
const SYSTEM_FOLDERS = ['/usr/bin', '/bin', '/usr/sbin', '/sbin'];

export function findProgram(name: string, folders: readonly string[] = SYSTEM_FOLDERS): string | null {
  for (const folder of folders) {
    const path = join(folder, name);
    try {
      accessSync(path, constants.X_OK);
      if (statSync(path).isFile()) return path;
    } catch {
      // Not in this folder.
    }
  }
  return null;
}

export const NO_PYTHON =
  'No python3 is installed on this host: python tools cannot run. Install Python 3.8 or newer and start the studio again.';

export interface HostPython {
  /** Real path of the interpreter. */
  program: string;
  /** Folder that holds its library; inside /usr for a system Python. */
  prefix: string;
}

/** The first python3 that runs: the system's, else one in `searchPath` (the text of PATH). */
export async function findPython(searchPath: string): Promise<HostPython | null> {
  const others = searchPath.split(':').filter((folder) => folder.startsWith('/'));
  for (const folder of [...SYSTEM_FOLDERS, '/usr/local/bin', ...others]) {
    const path = findProgram('python3', [folder]);
    if (!path) continue;
    try {
      const { stdout } = await run(path, ['-I', '-c', 'import sys; print(sys.executable); print(sys.base_prefix)'], {
        timeout: 10_000,
        env: {} as NodeJS.ProcessEnv,
      });
      const [executable, prefix] = stdout.trim().split('\n');
      if (executable && prefix) return { program: realpathSync(executable), prefix: realpathSync(prefix) };
    } catch {
      // A shim or a broken installation; the next one may work.
    }
  }
  return null;
}

/** Whether any user may run this file: its own mode and that of every folder above it. */
export function everybodyMayRun(path: string): boolean {
  const everybody = (at: string, bits: number) => (statSync(at).mode & bits) === bits;
  if (!everybody(path, 0o005)) return false;
  for (let folder = dirname(path); folder !== dirname(folder); folder = dirname(folder))
    if (!everybody(folder, 0o001)) return false;
  return true;
}

/** A file that everybody may run: the same one under another name where that is possible, else a copy. */
export function linkOrCopy(path: string, to: string): void {
  try {
    if ((statSync(path).mode & 0o005) !== 0o005) throw new Error('The file itself is closed to others.');
    linkSync(path, to);
  } catch {
    copyFileSync(path, to);
    chmodSync(to, 0o755);
  }
}
