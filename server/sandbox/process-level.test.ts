import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Cancelled, Unavailable } from '../core/errors';
import { countsProcessesByNamespace } from './process-level';
import type { SandboxOutcome, SandboxPool } from './sandbox';
import { childrenOf, javascript, openPool, processesWith, python, runAt, runsHere, until } from './testing';

let pool: SandboxPool;
beforeAll(async () => {
  pool = await openPool({ size: 3 });
});
afterAll(() => pool.close());

/** Runs the program at level process; where this host has none, checks the refusal instead and gives null. */
async function inside(code: string, timeoutMs?: number): Promise<SandboxOutcome | null> {
  if (runsHere(pool, 'process', 'python')) return runAt(pool, 'process', python(code, timeoutMs));
  const refusal = pool.acquire({ level: 'process', accept: ['process'], kind: 'python' });
  await expect(refusal).rejects.toThrow(Unavailable);
  await expect(refusal).rejects.toThrow(/No sandbox that the skill accepts runs python on this host/);
  return null;
}

async function prints(code: string, expected: string): Promise<void> {
  const outcome = await inside(code);
  if (outcome) expect(outcome).toMatchObject({ status: 'success', stdout: `${expected}\n`, stderr: '' });
}

describe('a python program in a process sandbox', () => {
  it('returns what it prints, its complaints and its exit code', async () => {
    const outcome = await inside('import sys; print("hé"); print("oh", file=sys.stderr); sys.exit(3)');
    if (outcome)
      expect(outcome).toMatchObject({ status: 'error', stdout: 'hé\n', stderr: 'oh\n', exitCode: 3, droppedBytes: 0 });
  });

  it('sees no variable of the server', () =>
    prints('import os; print(sorted(os.environ))', "['HOME', 'LANG', 'PATH', 'TMPDIR']"));

  it('finds no network, not even by address', () =>
    prints(
      `import socket
def attempt(work):
    try: work(); return 'reached'
    except OSError as error: return 'refused'
print(attempt(lambda: socket.create_connection(('1.1.1.1', 53), 2)), attempt(lambda: socket.getaddrinfo('example.com', 80)),
      attempt(lambda: socket.socket(40, socket.SOCK_STREAM)), attempt(lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW)))`,
      'refused refused refused refused',
    ));

  it('sees of the host only programs and libraries', async () => {
    const outcome = await inside(
      'import os; print(sorted(os.listdir("/")), os.listdir("/home"), os.path.exists("/etc/passwd"))',
    );
    if (!outcome) return;
    const folders = (outcome.stdout.match(/^\[(.*?)\]/)?.[1] ?? '').replaceAll("'", '').split(', ');
    expect(['bin', 'dev', 'etc', 'home', 'lib', 'lib32', 'lib64', 'opt', 'proc', 'sbin', 'tmp', 'usr']).toEqual(
      expect.arrayContaining(folders),
    );
    expect(outcome.stdout).toContain("['agent'] False");
  });

  it('cannot write anywhere but in its own folders', () =>
    prints(
      `import os
def writable(folder):
    try:
        open(folder + '/x', 'w').close(); os.unlink(folder + '/x'); return True
    except OSError: return False
print([folder for folder in ['/', '/usr', '/usr/bin', '/etc', '/dev', '/opt/agent', '/tmp', '/home/agent', '/dev/shm'] if writable(folder)])`,
      "['/tmp', '/home/agent', '/dev/shm']",
    ));

  it('is refused the system calls that break out of sandboxes', () =>
    prints(
      `import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
def refused(call): ctypes.set_errno(0); return call() == -1 and ctypes.get_errno() == 1
print(refused(lambda: libc.unshare(0x10000000)), refused(lambda: libc.ptrace(16, 1, 0, 0)),
      refused(lambda: libc.mount(b'x', b'/tmp', b'tmpfs', 0, None)), refused(lambda: libc.setns(0, 0)),
      refused(lambda: libc.chroot(b'/tmp')), refused(lambda: libc.personality(0)))`,
      'True True True True True True',
    ));

  it('can neither read, stop nor end the agent beside it', () =>
    prints(
      `import os, signal
def attempt(work):
    try: work(); return 'did'
    except OSError: return 'refused'
memory = [attempt(lambda: open('/proc/1/' + name, 'rb').read(1)) for name in ['mem', 'environ', 'maps']]
descriptors = attempt(lambda: os.listdir('/proc/1/fd'))
for sig in [signal.SIGKILL, signal.SIGSTOP, signal.SIGINT, signal.SIGTERM]: os.kill(1, sig)
print(memory, descriptors)`,
      "['refused', 'refused', 'refused'] refused",
    ));

  it('leaves nothing behind for the next, neither files nor processes', async () => {
    const mark = `left-${process.pid}-${Date.now()}`;
    const first = await inside(
      `import os, subprocess
for folder in ['/tmp', '/home/agent', '/dev/shm']: open(folder + '/${mark}', 'w').write('x')
os.makedirs('/tmp/deep/er'); os.symlink('/', '/tmp/deep/root'); os.chmod('/tmp/deep', 0)
subprocess.Popen(['python3', '-c', 'import time; time.sleep(600)', '${mark}'], start_new_session=True)
print('done')`,
    );
    if (!first) return;
    expect(first.stdout).toBe('done\n');
    await until(() => processesWith(mark).length === 0);
    await prints(
      'import os; print([sorted(os.listdir(f)) for f in ["/tmp", "/home/agent", "/dev/shm"]], len([p for p in os.listdir("/proc") if p.isdigit()]))',
      "[[], ['program.py'], []] 2",
    );
  });

  it('ends with its whole tree when it never finishes', async () => {
    const mark = `sleeps-${process.pid}-${Date.now()}`;
    const outcome = await inside(
      `import os, subprocess, time
print('before', flush=True)
for _ in range(3): subprocess.Popen(['python3', '-c', 'import os, time; os.fork(); os.setsid() if os.fork() == 0 else 0; time.sleep(600)', '${mark}'])
time.sleep(600)`,
      1_500,
    );
    if (!outcome) return;
    expect(outcome).toMatchObject({ status: 'timeout', stdout: 'before\n', exitCode: null });
    await until(() => processesWith(mark).length === 0);
    // The sandbox itself goes on.
    await prints('print("next")', 'next');
  });

  it('that forks without end is contained and ended', async () => {
    const outcome = await inside('import os\nwhile True:\n    try: os.fork()\n    except OSError: pass', 1_500);
    if (!outcome) return;
    expect(outcome.status).toBe('timeout');
    await prints('print("next")', 'next');
  });

  it('that takes all memory fails alone', async () => {
    const outcome = await inside('x = []\nwhile True: x.append(bytearray(10_000_000))');
    if (!outcome) return;
    expect(outcome.status).toBe('error');
    await prints('print("next")', 'next');
  });

  it('cannot write a file past its limit, nor fill the memory by files', async () => {
    const outcome = await inside(
      `written = 0
try:
    for i in range(20):
        with open(f'/tmp/{i}', 'wb') as file:
            for _ in range(32): written += file.write(bytes(1 << 20))
except OSError as error: print(error.errno, written <= 64 << 20)`,
    );
    if (outcome) expect(outcome.stdout).toBe('28 True\n');
  });

  it('may print 40 MB, all of which comes back', async () => {
    const outcome = await inside('import sys\nfor _ in range(40): sys.stdout.write("x" * 1_000_000)');
    if (!outcome) return;
    expect(outcome.stdout.length).toBe(40_000_000);
    expect(outcome.droppedBytes).toBe(0);
  });

  it('has what it prints past the cap counted, not kept', async () => {
    const small = await openPool({ size: 1, limits: { outputBytes: 1_000_000 } });
    try {
      if (!runsHere(small, 'process', 'python')) return;
      const outcome = await runAt(
        small,
        'process',
        python('import sys\nsys.stdout.write("x" * 3_000_000); sys.stderr.write("end")'),
      );
      expect(outcome.stdout.length + outcome.stderr.length).toBe(1_000_000);
      expect(outcome.droppedBytes).toBe(2_000_003);
      expect(outcome.status).toBe('success');
    } finally {
      await small.close();
    }
  });

  it('may print bytes that are no text', async () => {
    const outcome = await inside('import os\nos.write(1, b"a\\x00\\xff\\x1b[31mb\\r\\n")');
    if (outcome) expect(outcome.stdout).toBe('a\u2400\ufffd\u001b[31mb\r\n');
  });

  it('cannot speak for the agent', async () => {
    const outcome = await inside(
      'import os\nos.write(1, b"X\\x00\\x00\\x00\\x02{}")\nfor fd in range(3, 300):\n    try: os.write(fd, b"X\\x00\\x00\\x00\\x02{}")\n    except OSError: pass',
    );
    if (outcome) expect(outcome).toMatchObject({ status: 'success', stdout: 'X\u2400\u2400\u2400\u0002{}' });
  });

  it('is ended by an abort, with everything in the sandbox', async () => {
    if (!runsHere(pool, 'process', 'python')) return;
    const mark = `aborted-${process.pid}-${Date.now()}`;
    const lease = await pool.acquire({ level: 'process', accept: [], kind: 'python' });
    const stop = new AbortController();
    const running = lease.sandbox.run(
      python(`import subprocess; subprocess.run(['python3', '-c', 'import time; time.sleep(600)', '${mark}'])`),
      stop.signal,
    );
    const settled = expect(running).rejects.toThrow(Cancelled);
    await until(() => processesWith(mark).length > 0);
    stop.abort();
    await settled;
    await until(() => processesWith(mark).length === 0);
    await lease.release();
    expect(pool.stats().find((entry) => entry.level === 'process')?.replaced).toBeGreaterThan(0);
    await prints('print("next")', 'next');
  });
});

