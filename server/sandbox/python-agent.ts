/**
 * The program that stays in a process sandbox and runs python requests, as text: it is handed to the sandbox as a file.
 * It is process 1 of its own process namespace, so `kill(-1)` ends all the others, however they detached.
 *
 * Arguments: home folder, then the other writable folders. Frames in: length (4 bytes, big-endian), JSON
 * {op: 'run', code, timeoutMs, outputBytes} or {op: 'reset'}. Frames out: type (1 byte), length (4 bytes), payload:
 * R ready, O and E pieces of standard output and error, X end of the request as JSON.
 */
export const pythonAgentSource = String.raw`
import ctypes, json, os, select, shutil, signal, struct, sys, time

HOME, FOLDERS = sys.argv[1], sys.argv[1:]
PIECE = 65536
prctl = ctypes.CDLL(None).prctl
PR_SET_DUMPABLE = 4

if os.getpid() != 1:
    sys.exit('The agent must be process 1 of its own process namespace: it ends requests with kill(-1).')

# Programs run as the same user: without this they could read and write the agent through /proc/1.
prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
# Process 1 ignores signals it has no handler for. Python brings one for SIGINT.
signal.signal(signal.SIGINT, signal.SIG_DFL)

child_read, child_write = os.pipe()
os.set_blocking(child_write, False)
os.set_blocking(child_read, False)
signal.set_wakeup_fd(child_write, warn_on_full_buffer=False)
signal.signal(signal.SIGCHLD, lambda *_: None)


def write_all(data):
    view = memoryview(data)
    while view:
        view = view[os.write(1, view):]


def send(kind, payload=b''):
    write_all(kind + struct.pack('>I', len(payload)) + payload)


def read_exactly(size):
    parts = []
    while size:
        part = os.read(0, min(size, 1 << 20))
        if not part:
            sys.exit(0)
        parts.append(part)
        size -= len(part)
    return b''.join(parts)


def reap():
    """Collects the dead; returns {process: status}, or None when no child is left."""
    ended = {}
    while True:
        try:
            process, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return ended or None
        if process == 0:
            return ended
        ended[process] = status


def end_all():
    ended = {}
    while True:
        try:
            os.kill(-1, signal.SIGKILL)
        except ProcessLookupError:
            pass
        try:
            process, status = os.waitpid(-1, 0)
            ended[process] = status
        except ChildProcessError:
            return ended


def start(code, out, err, cpu_seconds):
    path = os.path.join(HOME, 'program.py')
    # The last program may have put anything here, a link or a folder too.
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    elif os.path.lexists(path):
        os.unlink(path)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), 'wb') as file:
        file.write(code.encode('utf-8', 'surrogatepass'))
    process = os.fork()
    if process:
        return process
    try:
        import resource
        prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)
        # When memory runs out, the program goes before the agent.
        with open('/proc/self/oom_score_adj', 'w') as file:
            file.write('1000')
        resource.setrlimit(resource.RLIMIT_CPU, (cpu_seconds, cpu_seconds + 1))
        os.setsid()
        os.chdir(HOME)
        os.dup2(os.open('/dev/null', os.O_RDONLY), 0)
        os.dup2(out, 1)
        os.dup2(err, 2)
        os.closerange(3, 256)
        environment = {'PATH': '/usr/local/bin:/usr/bin:/bin', 'HOME': HOME, 'TMPDIR': '/tmp', 'LANG': 'C.UTF-8'}
        os.execve(sys.executable, [sys.executable, '-E', '-s', '-B', '-X', 'utf8', path], environment)
    except BaseException as error:
        os.write(2, ('The program could not be started: %s\n' % error).encode())
    finally:
        os._exit(127)


def run(request):
    out_read, out_write = os.pipe()
    err_read, err_write = os.pipe()
    deadline = time.monotonic() + request['timeoutMs'] / 1000
    left, dropped, status, timed_out = request['outputBytes'], 0, None, False
    kinds = {out_read: b'O', err_read: b'E'}
    for fd in kinds:
        os.set_blocking(fd, False)

    def pump(fd):
        """One piece from a pipe; False when there is none now."""
        nonlocal left, dropped
        try:
            data = os.read(fd, PIECE)
        except BlockingIOError:
            return False
        if not data:
            del kinds[fd]
            return False
        kept = data[:left]
        left -= len(kept)
        dropped += len(data) - len(kept)
        if kept:
            send({out_read: b'O', err_read: b'E'}[fd], kept)
        return True

    try:
        try:
            program = start(request['code'], out_write, err_write, int(request['timeoutMs'] / 1000) + 1)
        except OSError as error:
            send(b'E', ('The program could not be started: %s\n' % error).encode())
            send(b'X', b'{"status":"error","exitCode":null,"valueText":null,"droppedBytes":0}')
            return
        finally:
            os.close(out_write)
            os.close(err_write)
        while status is None:
            wait = deadline - time.monotonic()
            if wait <= 0:
                timed_out = True
                break
            ready = select.select([child_read, *kinds], [], [], wait)[0]
            for fd in ready:
                if fd == child_read:
                    try:
                        os.read(child_read, PIECE)
                    except BlockingIOError:
                        pass
                    status = (reap() or {}).get(program)
                else:
                    pump(fd)
        ended = end_all()
        if status is None:
            status = ended.get(program)
        # What is in the pipes was printed before the end. Nobody is left to write more.
        for fd in list(kinds):
            while pump(fd):
                pass
    finally:
        os.close(out_read)
        os.close(err_read)
    code = None
    if status is not None and not timed_out:
        code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else -os.WTERMSIG(status)
    send(b'X', json.dumps({
        'status': 'timeout' if timed_out else 'success' if code == 0 else 'error',
        'exitCode': code, 'valueText': None, 'droppedBytes': dropped,
    }).encode())


def reset():
    end_all()
    for folder in FOLDERS:
        for entry in os.scandir(folder):
            # What can't be removed (too deep, say) ends the agent, and the pool takes a new one.
            if entry.is_dir(follow_symlinks=False):
                os.chmod(entry.path, 0o700)
                shutil.rmtree(entry.path)
            else:
                os.unlink(entry.path)
    send(b'X', b'{"status":"success","exitCode":0,"valueText":null,"droppedBytes":0}')


send(b'R')
while True:
    request = json.loads(read_exactly(struct.unpack('>I', read_exactly(4))[0]))
    if request['op'] == 'run':
        run(request)
    else:
        reset()
`;
