/** The argument vector of a process sandbox. */
import { existsSync, lstatSync, readlinkSync } from 'node:fs';
import { isAbsolute, relative } from 'node:path';
import type { SandboxLimits } from './limits';

export const HOME = '/home/agent';
export const AGENT_FOLDER = '/opt/agent';

/**
 * What of the host is seen, read-only: programs and libraries. Not /usr as a whole: services are often installed
 * beneath it (/usr/src/app), with their data.
 */
const SYSTEM_FOLDERS = [
  '/usr/bin',
  '/usr/sbin',
  '/usr/lib',
  '/usr/lib32',
  '/usr/lib64',
  '/usr/libexec',
  '/usr/local/bin',
  '/usr/local/lib',
  '/usr/local/lib64',
  '/usr/share/zoneinfo',
];
/** Links into /usr on most systems, folders of their own on some. */
const TOP_FOLDERS = ['/bin', '/sbin', '/lib', '/lib32', '/lib64'];
/** Where the loader and names like python3 are looked up on some systems. */
const SYSTEM_SETTINGS = ['/etc/ld.so.cache', '/etc/alternatives'];

export interface Inside {
  /** Further host paths to show, read-only: [on the host, inside]. */
  show: [from: string, to: string][];
  /** Host paths never to show, even when they lie inside something shown. */
  hide: string[];
  /** Files to show from open descriptors: [descriptor, path inside]. */
  files: [descriptor: number, to: string][];
  /** Descriptor of the seccomp filter. */
  filter: number;
  /** Program and arguments, as seen from inside. */
  command: string[];
}

/** `bwrap` and its options, for the user that runs it. Every path is an argument of its own: spaces and any script are safe. */
export function bubblewrapArgs(bubblewrap: string, limits: SandboxLimits, inside: Inside): string[] {
  const args = [
    bubblewrap,
    '--unshare-all',
    '--unshare-user',
    '--uid',
    '1000',
    '--gid',
    '1000',
    '--hostname',
    'sandbox',
  ];
  args.push('--as-pid-1', '--die-with-parent', '--new-session', '--clearenv', '--cap-drop', 'ALL');
  for (const folder of SYSTEM_FOLDERS) if (existsSync(folder)) args.push('--ro-bind', folder, folder);
  for (const folder of TOP_FOLDERS) {
    if (!existsSync(folder)) continue;
    if (lstatSync(folder).isSymbolicLink()) args.push('--symlink', readlinkSync(folder), folder);
    else args.push('--ro-bind', folder, folder);
  }
  for (const path of SYSTEM_SETTINGS) if (existsSync(path)) args.push('--ro-bind', path, path);
  for (const [from, to] of inside.show) args.push('--ro-bind', from, to);
  const shown = [...SYSTEM_FOLDERS, ...TOP_FOLDERS, ...inside.show.map(([from]) => from)];
  for (const path of inside.hide)
    if (shown.some((folder) => contains(folder, path))) args.push('--size', '4096', '--tmpfs', path);

  args.push('--proc', '/proc', '--dev', '/dev');
  const writable: [string, number][] = [
    ['/dev/shm', limits.sharedMemoryBytes],
    ['/tmp', limits.folderBytes],
    [HOME, limits.folderBytes],
  ];
  for (const [folder, size] of writable) args.push('--size', String(size), '--tmpfs', folder);
  for (const [descriptor, to] of inside.files) args.push('--ro-bind-data', String(descriptor), to);
  args.push('--remount-ro', '/dev', '--remount-ro', '/');
  args.push(
    '--setenv',
    'PATH',
    '/usr/local/bin:/usr/bin:/bin',
    '--setenv',
    'HOME',
    HOME,
    '--setenv',
    'LANG',
    'C.UTF-8',
  );
  args.push('--chdir', HOME, '--seccomp', String(inside.filter), '--', ...inside.command);
  return args;
}

/** Whether `path` lies in `folder` or is it. */
function contains(folder: string, path: string): boolean {
  const way = relative(folder, path);
  return way === '' || (!way.startsWith('..') && !isAbsolute(way));
}
