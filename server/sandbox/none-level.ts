/**
 * The level `none`: a plain child process of the server, as the server's user, with its files and its network. Only for
 * skills that name it. Where the host has `prlimit`, limits of each process hold.
 */
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Ambient } from '../core/ambient';
import { AgentProcess } from './agent-process';
import { AgentSandbox } from './agent-sandbox';
import { findProgram, type HostPython, NO_PYTHON } from './host-programs';
import { engineNodeFlags, javascriptProgram } from './javascript-program';
import type { LevelOnHost, LevelSandbox } from './level';
import { prlimitArgs, type SandboxLimits } from './limits';
import { PlainPython } from './plain-python';
import type { SandboxRequest } from './sandbox';

const AGENT = 'agent.cjs';
const ENGINE = 'engine.wasm';

/** Never rejects. */
export async function noneLevel(options: {
  limits: SandboxLimits;
  ambient: Ambient;
  python: HostPython | null;
}): Promise<LevelOnHost> {
  const { limits, ambient, python } = options;
  const prlimit = process.platform === 'linux' ? findProgram('prlimit') : null;
  const tie = await endsWithServer();
  const limited = (addressSpaceBytes: number | null): string[] => [
    ...tie,
    // A limit on processes would count all that the server's user runs.
    ...(prlimit ? prlimitArgs(prlimit, limits, { addressSpaceBytes, processes: null }) : []),
  ];

  // Made when the first skill asks for this level: most never do.
  let folder: string | null = null;
  const engineFolder = (): string => {
    if (folder) return folder;
    folder = mkdtempSync(join(tmpdir(), 'ts-none-'));
    const program = javascriptProgram();
    writeFileSync(join(folder, AGENT), program.source);
    writeFileSync(join(folder, ENGINE), program.wasm);
    return folder;
  };

  const create = async (kind: SandboxRequest['kind']): Promise<LevelSandbox> => {
    if (kind === 'python') {
      if (!python) throw new Error('The level none was asked for python, which this host lacks.');
      return new PlainPython({ launcher: limited(limits.memoryBytes), python: python.program, limits, ambient });
    }
    const cwd = engineFolder();
    const argv = [...limited(null), process.execPath, ...engineNodeFlags(), join(cwd, AGENT), join(cwd, ENGINE)];
    const agent = await AgentProcess.start({ argv, env: {}, cwd, files: [] }, limits.outputBytes);
    return new AgentSandbox({ level: 'none', kind, agent, limits, ambient, afterwards: async () => {} });
  };
  return {
    level: 'none',
    kinds: python ? ['javascript', 'python'] : ['javascript'],
    reason: python ? null : NO_PYTHON,
    ready: [],
    create,
    close: async () => {
      if (folder) rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** The beginning of an argument vector whose program is killed when the server dies; empty where the host cannot. */
async function endsWithServer(): Promise<string[]> {
  const setpriv = process.platform === 'linux' ? findProgram('setpriv') : null;
  if (!setpriv) return [];
  const tie = [setpriv, '--pdeathsig', 'KILL', '--'];
  try {
    // Older versions do not know the option.
    await promisify(execFile)(setpriv, [...tie.slice(1), 'true'], { timeout: 10_000 });
    return tie;
  } catch {
    return [];
  }
}
