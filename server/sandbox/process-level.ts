/**
 * The level `process`: bubblewrap (namespaces, no network, a root of its own), a seccomp filter, limits by prlimit and,
 * where this host allows them, control groups. As root each sandbox runs as a user of its own.
 */
import { spawn } from 'node:child_process';
import { chmodSync, closeSync, existsSync, mkdtempSync, rmSync } from 'node:fs';
import { release, tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Ambient } from '../core/ambient';
import { AgentProcess, type Launch } from './agent-process';
import { AgentSandbox } from './agent-sandbox';
import { AGENT_FOLDER, bubblewrapArgs, HOME, type Inside } from './bubblewrap';
import { ControlGroups } from './control-groups';
import { HandedFile } from './handed-file';
import { everybodyMayRun, findProgram, type HostPython, linkOrCopy, NO_PYTHON } from './host-programs';
import { engineNodeFlags, javascriptProgram } from './javascript-program';
import { absentLevel, type LevelOnHost, type LevelSandbox } from './level';
import { NODE_ADDRESS_SPACE_BYTES, prlimitArgs, type SandboxLimits } from './limits';
import { OwnUsers } from './own-user';
import { pythonAgentSource } from './python-agent';
import type { SandboxRequest } from './sandbox';
import { seccompFilter } from './seccomp';

export interface ProcessLevelOptions {
  limits: SandboxLimits;
  ambient: Ambient;
  /** Host folders no sandbox may see, wherever they lie. */
  hide: string[];
  python: HostPython | null;
  /** Where bubblewrap is looked for; the system's folders by default. */
  programFolders?: readonly string[];
}

const TRIAL_MS = 15_000;
const SAID_KEPT = 2_000;
/** Reads numbers of files from its arguments up to `--`, joins those control groups, and becomes the command after it. */
const JOIN_SCRIPT = 'while [ "$1" != -- ]; do echo $$ > "$1" || exit 125; shift; done; shift; exec "$@"';
/** Looks what this host can do by really doing it. Never rejects. */
export async function processLevel(options: ProcessLevelOptions): Promise<LevelOnHost> {
  const tools = findTools(options);
  if (typeof tools === 'string') return absentLevel('process', tools);
  const workshop = new Workshop(options, tools);
  try {
    const refusal = await workshop.tryBubblewrap();
    if (refusal) {
      workshop.close();
      return absentLevel('process', refusal);
    }
    return await workshop.look();
  } catch (error) {
    workshop.close();
    return absentLevel('process', `Process sandboxes do not work on this host: ${messageOf(error)}`);
  }
}

interface Tools {
  bubblewrap: string;
  prlimit: string;
  /** Set when the server is root. */
  asUser: { setpriv: string; users: OwnUsers } | null;
  filter: Buffer;
}

/** The tools, or the sentence that says which is missing and what to do. */
function findTools(options: ProcessLevelOptions): Tools | string {
  if (process.platform !== 'linux')
    return `Process sandboxes need Linux; this host runs ${process.platform}. Use the level wasm for javascript.`;
  const filter = seccompFilter(process.arch);
  if (!filter) return `Process sandboxes need an x86-64 or 64-bit ARM processor; this one is ${process.arch}.`;
  const bubblewrap = findProgram('bwrap', options.programFolders);
  if (!bubblewrap)
    return 'bubblewrap is not installed on this host. Install it (for example: apt-get install bubblewrap) and start the studio again.';
  const prlimit = findProgram('prlimit', options.programFolders);
  const setpriv = findProgram('setpriv', options.programFolders);
  if (!prlimit || !setpriv)
    return 'prlimit or setpriv is not installed on this host. Install the package util-linux and start the studio again.';
  const users = OwnUsers.find(process.getuid?.() ?? 0, process.pid);
  if (users === 'no users')
    return 'The studio runs as root in a user namespace with too few users to give each sandbox one of its own. Run it as an ordinary user, or map more users.';
  return { bubblewrap, prlimit, asUser: users === 'not root' ? null : { setpriv, users }, filter };
}

class Workshop {
  readonly #options: ProcessLevelOptions;
  readonly #tools: Tools;
  readonly #groups: ControlGroups;
  readonly #files: { filter: HandedFile; pythonAgent: HandedFile; javascriptAgent: HandedFile; wasm: HandedFile };
  readonly #node: string;
  #nodeFolder: string | null = null;

