import { describe, expect, it } from 'vitest';
import { bubblewrapArgs } from './bubblewrap';
import { DEFAULT_LIMITS, prlimitArgs } from './limits';
import { OwnUsers, parseIdMap } from './own-user';

describe('users of their own', () => {
  it('are made only by a server that is root', () => {
    expect(OwnUsers.find(1000, 1)).toBe('not root');
  });

  it('are taken from a far range, or from a near one where few users are mapped', () => {
    const wide = OwnUsers.find(0, 12345, '         0          0 4294967295\n') as OwnUsers;
    const near = OwnUsers.find(0, 12345, '0 100000 65536\n') as OwnUsers;
    const [a, b, c] = [wide.take(), wide.take(), near.take()];
    expect(a).toBeGreaterThan(1_000_000_000);
    expect(b).not.toBe(a);
    expect(c).toBeGreaterThanOrEqual(61_184);
    expect(c).toBeLessThan(65_536);
    for (const uid of [a, b]) wide.giveBack(uid);
    near.giveBack(c);
  });

  it('are refused where there are none', () => {
    expect(OwnUsers.find(0, 1, '0 1000 1\n')).toBe('no users');
    expect(parseIdMap('0 1000 1\n1 100000 65536\n')).toEqual([
      [0, 1],
      [1, 65536],
    ]);
  });
});

describe('the argument vector of a sandbox', () => {
  const inside = {
    show: [['/opt/a b; rm -rf 项目', '/opt/agent/node']] as [string, string][],
    hide: [],
    files: [] as [number, string][],
    filter: 3,
    command: ['true'],
  };

  it('carries any path as an argument of its own', () => {
    const args = bubblewrapArgs('/usr/bin/bwrap', DEFAULT_LIMITS, inside);
    expect(args[args.indexOf('/opt/a b; rm -rf 项目') + 1]).toBe('/opt/agent/node');
    expect(args).toEqual(
      expect.arrayContaining(['--unshare-all', '--die-with-parent', '--clearenv', '--new-session', '--as-pid-1']),
    );
    expect(args.slice(-4)).toEqual(['--seccomp', '3', '--', 'true']);
  });

  it('hides a folder only where it would be seen', () => {
    const hides = (path: string) => {
      const args = bubblewrapArgs('/usr/bin/bwrap', DEFAULT_LIMITS, { ...inside, hide: [path] });
      return args.some((arg, i) => arg === '--tmpfs' && args[i + 1] === path);
    };
    expect(hides('/usr/lib/studio/.data')).toBe(true);
    expect(hides('/srv/studio/.data')).toBe(false);
    expect(hides('/usr/library')).toBe(false);
  });

  it('sets the limits that are asked for', () => {
    expect(prlimitArgs('/usr/bin/prlimit', DEFAULT_LIMITS, { addressSpaceBytes: 1, processes: 2 })).toEqual(
      expect.arrayContaining(['--as=1', '--nproc=2', '--core=0', '--']),
    );
    expect(
      prlimitArgs('/usr/bin/prlimit', DEFAULT_LIMITS, { addressSpaceBytes: null, processes: null }).join(),
    ).not.toMatch(/--as|--nproc/);
  });
});
