/** What one sandbox may use. Sizes in bytes, times in milliseconds. */
export interface SandboxLimits {
  /** Memory of the whole sandbox where control groups allow, else of each of its processes. */
  memoryBytes: number;
  /** Memory and swap together, where control groups allow. */
  memoryAndSwapBytes: number;
  /** Share of one core, where control groups allow. */
  cores: number;
  /** Processes and threads alive at a time. */
  processes: number;
  openFiles: number;
  /** Largest file that can be written. */
  fileBytes: number;
  /** Size of each of the two writable folders, /tmp and the home folder. */
  folderBytes: number;
  sharedMemoryBytes: number;
  /** Longest execution, whatever the request asks for. */
  executionMs: number;
  /** Output kept of one execution; the rest is counted. */
  outputBytes: number;
  /** Memory of a JavaScript program inside the engine. */
  engineMemoryBytes: number;
  engineStackBytes: number;
}

const MIB = 1024 * 1024;

export const DEFAULT_LIMITS: SandboxLimits = {
  memoryBytes: 512 * MIB,
  memoryAndSwapBytes: 1024 * MIB,
  cores: 0.5,
  processes: 64,
  openFiles: 256,
  fileBytes: 64 * MIB,
  folderBytes: 64 * MIB,
  sharedMemoryBytes: 16 * MIB,
  executionMs: 30_000,
  outputBytes: 64 * MIB,
  engineMemoryBytes: 64 * MIB,
  engineStackBytes: MIB / 4,
};

/** Address space of a Node process: V8 reserves far more than it uses. */
export const NODE_ADDRESS_SPACE_BYTES = 2048 * MIB;

/** The engine's depth is limited by `engineStackBytes`; the stack around it must never be what ends first. */
export const ENGINE_THREAD_STACK_MB = 4;

/** `prlimit` and its options as an argument vector, up to the command it runs. A null limit is not set. */
export function prlimitArgs(
  program: string,
  limits: SandboxLimits,
  own: { addressSpaceBytes: number | null; processes: number | null },
): string[] {
  const args = [program, `--fsize=${limits.fileBytes}`, `--nofile=${limits.openFiles}`, '--core=0'];
  if (own.addressSpaceBytes !== null) args.push(`--as=${own.addressSpaceBytes}`);
  if (own.processes !== null) args.push(`--nproc=${own.processes}`);
  return [...args, '--'];
}