  constructor(options: ProcessLevelOptions, tools: Tools) {
    this.#options = options;
    this.#tools = tools;
    this.#groups = ControlGroups.find(options.limits);
    const program = javascriptProgram();
    this.#files = {
      filter: new HandedFile(tools.filter),
      pythonAgent: new HandedFile(pythonAgentSource),
      javascriptAgent: new HandedFile(program.source),
      wasm: new HandedFile(program.wasm),
    };
    this.#node = this.#reachableNode();
  }

  /** Null when `true` runs inside, else why not. */
  async tryBubblewrap(): Promise<string | null> {
    const place = this.#place();
    const filter = this.#files.filter.open();
    try {
      // The filter's descriptor must be the same number inside bubblewrap: 3 is the first after the standard ones.
      const { argv } = this.#launch(place, { show: [], hide: [], files: [], filter: 3, command: ['/usr/bin/true'] }, [
        filter,
      ]);
      const said = await runOnce(argv, filter);
      if (said === null) return null;
      if (/namespace|uid map|Operation not permitted|Permission denied/i.test(said))
        return `bubblewrap may not make namespaces on this host (it said: ${said}). Allow unprivileged user namespaces (for example: sysctl kernel.unprivileged_userns_clone=1, on Ubuntu kernel.apparmor_restrict_unprivileged_userns=0; in a container, a security profile that permits them) and start the studio again.`;
      return `bubblewrap does not work on this host (it said: ${said}).`;
    } finally {
      closeSync(filter);
      await place.giveBack();
    }
  }

  async look(): Promise<LevelOnHost> {
    const { python } = this.#options;
    const lacks: string[] = [];
    const ready: LevelSandbox[] = [];
    const attempts: SandboxRequest[] = [
      { kind: 'python', code: 'print(1 + 1)', timeoutMs: TRIAL_MS },
      { kind: 'javascript', source: 'function main(n) { return n + 1; }', args: 1, env: {}, timeoutMs: TRIAL_MS },
    ];
    if (!python) {
      attempts.shift();
      lacks.push(NO_PYTHON);
    }
    await Promise.all(
      attempts.map(async (attempt) => {
        try {
          const sandbox = await this.create(attempt.kind);
          const outcome = await sandbox.run(attempt);
          if (outcome.status === 'success' && (outcome.stdout.trim() === '2' || outcome.value === 2))
            ready.push(sandbox);
          else {
            await sandbox.close();
            lacks.push(
              `A trial of ${attempt.kind} inside bubblewrap failed: ${outcome.stderr.trim() || outcome.status}`,
            );
          }
        } catch (error) {
          lacks.push(`A trial of ${attempt.kind} inside bubblewrap failed: ${messageOf(error)}`);
        }
      }),
    );
    return {
      level: 'process',
      kinds: ready.flatMap((sandbox) => sandbox.kinds).sort(),
      reason: lacks.length > 0 ? lacks.join(' ') : null,
      ready,
      create: (kind) => this.create(kind),
      close: async () => this.close(),
    };
  }

  async create(kind: SandboxRequest['kind']): Promise<LevelSandbox> {
    const { limits, ambient } = this.#options;
    const place = this.#place();
    const opened: number[] = [];
    try {
      const files = kind === 'python' ? [this.#files.pythonAgent] : [this.#files.javascriptAgent, this.#files.wasm];
      for (const file of [this.#files.filter, ...files]) opened.push(file.open());
      const agent = await AgentProcess.start(this.#launch(place, this.#inside(kind), opened), limits.outputBytes);
      return new AgentSandbox({ level: 'process', kind, agent, limits, ambient, afterwards: place.giveBack });
    } catch (error) {
      await place.giveBack();
      throw error;
    } finally {
      for (const fd of opened) closeSync(fd);
    }
  }

  close(): void {
    for (const file of Object.values(this.#files)) file.close();
    if (this.#nodeFolder) rmSync(this.#nodeFolder, { recursive: true, force: true });
  }

  #inside(kind: SandboxRequest['kind']): Inside {
    const { limits } = this.#options;
    const hide = this.#options.hide.filter((path) => existsSync(path));
    if (kind === 'python') {
      const python = this.#options.python as HostPython;
      const show: Inside['show'] =
        python.prefix === '/usr' || python.prefix === '/usr/local' ? [] : [[python.prefix, python.prefix]];
      const agent = `${AGENT_FOLDER}/agent.py`;
      const command = [python.program, '-I', '-B', agent, HOME, '/tmp', '/dev/shm'];
      return { show, hide, files: [[4, agent]], filter: 3, command: [...this.#limit(limits.memoryBytes), ...command] };
    }
    const [node, agent, wasm] = ['node', 'agent.cjs', 'engine.wasm'].map((name) => `${AGENT_FOLDER}/${name}`) as [
      string,
      string,
      string,
    ];
    const flags = engineNodeFlags();
    // Without the first flag each memory of the engine reserves more address space than the limit.
    const addressSpace = flags.includes('--disable-wasm-trap-handler') ? NODE_ADDRESS_SPACE_BYTES : null;
    return {
      show: [[this.#node, node]],
      hide,
      files: [
        [4, agent],
        [5, wasm],
      ],
      filter: 3,
      command: [...this.#limit(addressSpace), node, ...flags, agent, wasm],
    };
  }

  /** Applied inside: outside, the limit on processes would count all that the server's user runs. */
  #limit(addressSpaceBytes: number | null): string[] {
    const { limits } = this.#options;
    const processes = this.#tools.asUser || countsProcessesByNamespace(release()) ? limits.processes : null;
    return prlimitArgs(this.#tools.prlimit, limits, { addressSpaceBytes, processes });
  }

  /** A user and a control group for one sandbox. */
  #place(): { joinFiles: string[]; uid: number | null; giveBack(): Promise<void> } {
    const users = this.#tools.asUser?.users;
    const group = this.#groups.make(this.#options.limits);
    const uid = users ? users.take() : null;
    return {
      joinFiles: group.joinFiles,
      uid,
      giveBack: async () => {
        await group.remove();
        if (uid !== null) users?.giveBack(uid);
      },
    };
  }

  #launch(place: { joinFiles: string[]; uid: number | null }, inside: Inside, files: number[]): Launch {
    const argv: string[] = [];
    if (place.joinFiles.length > 0) argv.push('/bin/sh', '-c', JOIN_SCRIPT, 'sh', ...place.joinFiles, '--');
    if (this.#tools.asUser && place.uid !== null) {
      const id = String(place.uid);
      argv.push(this.#tools.asUser.setpriv, '--reuid', id, '--regid', id, '--clear-groups', '--');
    }
    argv.push(...bubblewrapArgs(this.#tools.bubblewrap, this.#options.limits, inside));
    return { argv, env: {}, cwd: '/', files };
  }

  /** Node itself, where the user of a sandbox can reach it: it may lie in root's home. */
  #reachableNode(): string {
    if (!this.#tools.asUser || everybodyMayRun(process.execPath)) return process.execPath;
    this.#nodeFolder = mkdtempSync(join(tmpdir(), 'ts-node-'));
    chmodSync(this.#nodeFolder, 0o755);
    const copy = join(this.#nodeFolder, 'node');
    linkOrCopy(process.execPath, copy);
    return copy;
  }
}

/** Since Linux 5.14 a limit on processes set in a user namespace counts that namespace alone. */
export function countsProcessesByNamespace(kernel: string): boolean {
  const [major = 0, minor = 0] = kernel.split('.').map((part) => Number.parseInt(part, 10));
  return major > 5 || (major === 5 && minor >= 14);
}

/** Null on exit code 0, else what the program said. `file` becomes descriptor 3. */
function runOnce([program = '', ...args]: string[], file: number): Promise<string | null> {
  return new Promise((resolve) => {
    const child = spawn(program, args, {
      cwd: '/',
      env: {} as NodeJS.ProcessEnv,
      stdio: ['ignore', 'ignore', 'pipe', file],
      timeout: TRIAL_MS,
      killSignal: 'SIGKILL',
    });
    let said = '';
    child.stderr?.on('data', (chunk: Buffer) => {
      said = (said + chunk.toString('utf8')).slice(0, SAID_KEPT);
    });
    child.once('error', (error) => resolve(error.message));
    child.once('close', (code, signal) =>
      resolve(code === 0 ? null : said.trim() || `it ended with ${signal ?? code}`),
    );
  });
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