describe('a process sandbox', () => {
  it('does not outlive a server that is killed', async () => {
    if (!runsHere(pool, 'process', 'python') || !runsHere(pool, 'process', 'javascript')) return;
    const mark = `orphan-${process.pid}-${Date.now()}`;
    const folder = mkdtempSync(join(tmpdir(), 'ts-test-'));
    const script = join(folder, 'server.ts');
    writeFileSync(
      script,
      `import { openPool, python, javascript, runAt } from ${JSON.stringify(fileURLToPath(new URL('./testing.ts', import.meta.url)))};
async function main() {
  const pool = await openPool({ size: 2 });
  void runAt(pool, 'process', python("import subprocess; subprocess.run(['python3', '-c', 'import time; time.sleep(600)', '${mark}'])"));
  void runAt(pool, 'process', javascript('for (;;);'));
  void runAt(pool, 'none', javascript('for (;;);'));
  void runAt(pool, 'none', python("import time; time.sleep(600)"));
  setTimeout(() => {}, 600000);
}
void main();`,
    );
    const server = execFile(process.execPath, ['--import', 'tsx', script], {
      cwd: fileURLToPath(new URL('../..', import.meta.url)),
    });
    await until(() => processesWith(mark).length > 0 || server.exitCode !== null);
    expect(server.exitCode).toBeNull();
    await until(() => childrenOf(server.pid ?? 0).length >= 4);
    const children = childrenOf(server.pid ?? 0);
    server.kill('SIGKILL');
    await until(() => processesWith(mark).length === 0 && !children.some((pid) => existsSync(`/proc/${pid}`)));
    rmSync(folder, { recursive: true });
  });

  it('that ended while nobody used it is replaced, unseen by the next caller', async () => {
    const own = await openPool({ size: 1 });
    try {
      if (!runsHere(own, 'process', 'python')) return;
      const lease = await own.acquire({ level: 'process', accept: [], kind: 'python' });
      const sandbox = lease.sandbox as unknown as { pid: number; alive: boolean };
      await lease.release();
      process.kill(sandbox.pid, 'SIGKILL');
      // The pool is told of the end a moment after the process is gone.
      await until(() => !sandbox.alive);
      expect((await runAt(own, 'process', python('print(1)'))).stdout).toBe('1\n');
    } finally {
      await own.close();
    }
  });

  it('is out of reach of the Ctrl-C that stops the server', async () => {
    if (!runsHere(pool, 'process', 'python')) return;
    const lease = await pool.acquire({ level: 'process', accept: [], kind: 'python' });
    const groupOf = (pid: number) => readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ')[2];
    expect(groupOf((lease.sandbox as unknown as { pid: number }).pid)).not.toBe(groupOf(process.pid));
    await lease.release();
  });

  it('hides a folder that lies inside what is shown', async () => {
    if (!runsHere(pool, 'process', 'python')) return;
    const hidden = await openPool({ size: 1, hide: ['/usr/lib/python3', '/usr/share/zoneinfo'] });
    try {
      const outcome = await runAt(hidden, 'process', python('import os; print(os.listdir("/usr/share/zoneinfo"))'));
      expect(outcome.stdout).toBe('[]\n');
    } finally {
      await hidden.close();
    }
  });

  it('is not offered, with the reason and what to do, where bubblewrap is missing', async () => {
    const empty = mkdtempSync(join(tmpdir(), 'ts-test-'));
    mkdirSync(join(empty, 'bin'));
    const without = await openPool({ programFolders: [join(empty, 'bin')] });
    try {
      const state = without.levels().find((entry) => entry.level === 'process');
      expect(state).toMatchObject({ available: false, kinds: [] });
      if (process.platform === 'linux')
        expect(state?.reason).toBe(
          'bubblewrap is not installed on this host. Install it (for example: apt-get install bubblewrap) and start the studio again.',
        );
      const want = without.acquire({ level: 'process', accept: ['process', 'container'], kind: 'javascript' });
      await expect(want).rejects.toThrow(Unavailable);
      await expect(want).rejects.toThrow(/process: .* container: This version has no container level yet\./);
      // Named by the skill, so it may be used.
      const lease = await without.acquire({ level: 'process', accept: ['wasm', 'process'], kind: 'javascript' });
      expect(lease.sandbox.level).toBe('wasm');
      await lease.release();
    } finally {
      await without.close();
      rmSync(empty, { recursive: true });
    }
  });

  it('ends a JavaScript engine that does not look at its clock', async () => {
    if (!runsHere(pool, 'process', 'javascript')) return;
    const outcome = await runAt(pool, 'process', javascript('let x = 3n; for (;;) x = x * x;', 300));
    expect(outcome.status).toBe('timeout');
    expect((await runAt(pool, 'process', javascript('return 1'))).value).toBe(1);
  });
});

it('kernels count processes by namespace since 5.14', () => {
  expect(['4.19.0', '5.13.9', '5.14.0-70.el9', '6.1.0-18-amd64'].map(countsProcessesByNamespace)).toEqual([
    false,
    false,
    true,
    true,
  ]);
});
